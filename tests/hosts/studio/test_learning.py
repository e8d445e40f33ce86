"""Drafts that learn from the pictures of the app: lessons, what they give way to, versions."""

from __future__ import annotations

import gc
import shutil
import threading
import weakref
from functools import partial

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.drawings import wished  # noqa: E402
from test_own_pictures import drawn  # noqa: E402

from ssd_core.engine.heads import stored_heads  # noqa: E402
from ssd_core.output.recipe import read_recipe, recipe_tokens  # noqa: E402
from ssd_core.train import heads, judging, own_pictures, versions  # noqa: E402
from ssd_core.train.heads import HeadsRecipe  # noqa: E402
from ssd_core.train.judging import Judgement  # noqa: E402
from studio import jobs, learning  # noqa: E402
from studio.jobs import TO_RUNS  # noqa: E402
from studio.learning import ENOUGH_NEW, LEARN  # noqa: E402
from studio.library import Library  # noqa: E402
from studio.settings import as_json  # noqa: E402


@pytest.fixture
def models(models, tmp_path):
    """A models folder of this test's own: lessons write to it."""
    shutil.copytree(models, tmp_path / "models")
    return tmp_path / "models"


@pytest.fixture(autouse=True)
def short_lessons(monkeypatch):
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 4))
    monkeypatch.setattr(own_pictures.LAST_LESSON, "in_memory", {})
    monkeypatch.setattr(learning, "HeadsRecipe", partial(HeadsRecipe, batch=1, epochs=1))


@pytest.fixture
def judged(monkeypatch):
    """What pictures take with the new drafts, with those in use and with none; less is better."""
    takes = {"new": 1.0, "before": 2.0, "none": 3.0}

    def judgement(kind, learned, before, *_):
        new, in_use, none = ([takes[name]] * 4 for name in takes)
        return Judgement(kind, new, in_use if before else [], none)

    monkeypatch.setattr(judging, "judged", judgement)
    return takes


@pytest.fixture
def pictures(services):
    """Draw so many pictures by the loaded model."""
    def draw(count, first=0):
        drawn(services.library.current.backbone, services.history.folder / "2026-01-31", count,
              first)

    return draw


@pytest.fixture
def held(monkeypatch):
    """Lessons wait before every step until they are let on."""
    gate, reached = threading.Semaphore(0), threading.Event()
    going = learning.Progress.__call__

    def wait(progress, done):
        reached.set()
        gate.acquire()
        return going(progress, done)

    monkeypatch.setattr(learning.Progress, "__call__", wait)
    gate.reached = reached
    yield gate
    gate.release(1000)


def asked(client):
    answer = client.get("/api/learn")
    assert answer.status_code == 200, answer.text
    return answer.json()


def lesson(client, services):
    job = services.worker.job(client.post("/api/learn", json={}).json()["id"])
    assert job.wait(60)
    return client.get(f"/api/jobs/{job.id}").json()


def test_what_there_is_to_learn_from_is_told(client, services, pictures):
    pictures(3)
    assert "Here so far: 3. Draw 5 more." in asked(client)["text"] and not asked(client)["can"]
    answer = client.post("/api/learn", json={})
    assert answer.status_code == 400 and "at least 8 are needed" in answer.json()["error"]
    pictures(12)
    (services.history.folder / "2026-01-31" / "photo.png").write_bytes(b"nothing")
    there = asked(client)
    assert there["can"] and there["pictures"] == there["new"] == 12 and not there["begun"]
    assert there["text"].startswith("12 pictures of tiny: drafts could learn from them")
    assert there["left_out"] == [{"why": "without settings in them", "count": 1}]


