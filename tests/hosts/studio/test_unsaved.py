"""A disk that is full: room is required before a run, and what was drawn is not lost."""

from __future__ import annotations

import errno
import io
from dataclasses import replace
from pathlib import Path

import torch
from PIL import Image
from support.drawings import by_methods

from ssd_core.output.recipe import recipe_of, recipe_tokens
from studio import history as history_module
from studio import races, runs
from studio.history import History
from studio.unsaved import MOST, Unsaved


def full(path, data):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_picture_that_cannot_be_saved_stays_on_the_stage_and_in_memory(
        library, history, settings, ended, monkeypatch):
    work = runs.draw(library, history, replace(settings, pictures=2))
    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        job = ended(work)
    assert job.messages[-1]["kind"] == "finished" and history.entries() == job.result.entries == []
    for picture, tokens in zip(job.result.saved.pictures, job.result.tokens, strict=True):
        name = Path(picture.id)
        with Image.open(io.BytesIO(history.unsaved.get(picture.id))) as image:
            assert torch.equal(recipe_tokens(recipe_of(name, image)), tokens)
    problem = job.result.saved.problem
    assert "only in memory" in problem and "No space left" in problem and "\n" not in problem


def test_a_race_that_cannot_be_saved_keeps_its_pictures(library, history, settings, ended,
                                                        monkeypatch):
    monkeypatch.setattr(Path, "write_bytes", full)
    save = Image.Image.save

    def save_to_memory(image, file, *args, **options):
        if isinstance(file, Path):
            full(file, b"")
        save(image, file, *args, **options)

    monkeypatch.setattr(Image.Image, "save", save_to_memory)
    monkeypatch.setattr(History, "keep_unsaved", lambda *_: "in memory")
    raced = ended(races.race(library, history, by_methods(settings, "ar", "rows"))).result
    assert [picture.id for picture in raced.saved.pictures] == ["in memory"] * 2
    assert raced.sheet is None
    assert "No space left" in raced.saved.problem and history.entries() == []


def test_room_for_the_pictures_is_required_before_a_run(library, history, settings, worker,
                                                        monkeypatch):
    usage = history_module.shutil.disk_usage
    monkeypatch.setattr(history_module.shutil, "disk_usage",
                        lambda place: usage(place)._replace(free=4 << 20))
    for pictures, state in ((1, "done"), (4, "failed")):
        job = worker.submit("draw", runs.draw(library, history,
                                              replace(settings, pictures=pictures)))
        assert job.wait(30) and job.state == state, job.error
    assert "4 MiB are free" in job.error and not job.messages


def test_only_the_latest_are_kept_in_memory_and_not_more_than_fit(monkeypatch):
    unsaved = Unsaved()
    ids = [unsaved.add("one", b"123") for _ in range(MOST + 1)]
    assert unsaved.get(ids[0]) is None and unsaved.get(ids[-1]) == b"123"
    monkeypatch.setattr("studio.unsaved.MOST_BYTES", 6)
    last = [unsaved.add("one", b"123") for _ in range(2)]
    assert [unsaved.get(one) for one in (ids[-1], *last)] == [None, b"123", b"123"]
