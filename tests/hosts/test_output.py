"""A run whose output streams are closed, full or None draws, saves, and ends as it should."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.mock_backbone import tiny_postcard

from ssd_core.backbones import postcard
from ssd_core.cli import COMMANDS, OF_THE_LAB, main
from ssd_core.output.recipe import read_recipe

ROOT = Path(__file__).resolve().parents[2]
FULL = Path("/dev/full")
MODEL = ("--method", "rows", "--backbone", "tiny.safetensors")
# Each command with something cheap.
CHEAP = {
    "generate": ("a house", "--out", "x.png", *MODEL),
    "edit": ("base.png", "a house", "--box", "0,0,64,64", "--out", "x.png", *MODEL),
    "render": ("prompts.txt", "--out", "x", *MODEL),
    "vary": ("base.png", "--out", "x.png", "--count", "1", *MODEL[2:]),
    "send": ("base.png", "--out", "x.html"),
    "compare": ("a house", "--methods", "rows", "--out", "x", *MODEL[2:]),
    "plan": MODEL, "methods": (), "backbones": (), "fit": ("tiny.safetensors",),
    "convert": ("tiny.safetensors",), "selftest": ("nowhere.safetensors",),
    "bench": ("--methods", "nothing", *MODEL[2:]), "download": ("nothing",),
    "colours": ("nowhere", *MODEL[2:]), "app": ("~nobody-of-this-name",), "train": ("--help",)}
FAILS = {"selftest", "bench", "download", "colours", "app", "convert"}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    postcard.save(tiny_postcard(), folder / "tiny.safetensors")
    (folder / "prompts.txt").write_text("a house\n")
    earlier = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["generate", "a boat", "--out", "base.png", *MODEL]) == 0
        yield folder
    finally:
        os.chdir(earlier)


def stream(kind: str):
    if kind == "none":
        return None
    opened = open(FULL if kind == "full" else os.devnull, "w")  # noqa: SIM115 - closed next
    if kind == "closed":
        opened.close()
    return opened


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("name", CHEAP)
def test_every_command_ends_as_with_a_reader(here, monkeypatch, name):
    drawn = CHEAP[name][-2:] == MODEL[2:] and name != "plan"
    kinds = ("closed", "full", "none") if name == "generate" or not drawn else ("full",)
    for kind in kinds:
        for made in here.glob("x*"):
            made.unlink() if made.is_file() else [file.unlink() for file in made.iterdir()]
        with monkeypatch.context() as patch:
            for each in ("stdout", "stderr"):
                patch.setattr(sys, each, stream(kind))
            try:
                code = main([name, *CHEAP[name]])
            except SystemExit as ended:  # of the app
                code = ended.code
        assert code == (2 if name in FAILS or kind == "full" else 0), kind
        if "x.png" in CHEAP[name]:
            assert read_recipe(Path("x.png"))["prompt"] in ("a house", "a boat"), kind


def test_no_command_is_left_out():
    assert CHEAP.keys() == COMMANDS.keys() - set(OF_THE_LAB)


@pytest.mark.skipif(os.name == "nt", reason="a shell of Unix closes streams")
def test_streams_that_a_shell_has_closed(here):
    run = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m ssd_core generate house --out y.png --backbone "
                     "tiny.safetensors <&- >&- 2>&-"], env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert run.returncode == 0 and read_recipe(Path("y.png"))


def test_the_reader_of_a_pipe_may_leave(here):
    script = "import sys; from ssd_core.cli import main; sys.exit(main(['methods']))"
    run = subprocess.Popen([sys.executable, "-u", "-c", script], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, cwd=ROOT)
    run.stdout.close()
    assert run.wait(120) == 0 and run.stderr.read() == b""