def test_a_lesson_is_a_job_and_its_drafts_are_used_at_once(client, services, pictures, judged):
    pictures(12)
    before, waiting = services.library.current, services.library.as_now()
    told = lesson(client, services)
    assert told["kind"] == LEARN and told["state"] == "done" and told["progress"] == 1, told
    assert told["result"] == {"better": True, "text": (
        "Draft heads: pictures by ssd cost the model 1.00 nats a token, 2.00 with those in use, "
        "3.00 without; less is better (4 of your prompts). Row drafter: Faithful takes 1 passes, "
        "3 without; less is better (4 of your prompts). The new drafts are in use.")}
    now = services.library.current
    assert now.backbone is before.backbone and now.heads.sha256 != before.heads.sha256
    assert waiting().heads is now.heads, "what waits is drawn with the new drafts"
    assert asked(client)["new"] == 0
    pictures(5, first=12)
    there = asked(client)
    assert there["new"] == 5 and "17 pictures of tiny, 5 of them new since" in there["text"]
    judged["new"] = 2.5
    told = lesson(client, services)
    assert "They are no better" in told["result"]["text"] and not told["result"]["better"]
    assert services.library.current is now and asked(client)["new"] == 0


def test_a_lesson_that_is_stopped_goes_on_later_and_gives_its_memory_back(
        client, services, held, judged, pictures, monkeypatch):
    pictures(12)
    runs = []
    real = learning.prepare
    monkeypatch.setattr(learning, "prepare", lambda *asked: remembered(real(*asked), runs))
    job = services.worker.job(client.post("/api/learn", json={}).json()["id"])
    assert client.post("/api/learn", json={}).json()["id"] == job.id, "it runs once"
    assert held.reached.wait(30)
    held.release(1)
    client.post(f"/api/jobs/{job.id}/stop", json={})
    held.release(1)
    assert job.wait(30) and job.state == "cancelled" and asked(client)["begun"]
    gc.collect()
    assert runs[0]() is None
    held.release(1000)
    told = lesson(client, services)
    assert told["state"] == "done" and not asked(client)["begun"]


def remembered(run, runs):
    runs.append(weakref.ref(run.heads))
    return run


def test_a_lesson_that_began_by_itself_gives_way_to_all_and_goes_on_later(
        client, services, held, pictures, judged, monkeypatch):
    own, worker = services.learning, services.worker
    pictures(ENOUGH_NEW)
    own.when_rested()
    assert own.latest is None, "off at first"
    assert client.post("/api/learn/idle", json={"on": True}).json() == {
        "while_idle": True, "latest": None}
    for title, way in (("sketch", TO_RUNS), ("draw", jobs.TO_NOBODY)):
        held.reached.clear()
        own.when_rested()
        first = own.latest
        assert worker.of("", LEARN)[-1] is first and first.gives_way and worker.of("") == []
        assert held.reached.wait(30)
        other = worker.submit(title, lambda job: "drawn", "me", gives_way=way)
        held.release(1)
        assert other.wait(30) and other.state == "done" and first.state == "cancelled"
    busy = threading.Event()
    run = worker.submit("draw", lambda job: busy.wait(30), "me")
    own.when_rested()
    assert own.latest.state == "cancelled"
    busy.set()
    assert run.wait(30)
    held.release(1000)
    own.when_rested()
    assert own.latest.wait(60) and own.latest.state == "done", own.latest.error
    assert client.get("/api/learn/idle").json()["latest"]["result"]["text"]
    last = own.latest
    own.when_rested()
    assert own.latest is last, "nothing is new"


def test_the_worker_says_when_nothing_has_run_for_a_while(monkeypatch):
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0.02)
    rested, ended = threading.Event(), threading.Event()
    worker = jobs.Worker(ended.set, rested.set)
    assert rested.wait(5) and not ended.is_set()
    assert worker.submit("draw", lambda job: None).wait(5)
    worker.close()


def test_a_sketch_is_drawn_though_a_lesson_is_asked_to_begin(services):
    busy = threading.Event()
    sketch = services.worker.submit("sketch", lambda job: busy.wait(30), "me", gives_way=TO_RUNS)
    lesson = services.worker.submit(LEARN, lambda job: None, gives_way=jobs.TO_ALL)
    assert lesson.state == "cancelled" and not sketch.cancelled
    busy.set()
    assert sketch.wait(30) and sketch.state == "done"


