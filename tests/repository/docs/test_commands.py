"""Every command of the documents is run, or read as far as that can be done without running it.

- `python -m ssd_core`: run as printed where all that it needs comes with the repository; what would
  only measure longer is cut short. Training, downloads, and what reads weights from `models/` or
  `runs/` is parsed: an unknown flag or a missing argument fails. `evaluate`, which reads postcards
  of their own size, is parsed by day and run by night.
- `python install.py`, `gradio_app.py`, `pytest`, `ruff`, `pip`: their arguments are checked against
  the files that define them. CI runs `python install.py test`, and with it Ruff and pytest.
- `python lab/benchmarks/...`, `python tools/...`: the script is asked for its help.
Any other command fails, until somebody says here how it is tested. Blocks of Python are run too;
those of the guides are put into files by test_guides.py.
"""

import ast
import re
import runpy
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import typer
from support.documents import DOCUMENTS, ROOT, blocks, commands
from support.small_bundle import small_bundle

from ssd_core.cli import app, main

OURS = "python -m ssd_core "
SHORT = {"bench": ["--repeats", "1", "--warmup", "0"]}
FOUND = [(path, line) for path in DOCUMENTS for line in commands(path)]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def arguments(line: str) -> list[str]:
    return shlex.split(line.removeprefix(OURS))


def scaled(words: list[str]) -> list[str]:
    """Boxes of pictures of 768 pixels, and their 24 rows, for those of 128 pixels and 8 rows."""
    divisor = {"--box": 6, "--rows": 3, "--keep-rows": 3}
    return [",".join(str(int(side) // divisor[before]) for side in word.split(","))
            if before in divisor else word
            for before, word in zip(["", *words], words, strict=False)]


def needs_more(line: str) -> bool:
    """Whether a command takes long, the network, or weights that the repository lacks."""
    first, *rest = arguments(line)
    elsewhere = any(word.startswith(("models", "runs/")) for word in rest)
    return first in ("train", "convert", "selftest", "evaluate") or elsewhere or (
        first == "download" and "--list" not in rest)


def parse(words: list[str]) -> None:
    """Read a command line as typer does, without running it."""
    command = typer.main.get_command(app)
    context = typer.Context(command)
    while hasattr(command, "get_command") and not words[0].startswith("--"):
        first, *words = words
        command = command.get_command(context, first)
        assert command is not None, first
    command.make_context(first, words, parent=context)


@pytest.mark.parametrize("line", [line for _, line in FOUND
                                  if line.startswith(OURS) and needs_more(line)])
def test_commands_that_need_more_are_understood(line):
    parse(arguments(line))


@pytest.mark.nightly
@pytest.mark.parametrize("line", {line: None for _, line in FOUND
                                  if line.startswith(f"{OURS}evaluate --methods ")})
def test_evaluation_runs(line, tmp_path):
    assert main([*arguments(line), "--prompts", "2", "--batch", "2", "--out", str(tmp_path)]) == 0


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if any(
    line.startswith(OURS) and not needs_more(line) for line in commands(path))], ids=name)
def test_commands_run_in_the_order_of_their_document(path, small_assets, tmp_path, monkeypatch,
                                                     capfd):
    """One after the other in one folder, as somebody would who follows the page; small pictures."""
    monkeypatch.chdir(tmp_path)
    with small_bundle(small_assets):
        for line in commands(path):
            if line.startswith(OURS) and not needs_more(line):
                words = scaled(arguments(line))
                assert main([*words, *SHORT.get(words[0], ())]) == 0, line + capfd.readouterr().err


@pytest.mark.parametrize("code", [
    block.code for path in DOCUMENTS if not path.name.startswith("add_a_")
    for block in blocks(path) if block.language == "python" and "models/" not in block.code])
def test_examples_in_python_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what they save stays there
    names = {}
    exec(compile(code, "example", "exec"), names)  # noqa: S102
    if "backbone" in names:
        assert names["picture"].shape == (1, 768, 768, 3)


def test_wrong_commands_are_seen():
    with pytest.raises(Exception, match="--k-hh"):
        parse(["train", "heads", "--out", "x", "--k-hh", "3"])
    with pytest.raises(Exception, match="out"):
        parse(["train", "self-distill"])
    with pytest.raises(AssertionError, match="trian"):
        parse(["trian"])


