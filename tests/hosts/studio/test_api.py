"""The app over HTTP as JSON, without a browser: what endpoints answer, and what they refuse."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from urllib.parse import quote

import pytest
import torch

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.coroutines import result_of  # noqa: E402
from support.drawings import wished  # noqa: E402
from support.road import watched  # noqa: E402
from support.solo import SIDE  # noqa: E402
from support.studio_client import BOB, CHINESE, HOUSE, line_of, serving  # noqa: E402

from ssd_core.engine.methods import METHODS  # noqa: E402
from ssd_core.engine.own_runs import known_of  # noqa: E402
from ssd_core.weights import hub  # noqa: E402
from studio import jobs as jobs_module  # noqa: E402
from studio.api import ENDPOINTS, UPLOADS  # noqa: E402
from studio.calls import VISITOR  # noqa: E402
from studio.jobs import Worker  # noqa: E402
from studio.library import Library  # noqa: E402
from studio.settings import KNOBS, as_json  # noqa: E402
from studio.words import TEXTS  # noqa: E402

EVERYWHERE = [*ENDPOINTS, *(("POST", path, None) for path, _ in UPLOADS)]
ENTERING = {"authorization": "Basic " + base64.b64encode(b"ann:secret").decode()}
HOSTILE = (None, 5, -1, "x", "", [], {}, [[]], True, "\ud800", "9" * 400, "../../etc/passwd")


@pytest.fixture
def shared(services):
    """The same for a visitor of a shared app."""
    return serving(replace(services, local=False), {"ann": "secret"}, **ENTERING)


@pytest.fixture
def busy(worker):
    """The worker has something to do until the test ends, so that jobs wait."""
    over = Event()

    def wait(job):
        while not over.wait(0.005):
            job.check()

    yield worker.submit("load", wait, "somebody")
    over.set()


def saved(services, count=1):
    return [services.history.save(torch.zeros(16, 16, 3), None) for _ in range(count)]


def test_the_contract_lists_every_endpoint():
    contract = (Path(__file__).parents[3] / "docs" / "contract.md").read_text(encoding="utf-8")
    listed = re.findall(r"`(GET|POST|DELETE) /api(/[^`]*)`", contract)
    routes = [(method, path) for method, path, _ in EVERYWHERE]
    assert sorted(listed) == sorted((method, path.replace(":path", "")) for method, path in routes)


# Forms and plans


@pytest.mark.parametrize(("headers", "place"), [({}, 0), (CHINESE, 1)])
def test_the_schema_describes_every_setting_in_the_language_of_the_page(client, headers, place):
    schema = client.get("/api/schema", headers=headers).json()
    assert schema["page"]["create"]["draw"] == TEXTS["create"]["draw"][place]
    knobs = {knob["name"]: knob for knob in schema["knobs"]}
    assert set(knobs) == set(KNOBS)
    assert {*as_json(wished()), *KNOBS, "reach", "hold"} == {*schema["settings"]}
    again = client.get("/api/schema?language=en").json()["settings"]
    assert again["seed"] != schema["settings"]["seed"]  # the first picture of each visit is new
    assert (knobs["k_h"]["label"].startswith("k_h:")) is (place == 0)
    assert knobs["cfg"]["optional"] and not knobs["seed"]["optional"]
    assert knobs["seed"]["high"] is None
    assert knobs["acceptance"]["choices"] and knobs["rounds"]["methods"]
    assert [method["name"] for method in schema["methods"]] == list(METHODS)
    fast = schema["qualities"][-1]["settings"]
    assert (fast["method"], fast["fewer"], fast["budget"]) == ("rolling", 12.0, None)
    assert client.get(schema["examples"][0]["picture"]).status_code == 200
    assert schema["examples"][0]["prompt"].isascii() is (place == 0)


def plan(client, **settings):
    return client.post("/api/plan", json={"settings": {**HOUSE, **settings}}).json()


def test_a_plan_counts_passes_and_names_the_quality(client):
    faithful = plan(client)
    assert faithful["quality"] == "faithful" and faithful["problem"] is None
    assert faithful["plan"]["ar_passes"] == SIDE**2 and str(SIDE**2) in faithful["step_times"]
    assert plan(client, method="ar")["quality"] == "plain"
    custom = plan(client, method="ssd", k_h=2)
    assert custom["quality"] is None and custom["settings"]["k_h"] == 2


def test_a_model_that_has_not_drawn_is_told_a_stand_ins_passes_and_then_its_own(
        client, finished, services):
    first, measured = plan(client), lambda: client.get("/api/models").json()["in_use"]["measured"]
    assert first["plan"]["stand_in"] and "a stand-in for models of this size" in first["step_times"]
    assert measured() == ["Nothing drawn yet: the first pictures measure how long it takes."]
    fast = plan(client, method="rolling", fewer=12.0)["about"]
    assert "12 times fewer passes" in fast and "depends on the model" in fast
    finished("/api/draw", settings=HOUSE)
    after = plan(client)
    assert after["plan"]["prior_pictures"] == 1 and not after["plan"]["stand_in"]
    assert "Measured so far: 1 of 10 pictures." in after["step_times"]
    assert "first pictures by this model" not in after["text"]
    line, = measured()
    drawn = known_of(services.library.current.backbone)[0]
    assert line.startswith(f"Faithful: {drawn.passes:.0f} forward passes, about ")
    assert " a picture (1 drawn), " in line and line.endswith("% of drafts kept")
    finished("/api/draw", settings={**HOUSE, "method": "rolling", "fewer": 12.0, "pictures": 2})
    fast, faithful = measured()
    assert fast.startswith("Fast: ") and "(2 drawn)" in fast and faithful == line
    finished("/api/draw", settings={**HOUSE, "method": "ssd", "k_h": 2})
    finished("/api/draw", settings={**HOUSE, "method": "ar"})
    quick, slow = client.get("/api/models").json()["in_use"]["others"]
    assert quick.startswith("ssd (k_h=2") and slow.startswith("Reference: ")
    assert measured() == [fast, faithful]


@pytest.mark.parametrize("name, wrong", [
    ("pictures", 100), ("pictures", 0), ("k_h", 0), ("rounds", -2), ("incremental", -2),
    ("draft_temperature", 0), ("window", -2), ("cfg", 1000), ("temperature", -2), ("top_k", -1),
    ("top_p", 3), ("seed", "abc"), ("rounds", "x")])
def test_a_number_out_of_range_is_refused_by_its_name(client, name, wrong):
    method = {"window": "exact", "draft_temperature": "ssd"}.get(name, "ssd")
    answer = client.post("/api/plan", json={"settings": {**HOUSE, "method": method, name: wrong}})
    assert answer.status_code == 400 and name in line_of(answer)


@pytest.mark.parametrize("path", ["plan", "draw", "race", "sketch", "seeds/start"])
def test_a_setting_that_nobody_reads_is_named_before_anything_is_drawn(client, path):
    for name, said in (("sed", "sed: not a setting; did you mean seed?"),
                       ("steps", "steps: without meaning here")):
        answer = client.post(f"/api/{path}", json={
            "settings": {"prompt": "a red house", name: "7"}, "racers": ["ar", "exact"]})
        assert answer.status_code == 400 and said in answer.json()["error"]
    assert client.get("/api/jobs").json()["jobs"] == []


def test_names_of_other_programs_are_read(client):
    asked = {"Prompt": "a house", "Seed": 7, "negative_prompt": "trees", "cfg_scale": 3,
             "width": 384, "height": 384}
    known = client.post("/api/plan", json={"settings": asked}).json()["settings"]
    assert (known["seed"], known["negative"], known["cfg"], known["size"]) == (
        "7", "trees", 3, "384x384")


def test_what_only_the_model_refuses_is_a_problem_of_the_plan(client):
    refused = plan(client, method="ssd", k_h=64, rounds=2)
    assert "k_h" in refused["problem"] and refused["plan"] is None
    assert refused["settings"]["k_h"] == 64


@pytest.mark.parametrize("wrong, word", [
    ({"prompt": "house sun " * 300}, "600 words"), ({"prompt": " "}, "the prompt is empty"),
    ({"negative": "a boat", "cfg": 1}, "needs guidance")])
def test_prompts_that_cannot_run_are_noted_in_the_plan_and_refused_before_the_queue(
        client, worker, wrong, word):
    note, = plan(client, **wrong)["notes"]
    assert note["kind"] == "refused" and word in note["text"]
    answer = client.post("/api/draw", json={"settings": {**HOUSE, **wrong}})
    assert answer.status_code == 400 and word in line_of(answer) and not worker._jobs


def test_unknown_words_are_noted(client):
    prompt = "a red hous with a zzxq"
    notes = {prompt[note["start"]: note["end"]]: note
             for note in plan(client, prompt=prompt)["notes"] if note["kind"] == "unknown"}
    assert "zzxq" in notes["zzxq"]["text"] and notes["zzxq"]["nearest"] is None
    assert notes["hous"]["nearest"] == "house"


def test_weights_of_words_are_said_not_to_count(client):
    notes = plan(client, prompt="a (red:1.4) house")["notes"]
    assert [note["kind"] for note in notes] == ["weighted"] and "(red:1.4)" in notes[0]["text"]
    assert plan(client, prompt="a house at (3:30)")["notes"][0]["kind"] != "weighted"


def test_a_misplaced_word_is_noted_in_the_language_of_the_page(client):
    asked = {"settings": {**HOUSE, "prompt": "a red"}}
    for headers, known in (({}, "known only in"), (CHINESE, "只在这些短语里认得")):
        note, = (note for note in client.post("/api/plan", json=asked, headers=headers).json()[
            "notes"] if note["kind"] == "misplaced")
        assert known in note["text"] and '"red' in note["text"]


@pytest.mark.parametrize("prompt, words", [
    ("🏠 a zzxq, zzxq", ["🏠", "zzxq", "zzxq"]), ("红色的房子，恐龙", ["恐龙"]),
    ("a {red|zzxq} house", ["zzxq"]), ("{a|b", ["{", "|", "b"])])
def test_every_unknown_word_is_noted_where_it_stands(client, prompt, words):
    notes = plan(client, prompt=prompt)["notes"]
    found = [prompt[note["start"]: note["end"]] for note in notes if note["kind"] == "unknown"]
    known = ("a", ",", "red", "house", "红色", "的", "房子", "，")
    assert [word for word in found if word not in known] == words


def test_an_unknown_word_of_the_negative_prompt_has_no_place(client):
    note, = (note for note in plan(client, negative="a zzxq", cfg=2)["notes"]
             if "zzxq" in note["text"])
    assert (note["kind"], note["start"], note["end"]) == ("unknown", None, None)


def test_alternatives_are_told_in_the_plan_and_all_drawn_at_once(client, worker):
    told = plan(client, prompt="a {red|blue} house")["alternatives"]
    assert (told["count"], told["most"]) == (2, 64) and told["words"][0] in ("red", "blue")
    assert told["prompt"] == f"a {told['words'][0]} house" and plan(client)["alternatives"] is None
    wanted = {**HOUSE, "prompt": "a {red|blue} house"}
    jobs = client.post("/api/draw", json={"settings": wanted, "all": True}).json()["jobs"]
    assert all(worker.job(job["id"]).wait(30) for job in jobs)
    assert [job["settings"]["prompt"] for job in jobs] == ["a red house", "a blue house"]
    many = {**HOUSE, "prompt": "{1|2|3|4|5|6|7|8|9}" * 2}
    assert "64 pictures" in line_of(
        client.post("/api/draw", json={"settings": many, "all": True}))


# Runs and the queue


def test_a_drawn_picture_is_saved_listed_and_fed(client, finished, services):
    job = finished("/api/draw", settings=HOUSE)
    assert (job["state"], job["kind"], job["error"]) == ("done", "draw", None)
    assert job["settings"]["prompt"] == "a red house"
    picture, = job["saved"]
    assert client.get(f"/studio/picture/{picture['id']}").content.startswith(b"\x89PNG")
    assert picture["seed"] == "7" and job["result"]["stopped_rows"] is None
    fed = client.get(f"/api/feed?job={job['id']}&after=0").json()[job["id"]]
    assert fed["messages"][-1]["kind"] == "finished" and fed["saved"] == job["saved"]
    assert client.get("/api/jobs").json()["jobs"] == [job]
    repeated = client.post(f"/api/jobs/{job['id']}/repeat", json={"same": True}).json()
    assert repeated["settings"] == job["settings"] and services.worker.job(repeated["id"]).wait(30)
    anew = client.post(f"/api/jobs/{job['id']}/repeat").json()
    assert anew["settings"]["seed"] != "7" and services.worker.job(anew["id"]).wait(30)


def test_one_picture_is_checked_and_prepared_once(services):
    with watched(most=580) as road, closing(Worker()) as worker:
        client = serving(replace(services, worker=worker))
        sent = client.post("/api/draw", json={"settings": {**HOUSE, "method": "ssd"}}).json()
        job = worker.job(sent["id"])
        assert job.wait(30) and job.state == "done"
    assert road.complaints == []


def queued(client):
    """Seeds of what waits, in the order it will run."""
    jobs = client.get("/api/jobs").json()["jobs"]
    return [job["settings"]["seed"] for job in jobs if job["state"] == "waiting"]


@pytest.fixture
def three(client, busy):
    """Ids of three runs that wait, with the seeds 1, 2 and 3."""
    return [client.post("/api/draw", json={"settings": {**HOUSE, "seed": seed}}).json()["id"]
            for seed in "123"]


def test_draw_while_a_run_goes_on_adds_to_the_queue(client, three):
    assert queued(client) == ["1", "2", "3"]
    assert [job["position"] for job in client.get("/api/jobs").json()["jobs"]] == [1, 2, 3]


def test_the_queue_is_reordered_shortened_and_emptied(client, three, busy):
    first, second, third = three
    client.post(f"/api/jobs/{third}/move", json={"before": first})
    assert queued(client) == ["3", "1", "2"]
    client.post(f"/api/jobs/{third}/move")
    assert queued(client) == ["1", "2", "3"]
    assert client.delete(f"/api/jobs/{second}").json() == {"removed": second}
    assert queued(client) == ["1", "3"]
    assert client.post(f"/api/jobs/{first}/stop").json()["state"] == "cancelled"
    client.post("/api/queue/clear")
    assert queued(client) == [] and busy.state == "running", "others' runs go on"


def test_a_visitor_moves_only_among_his_own_runs(client, services, three):
    other = client.post("/api/draw", json={"settings": HOUSE}, headers=BOB).json()["id"]
    assert client.post(f"/api/jobs/{three[2]}/move", json={"before": other}).status_code == 404
    client.post(f"/api/jobs/{three[2]}/move", json={"before": three[0]})
    order = [job.id for job in services.worker._in_turn()]
    assert order == [three[2], other, three[0], three[1]]


def test_stopping_the_queue_stops_the_run_and_begins_no_other(client, worker, monkeypatch):
    begun, seen = Event(), []

    def endless(*_, **__):
        def work(job):
            seen.append(job.id)
            begun.set()
            while True:
                Event().wait(0.002)
                job.check()
        return work

    monkeypatch.setattr("studio.runs.draw", endless)
    ids = [client.post("/api/draw", json={"settings": HOUSE}).json()["id"] for _ in range(3)]
    assert begun.wait(10)
    client.post("/api/queue/stop")
    assert all(worker.job(id_).wait(10) for id_ in ids) and seen == ids[:1]
    assert {worker.job(id_).state for id_ in ids} == {"cancelled"}


def test_nobody_touches_the_runs_of_another_visitor(client, three):
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("POST", "/move"),
                         ("POST", "/repeat"), ("POST", "/keep")):
        answer = client.request(method, f"/api/jobs/{three[0]}{path}", headers=BOB)
        assert answer.status_code == 404 and "no such run" in line_of(answer)
    client.post("/api/queue/stop", headers=BOB)
    assert client.get("/api/jobs", headers=BOB).json() == {"jobs": []}
    assert queued(client) == ["1", "2", "3"]


@pytest.mark.parametrize("token", [{}, {VISITOR: "a" * 63}, {VISITOR: "A" * 64}])
def test_a_run_needs_a_visitor(services, token):
    client = serving(services)
    del client.headers[VISITOR]
    answer = client.post("/api/draw", json={"settings": HOUSE}, headers=token)
    assert answer.status_code == 400 and VISITOR in line_of(answer)


def test_the_queue_has_an_end(client, three, monkeypatch):
    monkeypatch.setattr(jobs_module, "MOST_WAITING", 4)
    for path, body in (("draw", {}), ("seeds/start", {"count": 2})):
        client.post("/api/draw", json={"settings": HOUSE})
        answer = client.post(f"/api/{path}", json={"settings": HOUSE, **body})
        assert answer.status_code == 400 and "wait already" in line_of(answer)
    assert len(queued(client)) == 4


def test_a_race_says_its_guarantee(finished):
    job = finished("/api/race", settings=HOUSE, racers=["ar", "faithful"])
    assert job["racers"] == ["ar", "faithful"] and len(job["saved"]) == 2
    assert job["result"]["guarantee"] == "Faithful: the same picture as the reference."
    assert [row[0] for row in job["result"]["rows"]] == ["Reference", "Faithful"]
    assert job["result"]["sheet"].endswith("-race.png")


@pytest.mark.parametrize("racers", [["ar"], ["ar"] * 7, ["ar", "none"], "ar", [1, 2], None])
def test_a_race_that_cannot_be_is_refused(client, worker, racers):
    answer = client.post("/api/race", json={"settings": HOUSE, "racers": racers})
    assert answer.status_code == 400 and line_of(answer) and not worker._jobs


def test_seeds_pause_and_those_that_are_chosen_are_finished(client, worker, services):
    started = client.post("/api/seeds/start", json={"settings": HOUSE, "count": 2,
                                                    "part": "third"}).json()["jobs"]
    ids = [job["id"] for job in started]
    assert all(worker.job(id_).wait(30) for id_ in ids)
    paused = client.get(f"/api/jobs/{ids[1]}").json()
    assert (paused["state"], paused["seed"], paused["rows"][1]) == ("paused", "8", SIDE)
    other = client.post("/api/seeds/finish", json={"jobs": ids[1:]}, headers=BOB)
    assert other.status_code == 400 and "expired" in line_of(other)
    job, = client.post("/api/seeds/finish", json={"jobs": ids[1:]}).json()["jobs"]
    assert worker.job(job["id"]).wait(30)
    picture, = client.get(f"/api/jobs/{job['id']}").json()["saved"]
    assert picture["seed"] == "8"
    assert client.delete(f"/api/jobs/{ids[0]}").status_code == 200
    assert not services.parked_seeds._parked


def test_a_new_start_of_seeds_takes_the_place_of_those_that_wait(client, busy):
    def begin(count):
        jobs = client.post("/api/seeds/start", json={"settings": HOUSE, "count": count}).json()
        return [job["id"] for job in jobs["jobs"]]

    begin(3)
    anew = begin(2)
    known = client.get("/api/jobs").json()["jobs"]
    assert [job["id"] for job in known] == anew


def test_rows_of_a_stopped_run_are_saved_and_redone(client, worker, every_message, finished,
                                                    monkeypatch):
    def tell(job, message):
        job.messages.append(message)
        if message.get("last", 0) >= 5:
            job.cancel(parked=False)

    with monkeypatch.context() as patch:
        patch.setattr("studio.jobs.Job.tell", tell)
        job = finished("/api/draw", settings=HOUSE)
    rows = job["result"]["stopped_rows"]
    assert job["state"] == "cancelled" and rows
    entry = client.post(f"/api/jobs/{job['id']}/keep").json()
    assert entry["kind"] == "partial"
    assert client.post(f"/api/jobs/{job['id']}/keep").status_code == 404, "it is saved once"
    seen = client.get("/api/look", params={"id": entry["id"]}).json()
    assert (seen["finished"], seen["rows"], seen["prompt"]) == (rows, SIDE, "a red house")
    again = finished("/api/redo", settings={**HOUSE, "seed": "8"}, source=entry["id"], rows=rows)
    assert again["state"] == "done" and len(again["saved"]) == 1


def test_nothing_is_kept_of_a_run_that_has_no_rows(client, three):
    answer = client.post(f"/api/jobs/{three[0]}/keep")
    assert answer.status_code == 400 and "nothing to save" in line_of(answer)


# History


def test_the_history_is_searched_marked_and_shown_in_pages(client, services, finished):
    drawn = finished("/api/draw", settings=HOUSE)["saved"][0]["id"]
    other, = saved(services)

    def listed(**query):
        return [entry["id"] for entry in client.get("/api/history", params=query).json()["entries"]]

    assert listed(search="RED house faithful") == [drawn] == listed(search="7")
    assert listed(search="a zebra") == []
    hint = client.get("/api/history?search=a zebra").json()["hint"]
    assert "No picture matches" in hint
    assert listed(favourites="true") == []
    client.post("/api/history/favourite", json={"ids": [other.id]})
    client.post("/api/history/favourite", json={"ids": [other.id]})
    assert listed(favourites="true") == [other.id]
    client.post("/api/history/favourite", json={"ids": [other.id], "favourite": False})
    assert listed(favourites="true") == []
    first = client.get("/api/history?limit=1").json()
    assert first["more"] and len(first["entries"]) == 1
    rest = listed(before=first["entries"][0]["id"])
    assert {first["entries"][0]["id"], *rest} == {drawn, other.id}


def test_a_picture_has_its_facts_and_what_can_be_copied(client, services, finished):
    id_ = finished("/api/draw", settings=HOUSE)["saved"][0]["id"]
    entry = client.get(f"/api/history/{id_}").json()
    facts = dict(entry["facts"])
    assert (facts["Prompt"], facts["Seed"], facts["Method"]) == ("a red house", "7", "Faithful")
    assert entry["copy"]["copy_prompt"] == "a red house"
    assert "Sampler: exact" in entry["copy"]["copy_settings"]
    assert client.get(entry["thumbnail"]).content.startswith(b"\xff\xd8")
    assert dict(client.get(f"/api/history/{id_}", headers=CHINESE).json()["facts"])["提示词"]
    bare, = saved(services)
    assert client.get(f"/api/history/{bare.id}").json()["copy"] == {}


def test_a_picture_is_sent_as_a_postcard_in_the_visitors_language(client, services, finished):
    id_ = finished("/api/draw", settings=HOUSE)["saved"][0]["id"]
    sent = client.get("/api/send", params={"id": id_})
    assert sent.headers["content-type"].startswith("text/html")
    assert sent.headers["content-disposition"].endswith("UTF-8''a-red-house-7.html")
    assert ">a red house<" in sent.text and ">Seed 7<" in sent.text
    png = base64.b64encode(services.history.png(id_)).decode()
    assert f"data:image/png;base64,{png}" in sent.text
    chinese = client.get("/api/send", params={"id": id_}, headers=CHINESE).text
    assert ">种子 7<" in chinese
    unsaved = services.history.unsaved.add("120000", services.history.png(id_))
    for other in (saved(services)[0].id, unsaved):
        assert client.get("/api/send", params={"id": other}).status_code == 200
    for gone in ("", "gone.png", "../x.png"):
        assert client.get("/api/send", params={"id": gone}).status_code == 404


def test_what_cannot_be_listed_is_told(client, services):
    entry, = saved(services)
    (entry.path.parent / "000000.png").write_bytes(b"no picture")
    answer = client.get("/api/history").json()
    assert "cannot be listed: 1" in answer["hint"] and "000000.png" in answer["hint"]


def test_deleted_pictures_come_back_as_they_were(client, services):
    entries = saved(services, 2)
    ids = [entry.id for entry in entries]
    twice = [*ids, *ids]
    before = [(entry.path.read_bytes(), entry.path.stat().st_mtime_ns) for entry in entries]
    assert client.post("/api/history/delete", json={"ids": twice}).json() == {"deleted": ids}
    assert not any(entry.path.exists() for entry in entries)
    assert client.post("/api/history/undo", json={"ids": twice}).json() == {"restored": ids}
    assert before == [(entry.path.read_bytes(), entry.path.stat().st_mtime_ns)
                      for entry in entries]
    answer = client.post("/api/history/undo", json={"ids": ids})
    assert answer.status_code == 400 and "brought back" in line_of(answer)


def test_pictures_are_downloaded_together(client, services):
    entries = saved(services, 2)
    answer = client.get("/api/history/zip", params={"id": [entry.id for entry in entries]})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert sorted(map(archive.read, archive.namelist())) == sorted(
            entry.path.read_bytes() for entry in entries)
    assert client.get("/api/history/zip").status_code == 400


OUTSIDE = ("../secret.png", "/etc/passwd", "..%2fsecret.png", "x/../../secret.png", "none.png",
           ".env", "\x00.png")


@pytest.mark.parametrize("id_", OUTSIDE)
def test_no_name_leads_out_of_the_history(client, services, id_):
    entry, = saved(services)
    outside = services.history.folder.parent / "secret.png"
    outside.write_bytes(entry.path.read_bytes())
    place = quote(id_, safe="")
    asked = [client.get(f"/api/history/{place}"), client.get(f"/api/thumbnail/{place}"),
             client.get("/api/history/zip", params={"id": id_}),
             client.get("/api/restore", params={"id": id_}),
             client.get("/api/look", params={"id": id_}),
             client.get("/api/history", params={"before": id_}),
             *(client.post(f"/api/history/{what}", json={"ids": [id_]})
               for what in ("delete", "undo", "favourite")),
             client.post("/api/redo", json={"settings": HOUSE, "source": id_, "rows": 3})]
    assert all(answer.status_code in (400, 404) for answer in asked)
    assert outside.exists() and entry.path.exists()


# Restoring


def test_settings_come_back_from_a_saved_and_from_an_uploaded_picture(client, services, finished):
    id_ = finished("/api/draw", settings={**HOUSE, "method": "rows"})["saved"][0]["id"]
    restored = client.get("/api/restore", params={"id": id_}).json()
    assert restored["settings"]["method"] == "rows" and restored["settings"]["seed"] == "7"
    assert "expand" not in restored["settings"]
    png = services.history.entry(id_).path.read_bytes()
    upload = client.post("/api/restore", params={"name": "C:\\pictures\\..\\house.png"},
                         content=png).json()
    assert upload["settings"].items() <= restored["settings"].items()
    assert upload["text"] == "Settings restored from house.png."
    services.library.use("tiny", "bf16")
    told = client.get("/api/restore", params={"id": id_}).json()["text"]
    assert "drawn in fp32" in told and "precision fp32" in told


def test_an_upload_that_is_no_picture_is_refused_by_its_name(client, services):
    png = saved(services)[0].path.read_bytes()
    for content in (b"", b"no picture", png[:-60]):
        answer = client.post("/api/restore?name=a/b/x.png", content=content)
        assert answer.status_code == 400 and line_of(answer).startswith("x.png")
        assert "tmp" not in line_of(answer)


def test_more_than_is_allowed_is_not_read(client, monkeypatch):
    monkeypatch.setattr("studio.calls.LARGEST_UPLOAD", 1000)
    monkeypatch.setattr("studio.calls.LARGEST_JSON", 1000)
    assert client.post("/api/restore", content=b"x" * 1001).status_code == 413
    assert client.post("/api/restore", content=iter([b"x" * 600] * 2)).status_code == 413
    answer = client.post("/api/plan", content=b" " * 1001)
    assert answer.status_code == 413 and "MiB" in line_of(answer)


def test_pictures_that_are_added_to_a_shared_app_count_towards_the_quota(shared):
    answer = shared.post("/api/history/add", content=iter([b"x"]))
    assert answer.status_code == 413 and "how long" in answer.text


# Models


def test_the_models_are_listed_and_judged_and_another_one_is_loaded(client, finished, services):
    listed = client.get("/api/models").json()
    models = {model["name"]: model for model in listed["models"]}
    assert {"tiny", "bare"} <= set(models) and models["tiny"]["heads"]
    file = services.library.models_dir / "ssd_backbones" / "tiny" / "backbone.safetensors"
    assert models["tiny"]["bytes"] == file.stat().st_size
    assert listed["in_use"]["name"] == "tiny" and listed["known"][0]["licence"]["link"]
    assert "weights" in client.post("/api/models/fit", json={
        "name": "bare", "settings": HOUSE}).json()["text"]
    job = finished("/api/models/use", name="bare")
    assert job["result"]["name"] == "bare" and job["result"]["heads"] is False
    assert job["result"]["settings"]["cfg"] is None
    assert services.library.current.name == "bare"
    assert finished("/api/models/use", name="none")["state"] == "failed"


def test_strangers_ask_about_listed_models_and_learn_nothing_of_files(services, models):
    """They see one refusal for what is there and what is not; the owner may name any file."""
    placed = models / "ssd_backbones" / "tiny" / "backbone.safetensors"
    library = Library(models, str(placed), device="cpu")
    shared = serving(replace(services, library=library, local=False), {"ann": "secret"},
                     **ENTERING)

    def fit(client, name):
        return client.post("/api/models/fit", json={"name": name, "settings": HOUSE})

    told = {line_of(fit(shared, name)).rpartition("':")[2] for name in (
        "/etc/passwd", "/nowhere", "~nobody/x", "~root/x", "../tiny", str(models), str(placed),
        "tiny/backbone.safetensors", "")}
    assert len(told) == 1
    listed = shared.get("/api/models").json()
    assert str(models) not in json.dumps([listed, shared.get("/api/schema").json()])
    names = [model["name"] for model in listed["models"]]
    assert {"tiny", "backbone.safetensors", "postcard"} <= {*names, listed["in_use"]["name"]}
    for name in (*names, "Janus-Pro-1B-hf"):
        assert "weights" in fit(shared, name).json()["text"], name
    owner = serving(services)
    assert "weights" in fit(owner, str(placed)).json()["text"]
    assert "no such user" in line_of(fit(owner, "~no-such-user/x"))


def test_a_download_begins_only_once_its_size_is_known(client, services, monkeypatch):
    class Plan:
        name, bytes, missing, destination = "x", 9, 5, Path("models/x")
        licence = hub.known("Janus-Pro-1B-hf").licence

    started = []
    monkeypatch.setattr(hub, "quote", lambda *_: Plan())
    monkeypatch.setattr(hub, "download", lambda name, *_: started.append(name))
    assert client.post("/api/models/quote", json={"name": "x"}).json()["missing"] == 5
    for body in ({}, {"bytes": 4}, {"bytes": "5"}):
        answer = client.post("/api/models/download", json={"name": "x", **body})
        assert answer.status_code == 400 and "5 are to be downloaded" in line_of(answer)
    assert not started
    assert client.post("/api/models/download", json={"name": "x", "bytes": 5}).is_success
    assert services.downloads.last.over.wait(60) and started == ["x"]


def test_the_doctor_reports(client, services):
    services.worker.last_error = "something broke"
    report = client.get("/api/doctor").json()["report"]
    assert "tiny" in report and "something broke" in report


# Security


def test_nothing_answers_without_the_password(services):
    stranger = serving(services, {"ann": "secret"})
    for method, path, _ in EVERYWHERE:
        answer = stranger.request(method, f"/api{path}")
        assert answer.status_code == 401 and b"name and a password" in answer.content, path


def test_nothing_is_taken_from_other_sites_and_other_hosts_are_not_served(client):
    for method, path, _ in EVERYWHERE:
        if method != "GET":
            for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}):
                assert client.request(method, f"/api{path}", headers=headers).status_code == 403
        rebound = client.request(method, f"/api{path}", headers={"host": "evil.example"})
        assert rebound.status_code == 400 and "--allow-host evil.example" in line_of(rebound)


def test_no_address_that_changes_something_is_a_get(client):
    assert {path for method, path, _ in ENDPOINTS if method == "GET"} == {
        "/schema", "/surprise", "/look", "/jobs", "/jobs/{job}", "/feed", "/history",
        "/history/zip", "/history/{entry:path}", "/thumbnail/{entry:path}", "/restore", "/steps",
        "/send", "/things", "/models", "/models/download", "/learn", "/learn/idle", "/doctor"}


def test_every_answer_has_the_content_policy_and_is_not_stored(client):
    for path in ("/api/schema", "/api/jobs", "/api/jobs/none", "/api/doctor"):
        headers = client.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["history/delete", "history/undo", "models/use", "models/quote",
                                  "models/download", "models/cancel", "selftest"])
def test_visitors_of_a_shared_app_neither_delete_nor_change_the_model(shared, services, path):
    entry, = saved(services)
    answer = shared.post(f"/api/{path}", json={"ids": [entry.id], "name": "bare"})
    assert answer.status_code == 403 and "only the person who started it" in line_of(answer)
    assert entry.path.exists()


def test_visitors_of_a_shared_app_read_no_folders(shared, services):
    entry, = saved(services)
    (entry.path.parent / "000000.png").write_bytes(b"no picture")
    folder = str(services.history.folder.parent)
    for path in ("history", f"history/{entry.id}", "models", "doctor", f"restore?id={entry.id}"):
        assert folder not in shared.get(f"/api/{path}").text, path


@pytest.mark.parametrize("value", HOSTILE, ids=ascii)
def test_whatever_is_sent_is_answered_or_refused_in_one_line(client, services, value, monkeypatch):
    names = ("settings", "racers", "count", "part", "like", "jobs", "ids", "name", "dtype",
             "source", "rows", "size", "metadata", "before", "same", "favourite", "bytes")
    monkeypatch.setattr(hub, "quote", lambda *_: pytest.fail("nothing is asked for"))
    bodies = [json.dumps(value), json.dumps(dict.fromkeys(names, value)),
              json.dumps({"settings": dict.fromkeys(as_json(wished()), value)})]
    for method, path, _ in ENDPOINTS:
        if method == "POST" and path not in ("/models/quote", "/models/download",
                                            "/selftest"):
            for body in bodies:
                answer = client.post(f"/api{path.replace('{job}', 'x')}", content=body)
                assert answer.status_code < 500, (path, answer.text)
                assert answer.is_success or line_of(answer)
    client.post("/api/queue/stop")
    assert "in this program" not in (services.worker.last_error or "")


def test_a_fault_of_ours_is_one_line_and_reported(client, services, monkeypatch, caplog):
    monkeypatch.setattr(type(services.library), "models", lambda self: {}["keep_rows"])
    answer = client.get("/api/models")
    assert answer.status_code == 500 and "an error in this program: KeyError" in line_of(answer)
    assert "Traceback" in caplog.text and services.worker.last_error


def test_who_leaves_in_the_middle_of_an_upload_is_no_fault(client, services, caplog):
    parts = iter(({"type": "http.request", "body": b"a", "more_body": True},
                  {"type": "http.disconnect"}))

    async def receive():
        return next(parts)

    async def send(message):
        pass

    result_of(client.app({
        "type": "http", "method": "POST", "scheme": "http", "path": "/api/history/add",
        "query_string": b"", "headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80)}, receive, send))
    assert next(parts, None) is None and caplog.text == ""
    assert services.worker.last_error is None


def test_errors_are_in_the_language_of_the_page(client):
    answer = client.post("/api/plan", json={"settings": {"window": 0}}, headers=CHINESE)
    assert "window" in line_of(answer) and not line_of(answer).isascii()