def test_visitors_of_a_shared_app_do_not_let_drafts_learn(client, services):
    vars(services).update(local=False)
    for ask, path in ((client.get, "learn"), (client.post, "learn"), (client.get, "learn/idle"),
                      (client.post, "learn/idle")):
        assert ask(f"/api/{path}").status_code == 403
    assert not services.learning.while_idle


def test_drafts_cannot_learn_where_they_would_not_be_used(client, services, models, monkeypatch):
    monkeypatch.setattr(services.library, "_heads", "tiny")
    there = asked(client)
    assert not there["can"] and "--heads" in there["text"]
    assert "cannot learn in this app" in client.post("/api/learn", json={}).json()["error"]
    monkeypatch.setattr(services.library, "_heads", None)
    backbone = services.library.current.backbone
    monkeypatch.setattr(type(backbone), "sketch", lambda self: object())
    assert "draws a sketch first" in asked(client)["text"]


# Pictures that were drawn with earlier drafts


def fast(**changes):
    return as_json(wished(prompt="a red house", seed=7, method="rolling", window=8, fewer=4.0,
                          **changes))


def tokens(services, job):
    entry = services.history.entry(job["saved"][0]["id"])
    return recipe_tokens(read_recipe(entry.path)).tolist(), read_recipe(entry.path), entry.id


def test_a_picture_is_drawn_again_with_the_drafts_that_drew_it(client, services, finished,
                                                               pictures, judged):
    library = services.library
    before, recipe, id_ = tokens(services, finished("/api/draw", settings=fast()))
    pictures(12)
    lesson(client, services)
    assert library.current.heads.sha256 != recipe["heads"]
    restored = client.get("/api/restore", params={"id": id_}).json()
    assert restored["settings"]["draft_hash"] == recipe["heads"]
    assert f"earlier drafts ({recipe['heads'][:10]})" in restored["text"]
    plan = client.post("/api/plan", json={"settings": restored["settings"]}).json()
    assert plan["problem"] is None
    again, new, _ = tokens(services, finished("/api/draw", settings=restored["settings"]))
    assert again == before and new["heads"] == recipe["heads"]
    current = finished("/api/draw", settings={**restored["settings"], "draft_hash": ""})
    assert tokens(services, current)[1]["heads"] == library.current.heads.sha256
    file = library.registry.drafts_by_hash(recipe["heads"])
    assert file in versions.versions(library.current.heads_file)
    stored_heads(file, library.current.backbone)

    file.unlink()
    library.loaded_with()
    gone = client.get("/api/restore", params={"id": id_}).json()
    assert gone["settings"]["draft_hash"] == "" and "are gone" in gone["text"]
    refused = client.post("/api/draw", json={"settings": restored["settings"]})
    assert refused.status_code == 400 and "are gone" in refused.json()["error"]
    assert "are gone" in client.post(
        "/api/plan", json={"settings": restored["settings"]}).json()["problem"]


def test_a_picture_that_was_drawn_without_drafts_is_drawn_without_them(client, services, finished,
                                                                       models):
    library = services.library
    vars(services).update(library=Library(models, "tiny", "none", device="cpu"))
    before, recipe, id_ = tokens(services, finished("/api/draw", settings=fast()))
    vars(services).update(library=library)
    assert recipe["heads"] is None and library.current.heads is not None
    restored = client.get("/api/restore", params={"id": id_}).json()
    assert restored["settings"]["draft_hash"] == "none" and "without drafts" in restored["text"]
    again, new, _ = tokens(services, finished("/api/draw", settings=restored["settings"]))
    assert again == before and new["heads"] is None


def test_ar_s_picture_needs_no_drafts_of_its_own(client, services, finished, pictures, judged):
    before, _recipe, id_ = tokens(services, finished("/api/draw", settings=as_json(
        wished(prompt="a red house", seed=7, method="exact"))))
    pictures(12)
    lesson(client, services)
    restored = client.get("/api/restore", params={"id": id_}).json()
    assert restored["settings"]["draft_hash"] == "" and "drafts" not in restored["text"]
    again, _new, _ = tokens(services, finished("/api/draw", settings=restored["settings"]))
    assert again == before
