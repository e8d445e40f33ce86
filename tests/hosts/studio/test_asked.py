"""What comes of runs that are asked for over HTTP: stopped, failed, redone, in rows, in words."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from threading import Event

import numpy as np
import pytest
import torch
from PIL import Image

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.drawings import wished  # noqa: E402
from support.solo import PIXELS, SIDE  # noqa: E402
from support.studio_client import BOB, CHINESE, HOUSE, line_of  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from ssd_core.backbones.estimates import StepTimes  # noqa: E402
from ssd_core.engine.methods import Rows  # noqa: E402
from ssd_core.model.grid import Grid  # noqa: E402
from ssd_core.output.packed import unpack_mask
from ssd_core.output.picture_files import MOST_PIXELS  # noqa: E402
from ssd_core.output.recipe import CHUNK, read_recipe, save_png  # noqa: E402
from studio import runs  # noqa: E402
from studio.guarantees import guarantee  # noqa: E402
from studio.history import History  # noqa: E402
from studio.orders import TOPS  # noqa: E402
from studio.plans import about_speed  # noqa: E402
from studio.settings import AS_CHOSEN, STOPS, as_json, racing, stop_of  # noqa: E402


def waited(client, worker, answer):
    """The jobs of an answer once they are over."""
    assert answer.status_code == 200, answer.text
    ids = [job["id"] for job in answer.json()["jobs"]]
    assert all(worker.job(id_).wait(30) for id_ in ids)
    return [client.get(f"/api/jobs/{id_}").json() for id_ in ids]


@pytest.fixture
def full(monkeypatch):
    """The disk takes one more picture and no other."""
    save, number = History.save, iter(range(99))

    def write(*args, **options):
        if next(number):
            raise SSDError("the disk is full")
        return save(*args, **options)

    monkeypatch.setattr(History, "save", write)


# Stopped and failed runs


@pytest.mark.parametrize(("metadata", "how"), [
    (True, "tokens from its recipe"), (False, runs.HELD)])
def test_a_kept_top_has_a_recipe_only_where_that_is_wanted(
        client, finished, services, every_message, stopped_at, metadata, how):
    stopped_at(5)
    job = finished("/api/draw", settings=HOUSE)
    kept = client.post(f"/api/jobs/{job['id']}/keep", json={"metadata": metadata}).json()
    with Image.open(services.history.entry(kept["id"]).path) as image:
        assert (CHUNK in image.info) is metadata
    assert client.get("/api/look", params={"id": kept["id"]}).json()["how"] == how


def test_a_top_of_another_model_is_not_kept(client, finished, services, every_message, stopped_at):
    stopped_at(5)
    job = finished("/api/draw", settings=HOUSE)
    services.library.use("bare")
    answer = client.post(f"/api/jobs/{job['id']}/keep")
    assert answer.status_code == 400 and "but bare is loaded" in line_of(answer)


def test_pictures_that_were_not_saved_are_offered_from_memory(client, finished, services, full):
    job = finished("/api/draw", settings={**HOUSE, "pictures": 3})
    assert "the disk is full" in job["result"]["problem"] and job["state"] == "done"
    assert [saved["seed"] for saved in job["saved"]] == ["7", "8", "9"]
    for saved in job["saved"]:
        assert client.get(saved["picture"]).content.startswith(b"\x89PNG")
    assert len(services.history.entries()) == 1


def test_a_run_is_refused_in_one_line_while_a_model_loads(client, services):
    services.library._loaded = None
    with services.library._lock:
        for path, body in (("draw", {}), ("race", {"racers": ["ar", "ssd"]}), ("plan", {}),
                           ("seeds/start", {})):
            answer = client.post(f"/api/{path}", json={"settings": HOUSE, **body})
            assert answer.status_code == 400 and "is being loaded" in line_of(answer)


def test_a_batch_stopped_in_its_second_picture_has_the_first_and_offers_the_rows_of_the_second(
        client, finished, services, every_message, stopped_at, monkeypatch):
    monkeypatch.setattr("ssd_core.runs.request.sooner_alone", lambda *_: True)
    stopped_at(5, panel=1)
    job = finished("/api/draw", settings={**HOUSE, "pictures": 2})
    entry, = services.history.entries()
    assert [saved["id"] for saved in job["saved"]] == [entry.id] and job["result"]["stopped_rows"]
    client.post(f"/api/jobs/{job['id']}/keep")
    assert sorted(entry.seed for entry in services.history.entries()) == [7, 8]


def test_a_page_that_was_loaded_again_finds_its_runs_and_no_other_visitor_does(client, finished):
    job = finished("/api/draw", settings=HOUSE)
    assert client.get("/api/jobs").json()["jobs"] == [job], "the token is all that a page keeps"
    assert client.get("/api/jobs", headers=BOB).json()["jobs"] == []
    client.delete(f"/api/jobs/{job['id']}")
    assert client.get("/api/jobs").json()["jobs"] == []


# Redo


def test_a_redone_picture_names_the_one_that_it_began_with(client, finished):
    first = finished("/api/draw", settings=HOUSE)["saved"][0]["id"]
    again = finished("/api/redo", settings={**HOUSE, "seed": "8"}, source=first, rows=5)
    id_ = again["saved"][0]["id"]
    assert client.get(f"/api/history/{id_}").json()["source"] == first
    assert client.get(f"/api/history/{first}").json()["source"] is None
    client.post("/api/history/delete", json={"ids": [first]})
    assert client.get(f"/api/history/{id_}").json()["source"] is None, "it is gone"
    listed = client.get("/api/history").json()["entries"]
    assert listed[0]["source"] == first, "as its recipe says"


@pytest.mark.parametrize("source", ["../../secret.png", "/etc/passwd", "\x00", "x" * 9999])
def test_a_source_that_leads_nowhere_is_none(client, finished, services, source):
    entry = services.history.entry(finished("/api/draw", settings=HOUSE)["saved"][0]["id"])
    recipe = {**read_recipe(entry.path), "source": source}
    path = entry.path.with_name("000001.png")
    save_png(path, torch.zeros(PIXELS, PIXELS, 3), recipe)
    answer = client.get(f"/api/history/{services.history.id_of(path)}")
    assert answer.status_code == 200 and answer.json()["source"] is None


def test_a_redo_stopped_before_its_first_new_row_offers_nothing(
        client, finished, every_message, stopped_at):
    first = finished("/api/draw", settings=HOUSE)["saved"][0]["id"]
    stopped_at(3)
    job = finished("/api/redo", settings={**HOUSE, "seed": "8"}, source=first, rows=3)
    assert job["state"] == "cancelled" and not job["result"]["stopped_rows"]


def test_where_a_pictures_tokens_come_from_is_told_in_the_language_of_the_page(client, services):
    entry = services.history.save(torch.zeros(PIXELS, PIXELS, 3), None)
    seen = client.get("/api/look", params={"id": entry.id}, headers=CHINESE).json()
    assert seen["how"] == "重新编码：它不带配方" and seen["encoded"]


# Pictures that come from outside


def file_of(kind, size=(PIXELS, PIXELS), **options):
    buffer = io.BytesIO()
    Image.effect_noise(size, 60).convert("RGB").save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "TIFF", "AVIF"])
@pytest.mark.parametrize("size", [(PIXELS, PIXELS), (900, 500)])
def test_a_picture_from_outside_is_added_and_redone(client, finished, kind, size):
    added = client.post("/api/history/add", params={"name": "x.png"}, content=file_of(kind, size))
    entry = added.json()
    assert added.status_code == 200, added.text
    assert entry["encoded"] and entry["how"] == "encoded: it carries no recipe"
    assert (entry["width"], entry["height"], entry["kind"]) == (PIXELS, PIXELS, "picture")
    job = finished("/api/redo", settings=HOUSE, source=entry["id"], rows=6)
    assert job["state"] == "done", job["error"]


def test_a_picture_of_ours_is_added_byte_for_byte_with_its_tokens(client, finished, services):
    id_ = finished("/api/draw", settings=HOUSE)["saved"][0]["id"]
    png = services.history.png(id_)
    added = client.post("/api/history/add", content=png).json()
    assert added["id"] != id_ and not added["encoded"] and added["prompt"] == "a red house"
    assert services.history.png(added["id"]) == png


def test_a_photograph_stands_upright(client, services):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned
    body = np.zeros((PIXELS, PIXELS, 3), np.uint8)
    body[:, : PIXELS // 2] = 255
    buffer = io.BytesIO()
    Image.fromarray(body).save(buffer, "JPEG", exif=exif)
    added = client.post("/api/history/add", content=buffer.getvalue()).json()
    with Image.open(services.history.entry(added["id"]).path) as image:
        assert image.getpixel((96, 45))[0] > 200 > 50 > image.getpixel((96, 150))[0]


def test_the_transparent_part_of_a_picture_is_to_be_drawn_anew(client, services):
    image = Image.new("RGBA", (2 * PIXELS, 2 * PIXELS), "teal")
    image.paste((0, 0, 0, 0), (0, 0, PIXELS, 2 * PIXELS))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    added = client.post("/api/history/add", content=buffer.getvalue()).json()
    known = unpack_mask(added["keep_mask"])
    half = known.shape[1] // 2
    assert known[:, half:].all() and not known[:, :half].any()
    with Image.open(services.history.entry(added["id"]).path) as saved:
        assert saved.convert("RGB").getpixel((4, 4)) == (255, 255, 255)
    assert client.post("/api/history/add", content=file_of("PNG")).json()["keep_mask"] is None


def bad_files():
    plain = file_of("PNG")
    yield b"", "not a whole"
    yield b"this is no picture", "not a whole"
    yield plain[:-60], "not a whole"
    yield file_of("PPM"), "not a whole"
    yield b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a whole"
    side = int(MOST_PIXELS**0.5) + 100
    huge = io.BytesIO()
    Image.new("1", (side, side)).save(huge, "PNG")
    yield huge.getvalue(), "too many"


@pytest.mark.parametrize(("body", "word"), list(bad_files()), ids=["nothing", "text", "cut", "ppm",
                                                            "svg", "huge"])
def test_what_is_no_picture_is_refused_by_its_name_and_leaves_nothing(client, services, body,
                                                                      word):
    for path in ("history/add", "restore"):
        answer = client.post(f"/api/{path}", params={"name": "../../x.png"}, content=body)
        assert answer.status_code == 400 and word in line_of(answer)
        assert line_of(answer).startswith("x.png")
    assert services.history.entries() == [] and not list(services.history.folder.rglob("*.png"))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_of_a_picture_without_settings_it_is_told_what_can_be_done(client, kind):
    answer = client.post("/api/restore?name=a/b/x.png", content=file_of(kind))
    assert answer.json() == {
        "settings": None, "text": "x.png holds no settings. You can edit it."}


# Pictures that go out


@pytest.mark.parametrize(("query", "kind", "scale"), [
    ("format=jpeg", "JPEG", 1), ("format=webp&scale=2", "WEBP", 2), ("scale=2", "PNG", 2),
    ("format=png&scale=2&smooth=true", "PNG", 2)])
def test_a_picture_is_saved_in_other_formats_and_twice_as_large(client, finished, query, kind,
                                                                scale):
    saved, = finished("/api/draw", settings=HOUSE)["saved"]
    answer = client.get(f"{saved['picture']}?{query}")
    with Image.open(io.BytesIO(answer.content)) as image:
        assert (image.format, image.size) == (kind, (scale * PIXELS, scale * PIXELS))
        assert (CHUNK in image.info) is (kind == "PNG"), "PNGs keep their recipe"
        assert answer.headers["content-type"] == f"image/{kind.lower()}"


def test_enlarged_pixels_are_squares_unless_they_are_smooth(client, finished):
    saved, = finished("/api/draw", settings=HOUSE)["saved"]
    sharp, smooth = (np.asarray(Image.open(io.BytesIO(client.get(
        f"{saved['picture']}?scale=2&smooth={smooth}").content))) for smooth in ("false", "true"))
    own = np.asarray(Image.open(io.BytesIO(client.get(saved["picture"]).content)))
    assert np.array_equal(sharp, own.repeat(2, 0).repeat(2, 1))
    assert not np.array_equal(sharp, smooth)


@pytest.mark.parametrize("query", ["format=gif", "format=", "scale=3", "scale=0", "scale=1e9",
                                   "scale=-2", "smooth=yes", "format=../x"])
def test_no_other_format_or_size_is_made(client, finished, query):
    saved, = finished("/api/draw", settings=HOUSE)["saved"]
    answer = client.get(f"{saved['picture']}?{query}")
    assert answer.status_code == 400 and "choose one of" in answer.text


# Figures in a person's words


def test_a_picture_is_summed_up_in_words_and_the_rest_are_facts(client, finished):
    job = finished("/api/draw", settings={**HOUSE, "method": "rolling", "fewer": 8.0})
    saved, = job["saved"]
    assert re.fullmatch(r"\d+\.\d s, close to what the model draws", saved["summary"])
    facts = dict(saved["facts"])
    assert facts["Forward passes"].endswith(f" / {SIDE**2}") and float(facts["Seconds"]) > 0
    chinese = client.get(f"/api/jobs/{job['id']}", headers=CHINESE).json()["saved"][0]
    assert "与模型原样相近" in chinese["summary"] and "前向次数" in dict(chinese["facts"])
    plain, = finished("/api/draw", settings={**HOUSE, "method": "ar"})["saved"]
    assert plain["summary"].endswith(" s, exactly as the model draws it")


# Races


def raced(finished, *racers, **body):
    job = finished("/api/race", settings=HOUSE, racers=list(racers), **body)
    assert job["state"] == "done", job["error"]
    return job


def test_all_racers_draw_by_the_same_new_seed(finished):
    job = finished("/api/race", settings={**HOUSE, "seed": "-1"}, racers=["rows", "fast", "ar"])
    assert len({saved["seed"] for saved in job["saved"]}) == 1 and len(job["saved"]) == 3


@pytest.mark.parametrize("racers", [("rows", "ar"), ("ar", "rows")])
def test_the_guarantee_is_of_the_picture_that_is_not_the_reference(finished, racers):
    told = raced(finished, *racers)["result"]["guarantee"]
    assert told.count(": ") == 1 and told.startswith("rows")
    assert ": similar to the reference, " in told and "% of its tokens are" in told


def test_without_the_reference_both_are_judged_and_what_they_share_is_told(client, finished):
    job = raced(finished, "rows", "balanced")
    assert job["result"]["guarantee"].count(": similar to the reference.") == 2
    assert "of their tokens" in job["result"]["guarantee"]
    chinese = client.get(f"/api/jobs/{job['id']}", headers=CHINESE).json()
    assert "两张图" in chinese["result"]["guarantee"]


def test_nearly_all_is_not_all(finished, services):
    job = raced(finished, "rows", "ar")
    result = services.worker.job(job["id"]).result
    rows, ar = result.saved.pictures
    measured = replace(rows.facts.measured, share=0.99991)
    result.saved.pictures = [replace(rows, facts=replace(rows.facts, measured=measured)), ar]
    assert "99.9% of its tokens" in guarantee(result, "en")


def test_speeds_race_under_their_names():
    own = {"prompt": "a red house", "method": "ssd", "rounds": 1, "window": 5}
    for stop in STOPS[1:]:
        assert stop_of(racing(own, stop.name), Grid(24, 24)) == STOPS.index(stop)
    assert as_json(racing(own, AS_CHOSEN)) == as_json(wished(**own))
    assert racing(own, "rows").method == Rows(rounds=1) and racing(own, "exact").method.window == 5


@pytest.mark.parametrize(("setting", "values"), [
    ("seed", ["1", "2"]), ("cfg", [1, 4]), ("temperature", [0.5, 1]),
    ("prompt", ["a red house", "a blue boat"])])
def test_a_race_has_rows_by_another_setting(finished, services, setting, values):
    job = raced(finished, "balanced", "fast", setting=setting, values=values)
    assert (job["setting"], job["values"]) == (setting, values)
    assert [saved["place"] for saved in job["saved"]] == [0, 1, 2, 3]
    recipes = [read_recipe(services.history.entry(saved["id"]).path) for saved in job["saved"]]
    made = [recipe[setting] for recipe in recipes]
    wanted = [int(value) if setting == "seed" else value for value in values]
    assert made == [wanted[0]] * 2 + [wanted[1]] * 2
    fewer = [recipe["fewer"] for recipe in recipes]
    assert fewer == [8.0, 12.0] * 2
    assert services.history.entry(job["result"]["sheet"]).kind == "race"
    panels = {message["panel"] for message in services.worker.job(job["id"]).messages}
    assert panels == {0, 1, 2, 3}


def test_every_row_is_judged_by_its_own_reference(finished):
    job = raced(finished, "plain", "faithful", setting="seed", values=["1", "2"])
    guarantees = [row[3] for row in job["result"]["rows"]]
    assert guarantees == ["the reference", "the same picture as the reference"] * 2


def test_a_race_of_rows_that_is_stopped_keeps_what_is_there(
        finished, services, every_message, stopped_at):
    stopped_at(5, panel=2)
    job = finished("/api/race", settings=HOUSE, racers=["balanced", "fast"], setting="seed",
                   values=["1", "2", "3"])
    assert job["state"] == "cancelled" and [saved["place"] for saved in job["saved"]] == [0, 1]
    assert {saved["seed"] for saved in job["saved"]} == {"1"} and job["result"]["sheet"]
    kinds = sorted(entry.kind for entry in services.history.entries())
    assert kinds == ["picture", "picture", "race"]


@pytest.mark.parametrize("body", [
    {"setting": "k_h", "values": [1, 2]}, {"setting": "seed"}, {"values": ["1"]},
    {"setting": "seed", "values": ["x", "1"]}, {"setting": "cfg", "values": ["x", 1]},
    {"setting": "temperature", "values": [-2, 1]}, {"setting": "prompt", "values": ["", "a"]},
    {"setting": "prompt", "values": ["a" * 5000, "a"]}, {"setting": "seed", "values": "12"},
    {"setting": "seed", "values": ["1"] * 40}, {"setting": ["seed"], "values": ["1", "2"]}])
def test_rows_that_cannot_be_are_refused_before_the_queue(client, worker, body):
    answer = client.post("/api/race", json={"settings": HOUSE, "racers": ["ar", "rows"], **body})
    assert answer.status_code == 400 and line_of(answer) and not worker._jobs


def test_one_racer_is_enough_for_rows(finished):
    assert len(raced(finished, "fast", setting="seed", values=["1", "2"])["saved"]) == 2


def test_the_prompts_of_rows_take_the_place_of_an_empty_one(finished):
    job = finished("/api/race", settings={**HOUSE, "prompt": ""}, racers=["fast"],
                   setting="prompt", values=["a {red|blue} house", "a boat"])
    assert job["state"] == "done", job["error"]


# Seeds


def test_finishing_seeds_goes_before_the_tops_that_still_wait(client, worker):
    first, *_ = started(client, worker, 2)
    gate = Event()
    worker.submit("draw", lambda job: gate.wait(30), "someone else")
    owner = worker.job(first["id"]).owner
    top, other = (worker.submit(title, lambda job: None, owner) for title in (TOPS, "draw"))
    rest = client.post("/api/seeds/finish", json={"jobs": [first["id"]]}).json()["jobs"][0]["id"]
    order = sorted((top, other, worker.job(rest)), key=worker.position)
    gate.set()
    assert order == [worker.job(rest), top, other]


def started(client, worker, count=4, **body):
    return waited(client, worker, client.post("/api/seeds/start", json={
        "settings": HOUSE, "count": count, "part": "third", **body}))


@pytest.mark.parametrize(("part", "row"), [("third", 4), ("half", 6), ("most", 10)])
def test_as_much_of_each_seed_is_drawn_first_as_was_asked(client, worker, part, row):
    jobs = started(client, worker, 2, part=part)
    assert [job["seed"] for job in jobs] == ["7", "8"]
    assert all(job["state"] == "paused" and job["rows"][0] in (row, row + 1) for job in jobs)


def test_stopping_the_queue_leaves_the_seeds_that_are_paused(client, worker, services):
    ids = [job["id"] for job in started(client, worker, 2)]
    client.post("/api/queue/stop")
    assert {job["state"] for job in client.get("/api/jobs").json()["jobs"]} == {"paused"}
    assert set(services.parked_seeds._parked) == set(ids)


def test_seeds_that_were_freed_are_told_as_expired_and_refused(client, worker, services):
    ids = [job["id"] for job in started(client, worker, 2)]
    services.parked_seeds.drop_all()
    assert all(job["expired"] for job in client.get("/api/jobs").json()["jobs"])
    answer = client.post("/api/seeds/finish", json={"jobs": ids[:1]})
    assert answer.status_code == 400 and "has expired" in line_of(answer)


def test_a_start_that_is_refused_leaves_what_is_paused(client, worker, services):
    ids = [job["id"] for job in started(client, worker, 2)]
    answer = client.post("/api/seeds/start", json={
        "settings": {**HOUSE, "method": "ssd", "k_h": 0}})
    assert answer.status_code == 400 and "k_h" in line_of(answer)
    assert set(services.parked_seeds._parked) == set(ids)


def test_a_finished_seed_that_was_not_saved_says_so_beside_those_that_were(client, worker, full):
    ids = [job["id"] for job in started(client, worker, 3)]
    done = waited(client, worker, client.post("/api/seeds/finish", json={"jobs": ids[:2]}))
    assert [job["result"]["problem"] is None for job in done] == [True, False]
    assert "full" in done[1]["result"]["problem"] and len(done[1]["saved"]) == 1
    states = [job["state"] for job in client.get("/api/jobs").json()["jobs"]]
    assert states.count("paused") == 1


def test_variations_of_a_redone_picture_keep_what_it_kept(client, worker, finished, services):
    first = finished("/api/draw", settings=HOUSE)["saved"][0]["id"]
    redone = finished("/api/redo", settings={**HOUSE, "seed": "3"}, source=first, rows=6)
    jobs = started(client, worker, 2, like=redone["saved"][0]["id"])
    top = services.worker.job(redone["id"]).result.tokens[:, :6].cpu()
    parked = [services.parked_seeds._parked[job["id"]].run for job in jobs]
    assert [run.result.rows for run in parked] == [8, 8]
    for run in parked:
        assert torch.equal(run.result.tokens[:, :6].cpu(), top)
        assert run.request.drawing.keep_rows == 6


# Plans


@pytest.mark.parametrize("dtype, invariant, mentioned", [
    (torch.float32, False, False), (torch.bfloat16, False, True), (torch.bfloat16, True, False)])
def test_rounding_is_mentioned_where_it_may_change_the_picture(
        services, monkeypatch, dtype, invariant, mentioned):
    backbone = services.library.current.backbone
    monkeypatch.setattr(type(backbone), "dtype", property(lambda self: dtype))
    monkeypatch.setattr(backbone, "batch_invariant", invariant)
    faithful = wished(**STOPS[1].knobs)
    assert ("Rounding in bf16" in about_speed(faithful, backbone, "en")) is mentioned


def test_the_plan_of_pictures_in_turn_says_what_each_takes(client, services, monkeypatch):
    def step_times(backbone, pictures,
                   *_):  # a pass of AR takes 1 ms a picture, of a window much more
        return StepTimes({1: {1: 1.0 * pictures, 96: 5.0 * pictures**2}})

    monkeypatch.setattr("ssd_core.engine.tuning.step_times_of", step_times)
    monkeypatch.setattr(services.library.current.backbone, "batch_invariant", True)
    asked = {"settings": {**HOUSE, "method": "rolling", "pictures": 3}}
    assert "3 pictures" in client.post("/api/plan", json=asked).json()["text"]
    assert "3 张图像" in client.post("/api/plan", json=asked, headers=CHINESE).json()["text"]
