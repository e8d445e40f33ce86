"""A batch of the app that is drawn one picture after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support.solo import PIXELS, SIDE, solo

from ssd_core import SSDError
from ssd_core.output.recipe import read_recipe, recipe_tokens
from ssd_core.runs import request
from studio import runs
from studio.history import restore
from studio.settings import as_json, asked


@pytest.fixture
def in_turn(monkeypatch):
    """One picture after the other is taken to be sooner, as often on CPUs."""
    monkeypatch.setattr(request, "sooner_alone", lambda *_: True)


@pytest.mark.parametrize("method", ["ssd", "exact"])
def test_pictures_in_turn_are_those_drawn_at_once(library, history, settings, ended, in_turn,
                                                  method):
    settings = asked({"method": method, "pictures": 3}, settings)
    job = ended(runs.draw(library, history, settings))
    drawn = job.result
    alone = [asked({"seed": seed, "pictures": 1}, settings) for seed in (7, 8, 9)]
    assert torch.equal(drawn.tokens, solo(library, settings)) and [
        picture.facts.seed for picture in drawn.saved.pictures] == [7, 8, 9]
    for wish, entry in zip(alone, drawn.entries, strict=True):
        restored, own = restore(entry.path)[0], library.current.backbone.preset
        assert as_json(restored) == as_json(asked({
            "cfg": own.cfg, "min_p": own.min_p, "size": f"{PIXELS}x{PIXELS}", "temperature": 1.0,
            "top_k": 0, "top_p": 1.0, "prompt_expanded": "a red house",
            **vars(restored.method)}, wish))
        again = ended(runs.draw(library, history, restored)).result
        assert torch.equal(again.tokens[0], recipe_tokens(read_recipe(entry.path)))
    assert drawn.stats["ar_passes"] == 3 * SIDE**2 and drawn.stopped_rows is None
    assert [(m["kind"], m["panel"]) for m in job.messages][:3] == [
        ("started", panel) for panel in range(3)]
    assert [m["panel"] for m in job.messages if m["kind"] == "finished"] == [0, 1, 2]
    assert job.progress == 1


def test_each_picture_in_turn_is_saved_before_the_next_is_drawn(library, history, settings, worker,
                                                                in_turn, every_message):
    seen = []

    def work(job):
        tell = job.tell
        job.tell = lambda message: (tell(message), message["kind"] == "rows" and seen.append(
            (message["panel"], len(history.entries()), job.progress)))
        return runs.draw(library, history, replace(settings, pictures=2))(job)

    job = worker.submit("draw", work)
    assert job.wait(30) and job.state == "done"
    assert next(saved for panel, saved, _ in seen if panel == 1) == 1
    progress = [share for *_, share in seen]
    assert progress == sorted(progress)
    assert all((share <= 0.5) == (panel == 0) for panel, _, share in seen if share != 0.5)


def test_stop_in_the_second_keeps_the_first_and_offers_the_rows_of_the_second(
        library, history, settings, worker, ended, in_turn, every_message):
    def work(job):
        tell = job.tell
        job.tell = lambda message: (tell(message), message["panel"] == 1
                                    and message.get("row", 0) >= 5 and job.cancel())
        return runs.draw(library, history, replace(settings, pictures=3))(job)

    job = worker.submit("draw", work)
    assert job.wait(30) and job.state == "cancelled"
    left, rows = job.result, job.result.stopped_rows
    assert history.entries() == left.entries and [one.seed for one in left.entries] == [7]
    assert 1 <= rows < SIDE and left.tokens.shape == (1, SIDE, SIDE)
    whole = solo(library, settings.with_seed(8))
    assert torch.equal(left.tokens[:, :rows], whole[:, :rows])
    assert [m["panel"] for m in job.messages if m["kind"] == "cancelled"] == [1, 2]
    entry = runs.save_partial(history, library, left)
    assert entry.seed == 8 and left.partial == [entry]
    redone = ended(runs.redo(library, history, settings.with_seed(8), entry.path, rows)).result
    assert torch.equal(redone.tokens, solo(library, settings.with_seed(8), keep=left.tokens,
                                           keep_rows=rows))


def test_stop_between_two_pictures_draws_no_other(library, history, settings, worker, in_turn):
    def work(job):
        tell = job.tell
        job.tell = lambda message: (tell(message), message["kind"] == "finished" and job.cancel())
        return runs.draw(library, history, replace(settings, pictures=2))(job)

    job = worker.submit("draw", work)
    assert job.wait(30) and job.state == "cancelled" and job.result.stopped_rows == 0
    assert history.entries() == job.result.entries and len(job.result.entries) == 1
    with pytest.raises(SSDError, match="nothing to save"):
        runs.save_partial(history, library, job.result)


def test_a_redo_in_turn_keeps_the_top_of_each(library, history, settings, ended, in_turn):
    first = ended(runs.draw(library, history, settings)).result
    wish = asked({"seed": 8, "pictures": 2}, settings)
    drawn = ended(runs.redo(library, history, wish, first.entries[0].path, 5)).result
    assert all(torch.equal(one[:5], first.tokens[0, :5]) for one in drawn.tokens)
    assert torch.equal(drawn.tokens, solo(library, wish, keep=first.tokens, keep_rows=5))


def test_pictures_in_turn_need_the_memory_of_one(library, settings, in_turn, monkeypatch):
    one = library.require_room(settings)
    assert library.require_room(replace(settings, pictures=5)) == one
    monkeypatch.setattr(request, "sooner_alone", lambda *_: False)
    assert library.require_room(replace(settings, pictures=5)) == 5 * one
