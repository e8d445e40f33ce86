"""The things of a picture over HTTP: what is told, what is kept, and what gives way to a run."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
import torch
from support.drawings import wished

from ssd_core.output.packed import unpack_mask
from ssd_core.runs.request import Request
from studio import things
from studio.jobs import Worker
from studio.library import Library

PROMPT = ("two things, a red house on the right and a green tree on the left, on a meadow, "
          "hills behind, under a clear sky, at noon")
NOTHING = {"prompt": None, "negative": None, "rows": None, "columns": None, "seed": None,
           "things": [], "scene": []}


@pytest.fixture(scope="module")
def library(models):
    """With the bundled postcard, as the tiny ones draw nothing that anybody would know."""
    return Library(models, "postcard", device="cpu")


@pytest.fixture(scope="module")
def drawn(library):
    """A picture, drawn once, and its recipe."""
    loaded = library.current
    result = Request(loaded.backbone, loaded.heads,
                     wished(prompt=PROMPT, seed=5, expand=False, method="rolling")).run()
    (picture,) = result.pictures()
    return picture


@pytest.fixture
def saved(history, drawn):
    """Saves the picture; its id. changed: other values of its recipe."""
    def save(kind="picture", metadata=True, **changed):
        recipe = {**drawn.recipe, **changed}
        return history.save(drawn.pixels, recipe, kind, metadata=metadata).id

    return save


@pytest.fixture
def told(client):
    def ask(id_, language="en"):
        answer = client.get("/api/things", params={"id": id_},
                            headers={"accept-language": language})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


@contextmanager
def running(worker: Worker):
    """A run that goes on until the block ends."""
    over, begun = threading.Event(), threading.Event()

    def work(job):
        begun.set()
        over.wait(30)

    job = worker.submit("draw", work)
    assert begun.wait(30)
    try:
        yield
    finally:
        over.set()
    assert job.wait(30)


def test_a_picture_tells_its_things_and_what_each_may_become(told, saved, monkeypatch):
    id_ = saved()
    first = told(id_)
    assert (first["prompt"], first["negative"], first["seed"]) == (PROMPT, None, "5")
    assert (first["rows"], first["columns"]) == (24, 24)
    assert [thing["name"] for thing in first["things"]] == ["green tree, left", "red house, right"]
    for thing in first["things"]:
        top, left, rows, columns = thing["box"]
        mask = unpack_mask(thing["mask"])
        assert thing["sure"] and mask[top : top + rows, left : left + columns].sum() == mask.sum()
        assert [each["kind"] for each in thing["choices"]] == [
            "colour", "kind", "place", "remove", "another"]
    colour, _, place, *_ = first["things"][1]["choices"]
    assert colour["title"] == "Colour" and {
        option["label"]: option["prompt"] for option in colour["options"]
    }["blue"] == PROMPT.replace("red", "blue")
    assert [option["label"] for option in colour["options"] if option["now"]] == ["red"]
    assert [option["at"] for option in place["options"]] == [0.0, 0.5, 1.0]
    assert [each["kind"] for each in first["scene"]] == ["add", "ground", "behind",
                                                               "weather", "time"]
    assert told(id_, "zh")["things"][0]["choices"][0]["title"] == "颜色"
    monkeypatch.setattr(things, "touchable", None)  # what is known is not read again
    assert told(id_) == first


def test_a_run_is_not_slowed(told, saved, worker, services, monkeypatch):
    monkeypatch.setattr(things, "touchable", lambda *_, **__: {"things": []})
    known, other = saved(), saved()
    first = told(known)
    with running(worker):
        assert told(other) == {"busy": True} and told(known) == first

    def interrupted(*_, before_pass, **__):
        with running(worker):
            before_pass()
        raise AssertionError("it went on")

    monkeypatch.setattr(things, "touchable", interrupted)
    assert told(other) == {"busy": True} and len(services.things._known) == 1


def test_what_no_words_are_known_of_has_no_things(told, saved, history, drawn, library):
    added = history.save(drawn.pixels, None).id
    small = history.save(torch.zeros(40, 60, 3), None).id
    stopped = saved("partial", stopped_rows=9)
    elsewhere = saved(backbone={"name": "another", "sha256": "0" * 64})
    for id_ in (added, small, stopped, elsewhere):
        assert told(id_) == NOTHING


def test_a_picture_without_its_recipe_is_known_while_the_app_runs(told, saved, monkeypatch):
    monkeypatch.setattr(things, "touchable", lambda backbone, tokens, prompt, **_: {
        "rows": len(tokens), "words": prompt})
    answer = told(saved(metadata=False))
    assert answer["prompt"] == answer["words"] == PROMPT
    assert answer["seed"] is None and answer["rows"] == 24


def test_the_latest_pictures_are_kept_and_none_with_another_model(told, saved, services, library,
                                                                 monkeypatch):
    monkeypatch.setattr(things, "touchable", lambda *_, **__: {"things": [], "scene": []})
    ids = [saved() for _ in range(things.MOST + 1)]
    for id_ in ids:
        told(id_)
    assert len(services.things._known) == things.MOST
    with library.put_away():
        assert not services.things._known


def test_a_picture_that_is_not_there_is_said_in_one_line(client):
    answer = client.get("/api/things", params={"id": "2026-01-01/none.png"})
    assert answer.status_code == 404 and "no such picture" in answer.json()["error"]
