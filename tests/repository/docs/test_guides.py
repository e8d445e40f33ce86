"""The guides work to the letter, in a copy of this tree: code as printed, then the two commands.

A block of Python is the whole of the file that the paragraph before it names. A block of `diff`
changes such a file; its hunks are divided by `@@`. All guides are followed in one copy, with their
tests from `examples/`. Then the texts are made, and Ruff, mypy and the tests that would notice
something find nothing.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import DOCS, ROOT, blocks, commands

NAMED = re.compile(r"`([\w/]+\.py)`")
GUIDES = ("add_a_method.md", "add_a_knob.md", "add_a_backbone.md")
EXAMPLES = ROOT / "tests" / "repository" / "docs" / "examples"  # their tests
ENDING = ["python tools/make.py texts", "python install.py test core models hosts repository"]
PROMPT = "a red house on the left, a lake, at sunset"
WRITTEN = {path: f"tests/core/test_{path.name}" for path in sorted(EXAMPLES.glob("*.py"))}
# The tests that look at methods, knobs, families, texts or the shape of the code.
SHAPE = "tests/repository/test_layers.py::test_"
NOTICING = ("tests/repository/docs/test_agreement.py", "tests/repository/test_golden.py",
            "tests/hosts/nodes/test_schemas.py", "tests/hosts/nodes/test_workflows.py",
            "tests/hosts/web/test_texts.py", "tests/core/test_knobs.py",
            "tests/core/test_workflow.py", f"{SHAPE}functions_stay_short",
            f"{SHAPE}names_say_what_they_hold", f"{SHAPE}rooms_import_only_from_rooms_below")
NOT_OURS = shutil.ignore_patterns(  # compiled files are taken along, but for half-written ones
    ".git", ".venv", ".*_cache", ".hypothesis", "*.pyc.*", "node_modules", "*.egg-info", "build",
    "*.safetensors")
USERS = {"outputs", "runs", "models"}  # what users make in the root


def not_ours(folder: str, names: list[str]) -> set[str]:
    return NOT_OURS(folder, names) | (USERS if Path(folder) == ROOT else set())


def copy_of_the_tree(folder: Path) -> Path:
    """Copies, because the guides and the maker change files; weights are linked.

    With what mypy knows of this tree, so that it reads again only what the guides change.
    """
    shutil.copytree(ROOT, folder, ignore=not_ours, dirs_exist_ok=True)
    if (types := ROOT / ".mypy_cache").exists():
        shutil.copytree(types, folder / types.name)
    for weights in (ROOT / "ssd_core" / "assets").rglob("*.safetensors"):
        (folder / weights.relative_to(ROOT)).symlink_to(weights)
    return folder


def put(copy: Path, guide: str) -> None:
    """Follow a guide's blocks, top to bottom."""
    for block in blocks(DOCS / guide):
        if block.language in ("python", "diff"):
            path = copy / NAMED.findall(block.before)[-1]
            if block.language == "python":
                assert not path.exists(), f"{path.name} is there already"
                path.write_text(block.code, encoding="utf-8")
            else:
                change_all(path, block.code)


def change_all(path: Path, code: str) -> None:
    for hunk in code.split("@@\n"):
        change(path, hunk)


def change(path: Path, hunk: str) -> None:
    """Replace the one place where the old lines of a hunk stand."""
    def side(other: str) -> str:
        return "".join(f"{line[1:]}\n" for line in hunk.splitlines() if line[0] != other)
    text = path.read_text(encoding="utf-8")
    assert text.count(side("+")) == 1, f"{path}: not the lines that the guide shows:\n{side('+')}"
    path.write_text(text.replace(side("+"), side("-")), encoding="utf-8")


def run(copy: Path, *words: str) -> str:
    """What Python prints when it is started in the copy; it must end without an error."""
    done = subprocess.run([sys.executable, *words], cwd=copy, text=True, check=False,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(copy)})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """This tree after all guides, with the texts made."""
    pytest.importorskip("transformers", reason="transformers is the backbone's oracle")
    folder = copy_of_the_tree(tmp_path_factory.mktemp("guides"))
    for guide in GUIDES:
        put(folder, guide)
    for example, test in WRITTEN.items():
        shutil.copy(example, folder / test)
    run(folder, "tools/make.py", "texts")
    return folder


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_ends_with_the_two_commands(guide):
    found = [line for line in commands(DOCS / guide) if line.startswith(("python tools",
                                                                         "python install"))]
    assert found == ENDING


def test_ruff_and_mypy_find_nothing(copy):
    run(copy, "-m", "ruff", "check", ".")
    run(copy, "tests/check_types.py")


def test_the_tests_of_the_guides_and_those_that_would_notice_pass(copy):
    """All that the guides write, and of the laws of every method those for the new one.

    But for the comparison with the texts, which were just made.
    """
    summary = run(copy, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                  *WRITTEN.values(), *NOTICING, "tests/core/test_methods.py",
                  "-k", "not as_they_are_made and (not test_methods.py or lookup or under_test)")
    assert re.search(r"\d+ passed", summary), summary
    skipped = [line for line in summary.splitlines() if line.startswith("SKIPPED")]
    assert not [path for path in WRITTEN.values() if path in "".join(skipped)], summary


# Four small pictures by one process: what takes long is to start it.
DRAWING = """
import sys
from pathlib import Path
sys.path.append("tests")
from support.small_bundle import small_bundle
from ssd_core.cli import main
with small_bundle(Path({assets!r})):
    for words in {commands}:
        assert main(["generate", {prompt!r}, *words, "--json", "--out", {out!r}]) == 0
"""


@pytest.mark.nightly
def test_what_was_added_is_there_from_the_command_line(copy, small_assets):
    script = DRAWING.format(prompt=PROMPT, out=str(copy / "x.png"), assets=str(small_assets),
                            commands=[["--method", "ar"], ["--method", "lookup", "--window", "12"],
                                      ["--first-guess", "above"], ["--temperature", "2"],
                                      ["--temperature", "2", "--top-a", "0.9"]])
    lines = [line for line in run(copy, "-c", script).splitlines() if line.startswith("{")]
    ar, lookup, above, hot, top_a = map(json.loads, lines)
    assert lookup["method"] == "lookup" and lookup["passes"] < ar["passes"]
    assert lookup["tokens_sha256"] == ar["tokens_sha256"] == above["tokens_sha256"]
    assert above["method"].startswith("exact") and top_a["tokens_sha256"] != hot["tokens_sha256"]


def test_a_hunk_that_does_not_fit_is_refused(tmp_path):
    (tmp_path / "a.py").write_text("one\ntwo\n")
    change(tmp_path / "a.py", " one\n-two\n+three\n")
    assert (tmp_path / "a.py").read_text() == "one\nthree\n"
    with pytest.raises(AssertionError, match="not the lines"):
        change(tmp_path / "a.py", " two\n+four\n")