# Commands that are not ours


def flags(path: Path) -> set[str]:
    """Flags of a program whose `main` is a typer command."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    entry = next(node for node in tree.body if getattr(node, "name", "") == "main")
    return {"--" + arg.arg.strip("_").replace("_", "-") for arg in entry.args.args}


def check_install(words: list[str]) -> None:
    tree = ast.parse((ROOT / "environment.py").read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(words[:1]) <= {"app", "test"} & functions or words == ["--help"]


def check_app(words: list[str]) -> None:
    assert {word for word in words if word.startswith("--")} <= flags(ROOT / "studio" / "start.py")


def check_script(words: list[str], folder: str = "lab/benchmarks") -> None:
    script = ROOT / folder / words[0]
    if words[1:] == ["--list"]:
        words = words[:1]
    if "argparse" not in script.read_text(encoding="utf-8"):
        return  # takes no arguments, and a test of its own imports it
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.syspath_prepend(script.parent)
        patch.setattr(sys, "argv", [str(script), *words[1:], "--help"])
        runpy.run_path(str(script), run_name="__main__")
    assert not ended.value.code


def check_pytest(words: list[str]) -> None:
    paths = [word for word in words if word.startswith("tests")]
    assert paths and all((ROOT / path).exists() for path in paths)


def check_pip(words: list[str]) -> None:
    known = "".join((ROOT / file).read_text(encoding="utf-8")
                    for file in ("pyproject.toml", "environment.py"))
    if "-r" in words:
        assert Path(words.pop(words.index("-r") + 1)).name == "requirements.txt"
    for word in (word for word in words if re.match(r"[a-z]", word)):
        package, _, version = word.partition("==")
        if not package.startswith("http"):
            assert re.search(rf"\b{re.escape(package)}\b", known) and version in known, word


def check_accelerate(words: list[str]) -> None:
    """What accelerate starts is ours, and its own flags are known to it."""
    from accelerate.commands.launch import launch_command_parser

    known = launch_command_parser().parse_args(words)
    assert known.module and known.training_script == "ssd_core"
    parse(known.training_script_args)


def check_curl(words: list[str]) -> None:
    from studio.api import ENDPOINTS
    from studio.programs import NAMES

    path = urlsplit(words[-1]).path
    called = re.fullmatch(r"/gradio_api/call/(?:v2/)?(\w+)(?:/EVENT_ID)?", path)
    known = NAMES if called else [f"/api{path}" for _, path, _ in ENDPOINTS]
    assert (called[1] if called else path) in known


def nothing(words: list[str]) -> None:
    """Makes or enters an environment, or is plainly right."""


KINDS: dict[str, Callable[[list[str]], None]] = {
    r"python install\.py": check_install,
    r"(?:\.venv/bin/)?python gradio_app\.py|ssd app\b": check_app,
    r"python lab/benchmarks/": check_script,
    r"python tools/": partial(check_script, folder="tools"),
    r"python tests/check_types\.py$": nothing,
    r"(?:\w+=\S+ )*python -m pytest": check_pytest,
    r"(?:.*[\\ ]|)pip install": check_pip, r"ruff check \.$": nothing, r"mypy\b": nothing,
    # The suites' own repositories, and their scorers as those describe them.
    r"(?:cd|git clone|hf download) ": nothing, r"\./evaluation/|python \./evaluation/": nothing,
    r"bash dpg_bench/|accelerate launch \./dpg_bench/": nothing,
    r"accelerate launch": check_accelerate,
    r"curl ": check_curl, r"source \.venv/bin/activate$": nothing, r"py -m venv \.venv$": nothing}


@pytest.mark.parametrize("line", dict.fromkeys(line for _, line in FOUND
                                               if not line.startswith(OURS)))
def test_other_commands_name_what_is_there(line):
    pattern = next((kind for kind in KINDS if re.match(kind, line)), None)
    assert pattern, f"say in this file how `{line}` is tested"
    KINDS[pattern](line[re.match(pattern, line).end():].split())


def test_commands_are_found_where_there_are_some():
    documents = {path.name for path, line in FOUND if line.startswith(OURS)}
    assert {"README.md", "cli.md", "training.md", "backbones.md"} <= documents
    assert len(FOUND) > 30
