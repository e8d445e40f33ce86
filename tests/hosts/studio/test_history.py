"""Saved pictures: names, order, restarts, what is not a picture, what must not be reached."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import threading
import time
import zlib

import pytest
import torch
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from support.drawings import wished

from ssd_core import Grid, Sampling, SSDError, methods
from ssd_core.output import picture_files
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import CHUNK, make_recipe, pack, save_png
from studio import entries as entries_module
from studio import history as history_module
from studio.history import History, restore
from studio.settings import as_json

PICTURE = torch.rand(24, 32, 3, generator=torch.Generator().manual_seed(0))


class Named:
    """What a recipe tells of a backbone."""

    name, sha256, size, grid = "mock", "5eed" * 16, (32, 24), Grid(3, 4)
    preset = methods.PAPER_PRESETS["Janus-Pro"]
    device, dtype, in_int8, sources, lora = torch.device("cpu"), torch.float32, True, (), ()


@pytest.fixture
def recipe():
    drawing = Drawing("a red house", None, methods.SSD(), Sampling(seed=7))
    return make_recipe(Named, None, drawing, torch.ones(3, 4).long(),
                       {"passes": 9, "seconds": {"total": 1.0}})


def test_nothing_was_saved_yet(history):
    assert history.entries() == [] and not history.folder.exists()


def test_a_name_tells_day_time_seed_and_method(history, recipe):
    entry = history.save(PICTURE, recipe)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d/\d{6}-7-ssd\.png", entry.id)
    assert entry.path == history.folder / entry.id and (entry.width, entry.height) == (32, 24)
    assert (entry.kind, entry.seed, entry.method, entry.prompt) == ("picture", 7, "ssd",
                                                                    "a red house")


def test_no_picture_takes_the_place_of_another(history, recipe, monkeypatch):
    monkeypatch.setattr(time, "strftime", lambda form: {"%Y": "2026-01-02"}.get(form[:2], "030405"))
    saved = [history.save(PICTURE * n / 9, recipe) for n in range(5)]
    assert len({entry.path.read_bytes() for entry in saved}) == 5
    assert [entry.path.stem for entry in saved][1:3] == ["030405-7-ssd-2", "030405-7-ssd-3"]


def test_threads_do_not_save_over_each_other(history, recipe):
    saved = []
    threads = [threading.Thread(target=lambda: saved.append(history.save(PICTURE, recipe)))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({entry.id for entry in saved}) == 8


def test_the_newest_comes_first_and_pages_go_on(history, recipe):
    saved = [history.save(PICTURE, recipe).id for _ in range(7)]
    for back, id_ in enumerate(reversed(saved)):  # older ones on an older day
        if back >= 4:
            path = history.folder / "2020-01-01" / id_.split("/")[1]
            path.parent.mkdir(exist_ok=True)
            (history.folder / id_).rename(path)
    first = history.entries(3)
    assert [entry.id for entry in first] == saved[:-4:-1]
    rest = history.entries(10, before=first[-1].id)
    assert [entry.path.name for entry in rest] == [id_.split("/")[1] for id_ in saved[3::-1]]


def test_a_restart_finds_everything_again(history, recipe):
    saved = history.save(PICTURE, recipe)
    assert History(history.folder).entries() == [saved]


def test_unreadable_files_are_named_and_skipped(history, recipe):
    good = history.save(PICTURE, recipe)
    whole = good.path.read_bytes()
    bad = {"empty.png": b"", "cut.png": whole[:-9], "text.png": b"hello" * 99}
    for name, content in bad.items():
        (good.path.parent / name).write_bytes(content)
    (good.path.parent / ".being-written.png").write_bytes(whole[:99])
    (good.path.parent / "notes.txt").write_text("mine")
    assert history.entries() == [good]
    assert {id_.split("/")[1] for id_ in history.problems} == set(bad)
    assert all("\n" not in line for line in history.problems.values())


def test_a_damaged_recipe_does_not_hide_its_picture(history):
    entry = history.write(lambda path: save_png(path, PICTURE, None, {CHUNK: "{"}), None, "picture")
    assert history.entries() == [entry] and entry.method is None


def test_a_saved_picture_carries_its_recipe_or_no_trace_of_it(history, recipe):
    told, silent = (history.save(PICTURE, recipe, metadata=m) for m in (True, False))
    assert history.restore(told.path)[0].prompt == "a red house"
    with Image.open(silent.path) as image:
        assert image.info == {} and silent.prompt is None
    with pytest.raises(SSDError, match="no settings in it"):
        history.restore(silent.path)[0]


def test_kinds_are_told_by_name_even_after_a_restart(history, recipe):
    kinds = [history.save(PICTURE, recipe, kind).kind for kind in ("picture", "race", "partial")]
    assert kinds == ["picture", "race", "partial"]
    assert {entry.kind for entry in History(history.folder).entries()} == set(kinds)


def test_what_cannot_be_saved_leaves_nothing(history, recipe):
    def broken(path):
        raise RuntimeError
    with pytest.raises(RuntimeError):
        history.write(broken, recipe, "picture")
    assert list(history.folder.rglob("*.png")) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path, recipe):
    (tmp_path / "file").write_text("")
    with pytest.raises(SSDError, match="--output-dir"):
        History(tmp_path / "file").save(PICTURE, recipe)
    with pytest.raises(SSDError, match="--output-dir"):
        History(tmp_path / "file").require_writable()


def test_a_folder_that_can_be_written_is_made_and_left_empty(history):
    history.require_writable()
    assert list(history.folder.iterdir()) == []


# Ids from outside


@pytest.mark.parametrize("id_", [
    "../secret.png", "2026-01-01/../../secret.png", "/etc/passwd", "", ".", "x.png\0",
    "2026-01-01/link.png", "x" * 5000])
def test_no_id_leads_outside(history, recipe, tmp_path, id_):
    secret = tmp_path / "secret.png"
    save_png(secret, PICTURE, recipe)
    (history.folder / "2026-01-01").mkdir(parents=True)
    (history.folder / "2026-01-01" / "link.png").symlink_to(secret)
    for reach in (history.entry, history.delete):
        with pytest.raises(SSDError, match="no such picture"):
            reach(id_)
    assert secret.exists()


def test_deleting_takes_one_picture(history, recipe):
    first, second = history.save(PICTURE, recipe), history.save(PICTURE, recipe)
    history.delete(first.id)
    assert history.entries() == [second]
    with pytest.raises(SSDError, match="no such picture"):
        history.entry(first.id)


def test_thumbnails_are_small_and_their_cache_is_bounded(history, recipe, monkeypatch):
    monkeypatch.setattr(history_module, "KEPT_THUMBNAILS", 2)
    entries = [history.save(torch.rand(600, 300, 3), recipe) for _ in range(4)]
    for entry in entries:
        with Image.open(io.BytesIO(history.thumbnail(entry))) as image:
            assert image.format == "JPEG" and image.size == (128, 256)
    assert len(history._thumbnails) == 2
    assert history.thumbnail(entries[-1]) is history.thumbnail(entries[-1])


# Restoring


def comfyui_png(path, recipe):
    """As the pack's Save Image node writes it: with the workflow beside the recipe."""
    save_png(path, PICTURE, recipe, {"prompt": json.dumps({"1": {}}), "workflow": "{}"})


