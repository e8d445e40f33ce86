"""A disk that is full, or a program that is killed, at any write: what was there is there after."""

import json
import os
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest
import torch
from support.failing_disk import contents, watched
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import SSDError
from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.engine.heads import FORMAT, save_heads
from ssd_core.files import read_safetensors, write_text
from ssd_core.kept_entries import KeptEntries
from ssd_core.output.recipe import png_bytes, read_recipe, save_png
from ssd_core.runs.batch.queue import TaskQueue
from ssd_core.state_files import StateFile
from ssd_core.train.versions import save_version
from studio.favourites import NAME, Favourites
from studio.history import History

MODEL = ("--backbone", "tiny.safetensors")
PICTURE = torch.zeros(8, 8, 3)
HEADS = "learned/heads.safetensors"
HUNDRED = [f"2026-01-01/{number}.png" for number in range(100)]


def generate(folder):
    main(["generate", "a house", "--out", "old.png", *MODEL])


def edit(folder):
    main(["edit", "base.png", "a house", "--box", "0,0,64,64", "--out", "old.png", *MODEL])


def render(folder):
    main(["render", "prompts.txt", "--out", "renders", *MODEL])


def lesson(folder):
    teach(folder / "learned" / "heads.safetensors", tiny_postcard(), 4)


def teach(file, backbone, seed):
    save_version(file, partial(save_heads, random_heads(backbone, 1, 1, seed=seed), file, backbone,
                               {}))


def favourite(folder):
    Favourites(folder, {}).mark(["2026-01-01/new.png"], True)


def upload(folder):
    History(folder / "outputs").add(png_bytes(torch.ones(8, 8, 3), None), "sent.png")


def small_store(folder):
    KeptEntries("kept.json", str, str).put("b", "2")


DEEDS = (generate, edit, render, lesson, favourite, upload, small_store)


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A folder with a small model and something of every kind."""
    folder = tmp_path_factory.mktemp("before")
    backbone = tiny_postcard()
    postcard.save(backbone, folder / "tiny.safetensors")
    here = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["generate", "a boat", "--out", "base.png", *MODEL]) == 0
    finally:
        os.chdir(here)
    shutil.copy(folder / "base.png", folder / "old.png")
    for seed in range(4):  # the least of these hashes is the oldest version
        teach(folder / "learned" / "heads.safetensors", backbone, seed)
    (folder / "prompts.txt").write_text("a house\n")
    write_text(folder / NAME, json.dumps(HUNDRED))
    write_text(folder / "kept.json", '{"a": "1"}')
    save_png(folder / "outputs" / "2026-01-01" / "a.png", PICTURE, None)
    return folder


def readable(name: str, content: bytes, folder: Path) -> bool:
    """Whether a file that was replaced is whole."""
    path = folder / f"now{Path(name).suffix}"
    path.write_bytes(content)
    if name == NAME:
        return set(json.loads(content)) > set(HUNDRED)
    if name == "kept.json":
        return json.loads(content) == {"a": "1", "b": "2"}
    if name.endswith(".png"):
        return read_recipe(path)["prompt"] in ("a house", "a boat")
    return bool(read_safetensors(path, FORMAT))


@pytest.mark.parametrize("deed", DEEDS)
def test_a_full_disk_and_a_kill_at_every_write_lose_nothing(before, tmp_path, monkeypatch, deed):
    apart = tmp_path / "apart"
    apart.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(apart))

    def run(number: int, fails: int | None):
        """The deed in a fresh copy of the folder; its watch, and what is there afterwards."""
        folder = tmp_path / str(number)
        shutil.copytree(before, folder)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("SSD_CACHE", str(folder) if deed is small_store else "off")
        with watched(folder, monkeypatch, fails) as watch:
            try:
                deed(folder)
            except SSDError:
                assert fails is not None
        return watch, contents(folder)

    old = contents(before)
    versions = [name for name in old if "/heads-" in name]
    watch, done = run(0, None)
    assert watch.count >= 3 and done != old
    some = sorted({1, 2, watch.count // 2, watch.count - 1, watch.count})
    failed = [run(number, number)[1] for number in some]
    for state in (*watch.states, *failed, done):
        for name, content in old.items():
            if state.get(name) != content:  # replaced as a whole; the oldest version goes at last
                learned = state.get(HEADS) != old[HEADS] and HEADS in state
                assert ((name in state and readable(name, state[name], apart))
                        or (learned and name in versions)), (deed.__name__, name)
    for state in failed:
        assert [name for name, content in state.items() if not content] == []
        assert len([name for name in state if "/heads-" in name]) <= 3


def test_an_unreadable_file_is_put_aside_and_said(tmp_path, caplog):
    file = tmp_path / NAME
    problems: dict[str, str] = {}
    favourites = Favourites(tmp_path, problems)
    for text in ('["a.png",]', '\ufeff["a.png"]'):  # by hand, and by Notepad
        file.write_text(text, encoding="utf-8")
        assert favourites.ids == {"a.png"} and not problems
    for text in ('["a.png"', '{"version": 2, "ids": ["a.png"]}', ""):
        file.write_text(text)
        assert favourites.ids == frozenset() and NAME in problems
        favourites.mark(["b.png"], True)
        assert favourites.ids == {"b.png"} and not problems
        aside = max(tmp_path.glob(f"{NAME}.unreadable*"))
        assert aside.read_text() == text and aside.name in caplog.messages[-1]
    assert len(caplog.messages) == 3


def test_two_programs_lose_no_mark(tmp_path):
    def mark(own: str) -> None:
        favourites = Favourites(tmp_path, {})
        for number in range(25):
            favourites.mark([f"{own}{number}"], True)
    threads = [threading.Thread(target=mark, args=(own,)) for own in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Favourites(tmp_path, {}).ids) == 100


def test_a_change_waits_for_nobody_where_a_drive_has_no_locks(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise NotImplementedError
    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    file = StateFile(tmp_path / "a.json", list, list, list)
    assert file.change(lambda known: [*known, 1]) == file.read() == [1]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask, and links for few")
def test_the_umask_and_a_link_are_obeyed(tmp_path):
    own, earlier = tmp_path / "own.png", os.umask(0o077)
    try:
        save_png(own, PICTURE, None)
    finally:
        os.umask(earlier)
    assert own.stat().st_mode & 0o777 == 0o600
    save_png(own, PICTURE, None)
    assert own.stat().st_mode & 0o777 == 0o600, "as the file that it replaces"
    link = tmp_path / "link.png"
    link.symlink_to("own.png")
    save_png(link, torch.ones(8, 8, 3), None)
    assert link.is_symlink() and own.read_bytes() == png_bytes(torch.ones(8, 8, 3), None)


def test_an_interrupted_render_leaves_no_claim(before, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    shutil.copytree(before, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(TaskQueue, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["render", "prompts.txt", "--out", "renders", *MODEL]) == 130
    assert list((folder / "renders").glob(".*.claim")) == []
