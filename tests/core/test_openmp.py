"""OpenMP's threads wait as the last measurement says: chosen before torch reads the policy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ssd_core import kept_files, openmp
from ssd_core.runs import diagnostics as doctor

ENGINE = "ssd_core.engine.decode"
ROOT = Path(__file__).resolve().parents[2]
AT_TORCH = """
import os, sys
class Spy:
    def find_spec(self, name, *_):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"))
            sys.stdout.flush()
            os._exit(0)
sys.meta_path.insert(0, Spy())
import {module}
"""
FAST, SLOW = {"one": 8.0, "all": 5.0}, {"one": 8.0, "all": 20.0}


def policy_when_torch_is_imported(module: str, folder: object, **own: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != openmp.VARIABLE}
    run = subprocess.run([sys.executable, "-c", AT_TORCH.format(module=module)], cwd=ROOT,
                         env={**environment, kept_files.VARIABLE: str(folder), **own},
                         capture_output=True, text=True, check=True)
    return run.stdout.strip()


def keep(folder: Path, **measured: object) -> Path:
    (folder / openmp.FILE).write_text(json.dumps(measured))
    return folder


def test_without_a_measurement_the_library_s_own_policy_stays(tmp_path):
    assert policy_when_torch_is_imported(ENGINE, tmp_path) == "None"


@pytest.mark.parametrize("module", ["ssd_core.cli.generate", "studio.start"])
def test_the_programs_start_with_the_policy_that_was_measured(module, tmp_path):
    assert policy_when_torch_is_imported(module, keep(tmp_path, spinning=SLOW)) == "passive"


def test_the_user_s_own_policy_stays(tmp_path):
    kept = keep(tmp_path, spinning=SLOW)
    assert policy_when_torch_is_imported(ENGINE, kept, OMP_WAIT_POLICY="active") == "active"


@pytest.mark.parametrize(("measured", "sleeps"), [
    ({}, False), ({"spinning": FAST}, False), ({"spinning": SLOW}, True),
    ({"spinning": FAST, "sleeping": FAST}, False),
    ({"spinning": SLOW, "sleeping": FAST}, True),
    ({"spinning": SLOW, "sleeping": {"one": 8.0, "all": 9.0}}, False),  # one thread serves
])
def test_threads_sleep_only_where_spinning_was_measured_to_lose(measured, sleeps):
    assert openmp.should_sleep(measured) == sleeps


@pytest.mark.parametrize("text", ["", "[]", '{"spinning": 3}', '{"spinning": {"one": "x"}}'])
def test_an_unreadable_file_counts_as_no_measurement(tmp_path, monkeypatch, text):
    (tmp_path / openmp.FILE).write_text(text)
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path))
    assert openmp.stored_measurement() == {}


def test_the_report_says_how_many_threads_and_why(monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(doctor, "free_now", lambda most: most)
    monkeypatch.setattr(openmp, "WAITING", openmp.SPINNING)
    line, = doctor.threads_line()
    assert line.startswith("threads: a run now takes 2 of 2; ") and "spinning" in line
    monkeypatch.setattr(doctor, "free_now", lambda most: 1)
    monkeypatch.setattr(openmp, "WAITING", openmp.OWN)
    monkeypatch.setenv(openmp.VARIABLE, "active")
    line, = doctor.threads_line()
    assert "takes 1 of 2, because other programs" in line
    assert line.endswith("OMP_WAIT_POLICY=active, which you set")
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    assert doctor.threads_line() == []


def test_the_folder_is_where_the_system_has_caches(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv(kept_files.VARIABLE, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept_files.cache_folder() == tmp_path / "ssd-decoding"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert kept_files.cache_folder() == Path.home() / ".cache" / "ssd-decoding"
    monkeypatch.setattr("sys.platform", "darwin")
    assert kept_files.cache_folder() == Path.home() / "Library" / "Caches" / "ssd-decoding"
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path / "own"))
    assert kept_files.cache_folder() == tmp_path / "own"
    monkeypatch.setenv(kept_files.VARIABLE, "Off")
    assert kept_files.cache_folder() is None