@pytest.mark.parametrize("saver", [save_png, comfyui_png], ids=["studio", "comfyui"])
def test_settings_come_back_from_any_png_with_a_recipe(tmp_path, recipe, saver):
    path = tmp_path / "x.png"
    saver(path, PICTURE, recipe) if saver is save_png else saver(path, recipe)
    drawing, told = restore(path)
    assert as_json(drawing) == as_json(wished(
        prompt="a red house", seed=7, method="ssd", k_h=None, cfg=5.0, min_p=0.0, temperature=1.0,
        top_p=1.0, top_k=0, size="32x24", prompt_expanded="a red house", expand=False))
    assert told["backbone"]["name"] == "mock"


def refused(path):
    with pytest.raises(SSDError) as caught:
        restore(path)
    line = str(caught.value)
    assert "\n" not in line and len(line) < 400
    return line


def with_chunk(path, text):
    info = PngInfo()
    info.add_text(CHUNK, text)
    Image.new("RGB", (8, 8)).save(path, pnginfo=info)


@pytest.mark.parametrize("content", [b"", b"GIF89a" * 50, b"\x89PNG\r\n\x1a\n", b"\xff" * 4096])
def test_what_is_no_png_is_refused(tmp_path, content):
    path = tmp_path / "x.png"
    path.write_bytes(content)
    assert "not a whole" in refused(path)


