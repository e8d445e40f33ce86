"""Sketches of the next picture: they give way to every run, and nothing of them is saved."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.drawings import wished  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from ssd_core.engine.methods import Rolling  # noqa: E402
from ssd_core.engine.tuning import Cost, Tuning  # noqa: E402
from ssd_core.runs.live import LiveRun  # noqa: E402
from ssd_core.runs.request import Request  # noqa: E402
from studio import sketches  # noqa: E402
from studio.orders import DrawOrder  # noqa: E402
from studio.settings import as_json, request_of  # noqa: E402

OTHER = "other"  # a visitor


@pytest.fixture(autouse=True)
def cost(monkeypatch):
    """What plans expect of every run, in milliseconds a pass."""
    costs = {"ms": 1.0}
    tune = Request._tune

    def tuned(request, backbone):
        tune(request, backbone)
        cost = None if costs["ms"] is None else Cost(10, costs["ms"], 1)
        request.tuning = Tuning(request.tuning.method, cost)

    monkeypatch.setattr(Request, "_tune", tuned)
    return costs


@pytest.fixture
def sketch(services):
    def start(owner="me", **settings):
        return sketches.sketch(services, owner, wished(**{"prompt": "a red house", "seed": 7,
                                                          **settings}), "en")

    return start


@pytest.fixture
def held(monkeypatch):
    """Every run waits before its next event until it is let on, pass by pass."""
    gate = threading.Semaphore(0)
    passes = []
    following = LiveRun.__next__

    def next_one(run):
        gate.acquire()
        event = following(run)
        passes.append(event)
        return event

    monkeypatch.setattr(LiveRun, "__next__", next_one)
    gate.passes = passes
    yield gate
    for _ in range(500):
        gate.release()


def test_a_sketch_is_drawn_by_fast_with_draws_own_seed_and_words(services, sketch, monkeypatch):
    seen = []
    monkeypatch.setattr(sketches, "LiveRun", lambda request, **options: seen.append(request)
                        or LiveRun(request, **options))
    drawing = wished(prompt="a {red|blue} house", seed=7, pictures=3, expand=True)
    job = sketches.sketch(services, "me", drawing, "en")
    assert job.wait(30) and job.state == "done", job.error
    now = services.library.current
    drawn = request_of(DrawOrder(drawing).drawn, now.backbone, now.heads)
    assert isinstance(seen[0].method, Rolling) and seen[0].pictures == 1
    assert (seen[0].words[0], seen[0].seeds[0]) == (drawn.words[0], drawn.seeds[0])
    kinds = [message["kind"] for message in job.messages]
    assert kinds[0] == "started" and kinds[-1] == "finished" and "rows" in kinds


def test_nothing_of_a_sketch_is_saved_or_listed(services, sketch, client):
    job = sketch()
    assert job.wait(30) and job.result is None
    assert services.history.entries() == [] and services.worker.of("me") == []
    assert client.get("/api/jobs").json() == {"jobs": []}


def test_a_run_cancels_a_sketch_within_a_pass_and_is_not_kept_waiting(services, sketch, held):
    job = sketch()
    held.release()
    held.release()
    drawn = services.worker.submit("draw", lambda job: "drawn", OTHER)
    assert job.cancelled and services.worker.position(drawn) == 1
    held.release()
    assert drawn.wait(30) and job.wait(30) and job.state == "cancelled"
    assert len(held.passes) <= 3


def test_another_sketch_takes_the_place_of_the_visitors_own(services, sketch, held):
    first = sketch()
    held.release()
    second = sketch(prompt="a blue house")
    assert first.cancelled and not second.cancelled
    for _ in range(500):
        held.release()
    assert second.wait(30) and second.state == "done" and first.state == "cancelled"
    assert services.worker.of("me", sketches.SKETCH)[-1] is second


def test_the_same_sketch_is_not_drawn_again(sketch):
    first = sketch()
    assert first.wait(30)
    assert sketch() is first and sketch(pictures=2) is first
    assert sketch(seed=8) is not first


def test_no_sketch_is_drawn_while_anybodys_run_goes_on(services, sketch):
    going = threading.Event()
    run = services.worker.submit("draw", lambda job: going.wait(30), OTHER)
    job = sketch()
    assert job.state == "cancelled" and job.messages == []
    going.set()
    assert run.wait(30)


@pytest.mark.parametrize(("ms", "line"), [(800.0, "would take about 8 s"), (None, "first picture")])
def test_a_slow_machine_draws_none_and_says_why(services, sketch, client, cost, ms, line):
    cost["ms"] = ms
    with pytest.raises(SSDError, match=line):
        sketch()
    plan = client.post("/api/plan", json={"settings": as_json(wished(prompt="a red house"))}).json()
    assert plan["sketch"]["seconds"] == (ms and 10 * ms / 1000)
    assert plan["sketch"]["problem"] and services.worker.of("me", sketches.SKETCH) == []


def test_words_that_cannot_be_drawn_are_refused_in_one_line(client, services):
    answer = client.post("/api/sketch", json={"settings": as_json(
        replace(wished(seed=7), prompt=""))})
    assert answer.status_code == 400 and "prompt" in answer.json()["error"]
    answer = client.post("/api/sketch", json={"settings": as_json(wished(prompt="a red house"))})
    job = services.worker.job(answer.json()["id"])
    assert job.wait(30) and client.delete(f"/api/jobs/{job.id}").status_code == 200
    assert services.worker.job(job.id) is None
