"""Tests notice faults: each fault of a table, made in a copy of the sources, fails its test."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.mutation_table import TABLE

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("engine/methods", "engine", "model", "backbones", "weights", "runs", "output", "cli",
         "train", "postcard", "nodes", "studio")
COPIED = ("lab", "locales", "nodes", "ssd_core", "studio", "subgraphs", "tests", "tools", "web",
          "workflows")
FAILED = 1  # pytest's exit code if tests ran and some failed


def test_every_room_has_two_faults_each_in_its_place_and_with_its_test():
    assert Counter(fault.room for fault in TABLE) >= Counter(dict.fromkeys(ROOMS, 2))
    for fault in TABLE:
        assert (ROOT / fault.file).read_text(encoding="utf-8").count(fault.old) == 1, fault
        file, _, name = fault.test.partition("::")
        assert f"def {name or 'test'}" in (ROOT / file).read_text(encoding="utf-8"), fault


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The sources and tests, as links to the same files."""
    place = tmp_path_factory.mktemp("mutated")
    for name in COPIED:
        shutil.copytree(ROOT / name, place / name, copy_function=linked,
                        ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("__init__.py", "environment.py", "gradio_app.py", "pyproject.toml"):
        shutil.copy(ROOT / file, place)
    return place


def linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk
        shutil.copy2(source, target)


@pytest.mark.nightly
@pytest.mark.parametrize("fault", TABLE, ids=lambda fault: f"{fault.room}: {fault.old[:40]}")
def test_a_fault_is_noticed(copy, fault):
    path = copy / fault.file
    sound = path.read_text(encoding="utf-8")
    path.unlink()  # a link to the source
    path.write_text(sound.replace(fault.old, fault.new), encoding="utf-8")
    try:
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider",
             fault.test], cwd=copy, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(copy)})
        assert done.returncode == FAILED, done.stdout[-2000:] + done.stderr[-500:]
    finally:
        path.write_text(sound, encoding="utf-8")