@pytest.mark.parametrize("left", [0.3, 0.6, 0.95])
def test_a_truncated_picture_is_refused(tmp_path, recipe, left):
    path = tmp_path / "x.png"
    save_png(path, torch.rand(64, 64, 3), recipe)
    path.write_bytes(path.read_bytes()[: int(left * path.stat().st_size)])
    assert "not a whole" in refused(path)


def test_damaged_pixels_are_refused(tmp_path, recipe):
    path = tmp_path / "x.png"
    save_png(path, torch.rand(64, 64, 3), recipe)
    raw = bytearray(path.read_bytes())
    raw[-5000] ^= 0xFF
    path.write_bytes(raw)
    assert "not a whole" in refused(path)


@pytest.mark.parametrize("text", [
    "{", "[]", "null", json.dumps({"version": 99}), "[" * 5000, "x" * (2 << 20),
    json.dumps({"version": 1, "method": {}})])
def test_hostile_metadata_is_refused(tmp_path, text):
    path = tmp_path / "x.png"
    with_chunk(path, text)
    assert "recipe" in refused(path)


def test_a_text_bomb_is_refused(tmp_path):
    path = tmp_path / "x.png"
    Image.new("RGB", (8, 8)).save(path)
    body = CHUNK.encode() + b"\0\0" + zlib.compress(b"x" * (100 << 20))
    chunk = len(body).to_bytes(4, "big") + b"zTXt" + body + zlib.crc32(b"zTXt" + body).to_bytes(
        4, "big")
    raw = path.read_bytes()
    path.write_bytes(raw[:33] + chunk + raw[33:])
    refused(path)


@pytest.mark.parametrize("change", [
    {"k_h": 10**9, "rounds": "x"}, {"method": "lightning"}, {"seed": -1},
    {"size": [-5, 0]}, {"tokens": pack(torch.ones(3, 4)) | {"shape": [9, 9]}}])
def test_a_recipe_that_lies_is_refused_by_the_files_name(tmp_path, recipe, change):
    path = tmp_path / "x.png"
    with_chunk(path, json.dumps({**recipe, **change}))
    line = refused(path)
    assert str(path) in line and "damaged" in line


def test_pictures_beyond_all_measure_are_refused(tmp_path, recipe, monkeypatch):
    path = tmp_path / "x.png"
    save_png(path, PICTURE, recipe)
    monkeypatch.setattr(picture_files, "MOST_PIXELS", 99)
    assert "too many" in refused(path)
    monkeypatch.setattr(entries_module, "MOST_BYTES", 99)
    assert "at most" in refused(path)


def test_a_missing_file_is_named(tmp_path):
    assert "no such file" in refused(tmp_path / "gone.png")


def test_pictures_beside_the_days_are_listed_by_the_day_of_their_file(history):
    """`install.py app` leaves its first pictures in the folder itself."""
    new = history.save(torch.zeros(16, 16, 3), None)
    first = history.folder / "ar.png"
    shutil.copy(new.path, first)
    os.utime(first, (86400 * 365, 86400 * 365))
    assert [entry.id for entry in history.entries()] == [new.id, "ar.png"]
    assert [entry.id for entry in history.entries(before=new.id)] == ["ar.png"]
    assert history.entries(1) == [new] and history.entry("ar.png").path == first
    os.utime(first)
    assert {entry.id for entry in history.entries()} == {new.id, "ar.png"}
    (history.folder / os.fsdecode(b"\xff.png")).write_bytes(first.read_bytes())
    assert len(history.entries()) == 2, "no page could show that name"
