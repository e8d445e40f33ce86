"""The code of the guides works as printed, in the files that they name, in a copy of this tree.

A block of Python is the whole of the file that the paragraph before it names. A block of `diff`
changes such a file; its hunks are divided by `@@`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import DOCS, ROOT, blocks

pytestmark = pytest.mark.slow  # each guide runs tests in a process of its own
NAMED = re.compile(r"`([\w/]+\.py)`")
# Copied, because a guide changes them. All else is linked.
COPIED = ("benchmarks", "locales", "ssd_core", "tests", "web")


def put(copy: Path, guide: str) -> None:
    """Follow a guide's blocks, top to bottom."""
    for block in blocks(DOCS / guide):
        if block.language in ("python", "diff"):
            path = copy / NAMED.findall(block.before)[-1]
            assert path.parts[len(copy.parts)] in COPIED
            if block.language == "python":
                assert not path.exists(), f"{path.name} is there already"
                path.write_text(block.code, encoding="utf-8")
            else:
                for hunk in block.code.split("@@\n"):
                    change(path, hunk)


def change(path: Path, hunk: str) -> None:
    """Replace the one place where the old lines of a hunk stand."""
    def side(other: str) -> str:
        return "".join(f"{line[1:]}\n" for line in hunk.splitlines() if line[0] != other)
    text = path.read_text(encoding="utf-8")
    assert text.count(side("+")) == 1, f"{path}: not the lines that the guide shows:\n{side('+')}"
    path.write_text(text.replace(side("+"), side("-")), encoding="utf-8")


@pytest.fixture
def copy(tmp_path) -> Path:
    """This tree: what a guide changes as copies, all else as links."""
    skipped = shutil.ignore_patterns("__pycache__", "assets", "results")
    for entry in ROOT.iterdir():
        if entry.name in COPIED:
            shutil.copytree(entry, tmp_path / entry.name, ignore=skipped)
        elif not entry.name.startswith("."):
            (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "ssd_core" / "assets").symlink_to(ROOT / "ssd_core" / "assets")
    return tmp_path


def run(copy: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], cwd=copy, text=True, check=False,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(copy)})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def passes(copy: Path, *words: str) -> None:
    summary = run(copy, "pytest", "-q", "-p", "no:cacheprovider", *words)
    assert re.search(r"\d+ passed", summary) and "skipped" not in summary, summary


def test_the_method_works_at_once_and_obeys_the_laws(copy):
    put(copy, "add_a_method.md")
    passes(copy, "tests/test_lookup.py", "tests/test_methods.py", "tests/test_knobs.py",
           "-k", "lookup or under_test or knob")
    prompt = "a red house on the left, a lake, at sunset"
    told = [json.loads(run(copy, "ssd_core", "generate", prompt, "--method", *method, "--json",
                           "--out", str(copy / "x.png")).splitlines()[-1])
            for method in (("ar",), ("lookup", "--window", "12"))]
    ar, lookup = told
    assert lookup["method"] == "lookup" and lookup["passes"] < ar["passes"]
    assert lookup["tokens_sha256"] == ar["tokens_sha256"]


def test_the_knob_works_in_three_files_and_one_script(copy):
    """All tests that the guide names then pass, and the flag is there by itself."""
    put(copy, "add_a_knob.md")
    run(copy, "benchmarks.knob_pages")
    named, = (block.code.split()[3:] for block in blocks(DOCS / "add_a_knob.md")
              if block.code.startswith("python -m pytest"))
    passes(copy, "tests/test_guess.py", *named)
    prompt = "a red house on the left, a lake, at sunset"
    out = run(copy, "ssd_core", "generate", prompt, "--guess", "above", "--json",
              "--out", str(copy / "x.png"))
    assert json.loads(out.splitlines()[-1])["method"].startswith("exact")


def test_the_method_is_as_short_as_it_can_be():
    code, = (block.code for block in blocks(DOCS / "add_a_method.md")
             if "class Lookup" in block.code)
    assert len(code.splitlines()) <= 48


def test_the_backbone_equals_its_reference(copy):
    pytest.importorskip("transformers", reason="transformers is the oracle")
    put(copy, "add_a_backbone.md")
    passes(copy, "tests/test_sketch.py")


def test_a_hunk_that_does_not_fit_is_refused(tmp_path):
    (tmp_path / "a.py").write_text("one\ntwo\n")
    change(tmp_path / "a.py", " one\n-two\n+three\n")
    assert (tmp_path / "a.py").read_text() == "one\nthree\n"
    with pytest.raises(AssertionError, match="not the lines"):
        change(tmp_path / "a.py", " two\n+four\n")
