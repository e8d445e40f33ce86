"""How the command line names and saves pictures: beside other programs, stopped, on a full disk."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.mock_backbone import tiny_postcard

from ssd_core.backbones import postcard
from ssd_core.cli import generate, main, saving
from ssd_core.output.recipe import read_recipe

ROOT = Path(__file__).resolve().parents[2]
MODEL = ("--backbone", "tiny.safetensors")
LOAD = generate.load


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty folder with a small model, and room for temporary files beside it."""
    folder, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for each in (folder, elsewhere):
        each.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    postcard.save(tiny_postcard(), folder / "tiny.safetensors")
    return folder


def pictures() -> list[str]:
    return sorted(path.name for path in Path().rglob("*.png"))


def beside(*arguments, **options) -> subprocess.Popen:
    """The command line in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "ssd_core", *arguments, *MODEL],
                            env={**os.environ, "PYTHONPATH": str(ROOT)}, **options)


def meanwhile(monkeypatch, act) -> None:
    """Do something after a command has chosen its names, and before it draws."""
    def load(*arguments):
        act()
        return LOAD(*arguments)
    monkeypatch.setattr(generate, "load", load)


def test_two_runs_at_once_keep_their_pictures(monkeypatch):
    meanwhile(monkeypatch, lambda: beside("generate", "a boat", "--batch", "2").wait())
    assert main(["generate", "a house", "--batch", "2", *MODEL]) == 0
    assert sorted(read_recipe(name)["prompt"] for name in pictures()) == [
        "a boat", "a boat", "a house", "a house"]


def test_what_fails_leaves_no_file_and_no_folder(here):
    assert main(["generate", "a house", "--heads", "nowhere", *MODEL]) == 2
    assert main(["compare", "a house", "--methods", "ssd", "--heads", "none", *MODEL]) == 2
    assert main(["generate", "a house", "--method", "ssd", "--heads", "none", *MODEL]) == 2
    assert [path.name for path in here.iterdir()] == ["tiny.safetensors"]


def test_ctrl_c_before_a_row_is_drawn_leaves_no_file(monkeypatch, here):
    def stop():
        assert pictures() == ["tiny-0.png"]
        raise KeyboardInterrupt

    meanwhile(monkeypatch, stop)
    assert main(["generate", "a house", *MODEL]) == 130
    assert pictures() == []


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without asking it")
def test_a_process_that_is_told_to_end_leaves_no_file():
    run = beside("generate", "a house", "--method", "ar", "--batch", "64")
    while not pictures():
        assert run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 143 and pictures() == []


def full_disk(monkeypatch, *folders: Path) -> None:
    """These folders have no room for another byte, though files can be created."""
    def refuse(path, data):
        if any(path.absolute().is_relative_to(folder) for folder in folders):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        with open(path, "wb") as file:
            return file.write(data)
    monkeypatch.setattr(Path, "write_bytes", refuse)


@pytest.mark.parametrize(("out", "batch"), [((), 1), (("--out", "x.png"), 2)])
def test_on_a_full_disk_the_pictures_are_saved_elsewhere(monkeypatch, here, capsys, out, batch):
    full_disk(monkeypatch, here)
    assert main(["generate", "a house", "--batch", str(batch), *out, *MODEL]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "No space left" in line and len(line) <= 300
    folder = Path(line.rpartition("what was drawn is in ")[2])
    saved = list(folder.iterdir())
    assert len(saved) == batch and folder.parent == here.parent / "elsewhere"
    assert {read_recipe(path)["prompt"] for path in saved} == {"a house"}
    assert pictures() == []


def test_with_no_room_anywhere_one_line_says_so(monkeypatch, here, capsys, tmp_path):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(saving, "MEMORY", tmp_path)
    full_disk(monkeypatch, tmp_path)
    assert main(["generate", "a house", *MODEL]) == 2
    assert "No space left" in capsys.readouterr().err.splitlines()[-1]
    assert list(tmp_path.rglob("*.png")) == [] and list(tmp_path.glob("ssd-*")) == []


def photograph(name: str, size: tuple[int, int]) -> str:
    """A photograph that a camera held upright: the file's pixels lie on their side."""
    image = Image.linear_gradient("L").convert("RGB").resize(size)
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: turn right
    image.save(name, exif=exif)
    return name


@pytest.mark.parametrize("name", ["photo.jpg", "photo.webp"])
def test_a_photograph_is_edited_varied_and_kept_as_in_the_app(name, capsys):
    photograph(name, (640, 360))
    assert main(["edit", name, "a boat", "--rows", "20", "--out", "edit.png", *MODEL]) == 0
    assert "cut and scaled to" in capsys.readouterr().out
    assert main(["vary", name, "--from", "a boat", "--count", "1", "--out", "v.png", *MODEL]) == 0
    assert main(["generate", "a boat", "--keep", name, "--keep-rows", "20", "--out", "k.png",
                 *MODEL]) == 0
    assert {read_recipe(each)["prompt"] for each in ("edit.png", "v.png", "k.png")} == {"a boat"}
    edited = np.asarray(Image.open("edit.png").convert("L"), dtype=float)
    assert edited[:300, :100].mean() > edited[:300, -100:].mean() + 90, "it lies on its side"
