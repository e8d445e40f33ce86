"""The tabs' handlers without a browser: what is told and offered when a run ends early or fails."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.coroutines import result_of

gr = pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

import torch  # noqa: E402
from PIL import Image  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from ssd_core.backbones.base import Backbone  # noqa: E402
from ssd_core.backbones.estimates import Pace  # noqa: E402
from ssd_core.backbones.llamagen import ClassLlamaGen, TextLlamaGen  # noqa: E402
from ssd_core.engine.methods import METHODS  # noqa: E402
from studio import drawn as drawn_module  # noqa: E402
from studio import runs  # noqa: E402
from studio import seeds as seeds_module  # noqa: E402
from studio.downloads import Downloads  # noqa: E402
from studio.history import History  # noqa: E402
from studio.library import Library  # noqa: E402
from studio.orders import TOPS  # noqa: E402
from studio.services import Services  # noqa: E402
from studio.settings import AS_CHOSEN, STOPS, Settings, racing, stop_of  # noqa: E402
from studio.tabs.chips import chips_html  # noqa: E402
from studio.tabs.common import line  # noqa: E402
from studio.tabs.controls import NAMES, Controls  # noqa: E402
from studio.tabs.create import Create  # noqa: E402
from studio.tabs.race import NOBODY, Race, figures  # noqa: E402
from studio.tabs.redo import Redo  # noqa: E402
from studio.tabs.seeds import Seeds  # noqa: E402
from studio.verdicts import verdict  # noqa: E402
from studio.views import saved_by  # noqa: E402
from studio.words import labels, run_title, say, translations  # noqa: E402

pytestmark = pytest.mark.slow
REQUEST = SimpleNamespace(session_hash="me", headers={})
BOX = ("a red house", "")  # prompt and negative prompt on the page, as last drawn


@pytest.fixture(scope="module")
def built(models):
    """The tabs, once; building them takes longer than most tests."""
    library = Library(models, "tiny", device="cpu")
    services = Services(None, library, None, None, None)
    t = translations()
    with gr.Blocks(), gr.Tabs() as tabs, gr.Tab() as tab:
        controls = Controls(services, t)
        page = SimpleNamespace(
            services=services, controls=controls, create=Create(services, t, controls),
            race=Race(services, t, controls), redo=Redo(services, t, controls),
            seeds=Seeds(services, t, controls), tabs=tabs)
        page.create.wire(page.redo, tabs)
        page.race.wire()
        page.redo.wire(tab, tabs)
        page.seeds.wire(page.redo, tabs)
    return page


@pytest.fixture
def page(built, worker, library, history, parked_seeds, models, tmp_path, monkeypatch):
    """The tabs with a worker, a library and a history of this test's own."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "gradio"))
    own = Services(worker, library, history, parked_seeds, Downloads(models))
    vars(built.services).update(vars(own))
    return built


def told(handler, *args, meanwhile=lambda number, told: None):
    """Everything that a handler tells, merged; meanwhile(n, told) is called after each of it."""
    async def run():
        merged, number = {}, 0
        async for one in handler(*args):
            merged.update(one)
            await asyncio.to_thread(meanwhile, number, one)
            number += 1
        return merged

    return result_of(run())


def values(page, **changes):
    return page.controls.values_of(Settings.of(**{"prompt": "a red house", "seed": 7, **changes}))


def draw(page, **options):
    return told(page.create.run, REQUEST, True, True, *values(page), **options)


@pytest.fixture
def stopped_at(worker, monkeypatch):
    """Every run is stopped by its visitor once so many of its rows are told."""
    def stop(rows):
        def tell(job, message):
            job.messages.append(message)
            if message.get("last", 0) >= rows:
                job.cancel(parked=False)

        monkeypatch.setattr("studio.jobs.Job.tell", tell)
    return stop


# Create and Redo


def test_the_top_of_a_stopped_picture_is_kept_and_gone_on_with(page, every_message, stopped_at):
    stopped_at(5)
    create, redo = page.create, page.redo
    shown = draw(page)
    assert "Stopped at row" in shown[create.status]
    assert shown[create.stopped.row]["visible"] and shown[create.stop]["interactive"] is False
    kept = create.stopped.keep_top(shown[create.stopped.job], True, *BOX, REQUEST)
    entry, = page.services.history.entries()
    assert kept[redo.source] == str(entry.path) and kept[page.tabs]["selected"] == "redo"
    assert kept[create.stopped.row]["visible"] is False and kept[create.stopped.job] is None


@pytest.mark.parametrize(("metadata", "how"), [
    (True, "tokens from its recipe"), (False, runs.HELD)])
def test_a_kept_top_has_a_recipe_only_where_that_is_wanted(page, every_message, stopped_at,
                                                           metadata, how):
    stopped_at(5)
    shown = draw(page)
    kept = page.create.stopped.keep_top(shown[page.create.stopped.job], metadata, *BOX, REQUEST)
    with Image.open(kept[page.redo.source]) as image:
        assert ("ssd_recipe" in image.info) is metadata
    assert how in kept[page.redo.summary]


@pytest.mark.parametrize(("harm", "line"), [
    (lambda page: page.services.library.use("bare"), "but bare is loaded"),
    (lambda page: page.services.worker._jobs.clear(), "Expired")])
def test_a_top_that_cannot_be_kept_is_one_line_and_leads_nowhere(page, every_message, stopped_at,
                                                                harm, line):
    stopped_at(5)
    shown = draw(page)
    harm(page)
    kept = page.create.stopped.keep_top(shown[page.create.stopped.job], True, *BOX, REQUEST)
    trouble = page.controls.trouble
    assert list(kept) == [trouble] and line in kept[trouble]


def test_a_redo_that_is_stopped_offers_its_top_too(page, every_message, stopped_at):
    draw(page)
    source = str(page.services.history.entries()[0].path)
    stopped_at(9)
    redo = page.redo
    shown = told(redo.run, REQUEST, source, 3, "", True, True, *values(page, seed=8))
    assert "Stopped at row" in shown[redo.status] and shown[redo.stopped.row]["visible"]
    kept = redo.stopped.keep_top(shown[redo.stopped.job], True, *BOX, REQUEST)
    assert "partial" in kept[redo.source]


def test_a_redo_stopped_before_its_first_new_row_offers_nothing(page, every_message, stopped_at):
    draw(page)
    source = str(page.services.history.entries()[0].path)
    stopped_at(3)
    shown = told(page.redo.run, REQUEST, source, 3, "", True, True, *values(page, seed=8))
    assert "before the first row" in shown[page.redo.status]
    assert shown[page.redo.stopped.row]["visible"] is False


def test_pictures_that_were_not_saved_are_offered_from_memory(page, monkeypatch):
    save, number = History.save, iter(range(9))

    def full(*args, **options):
        if next(number):
            raise SSDError("the disk is full")
        return save(*args, **options)

    monkeypatch.setattr(History, "save", full)
    shown = told(page.create.run, REQUEST, True, True, *values(page, pictures=3))
    assert "the disk is full" in shown[page.controls.trouble]
    job = page.services.worker.latest("me", "draw")
    assert [one["seed"] for one in saved_by(job, "en")] == ["7", "8", "9"], "tools are offered"
    for one in saved_by(job, "en"):
        assert page.services.history.png(one["id"]).startswith(b"\x89PNG")
    assert len(page.services.history.entries()) == 1 and job.state == "done"


def test_a_run_is_refused_in_one_line_while_a_backbone_loads(page):
    page.services.library._loaded = None
    with page.services.library._lock:
        racers = ("ar", "ssd", *[NOBODY] * 4)
        for tab, args in ((page.create, (True, True)), (page.race, (*racers, True, True)),
                          (page.redo, ("x.png", 3, "", True, True))):
            shown = told(tab.run, REQUEST, *args, *values(page))
            trouble, note = page.controls.trouble, page.controls.note
            assert shown == {trouble: shown[trouble], note: ""}
            assert "is being loaded" in shown[trouble]


def test_the_line_has_the_rows_of_the_pictures_size(page, tmp_path, monkeypatch):
    Image.new("RGB", (384, 384)).save(tmp_path / "x.png")
    monkeypatch.setattr(runs, "look", lambda *args: runs.Source("encoded", None, 48))
    _, _, html, slider, *_ = page.redo.show_upload(str(tmp_path / "x.png"), *BOX, REQUEST)
    assert 'rows="48" row="24"' in html and slider["maximum"] == 47


@pytest.mark.parametrize("size, most", [("", 47), ("384x1024", 48)])
def test_rows_that_were_not_drawn_are_never_kept(page, tmp_path, monkeypatch, size, most):
    whole, stopped = (runs.Source("tokens", finished, 48) for finished in (None, 5))
    for source, limit in ((whole, most), (stopped, 5)):
        monkeypatch.setattr(runs, "look", lambda *args, source=source: source)
        assert page.redo.resized("x.png", size)["maximum"] == limit


def test_where_a_pictures_tokens_come_from_is_told_in_chinese(page, tmp_path):
    Image.new("RGB", (384, 384)).save(tmp_path / "x.png")
    chinese = SimpleNamespace(session_hash="me", headers={"accept-language": "zh"})
    told = page.redo.show_upload(str(tmp_path / "x.png"), *BOX, chinese)[1]
    assert "重新编码：它不带配方" in told


def test_what_is_looked_at_has_the_rows_of_its_size(history, library, tmp_path, monkeypatch):
    backbone = library.current.backbone
    monkeypatch.setattr(backbone, "sizes", ((384, 384), (192, 192)))
    monkeypatch.setattr(type(backbone), "resized", lambda self, size: SimpleNamespace(
        grid=SimpleNamespace(rows=size[1] // 16)))
    Image.new("RGB", (192, 192)).save(tmp_path / "x.png")
    assert runs.look(history, tmp_path / "x.png", backbone).rows == 12


TOKEN = "0f" * 32


def again(tab, session, **options):
    return told(tab.resume, SimpleNamespace(session_hash=session, headers={}), **options)


def test_a_page_that_was_loaded_again_shows_its_finished_picture_and_no_other_visitor_does(page):
    create, visits = page.create, page.services.visits
    visits.attach("me", TOKEN)
    draw(page)
    for session, token in (("me again", TOKEN), ("other", "1f" * 32), ("guess", TOKEN[:-1]),
                           ("none", None), ("list", [TOKEN])):
        visits.attach(session, token)
        shown = again(create, session)
        assert (create.stage in shown) is (session == "me again")
    entry, = page.services.history.entries()
    shown = again(create, "me again")
    assert entry.path.name in shown[create.status] and shown[create.stage].count("jobs=")


def test_a_batch_stopped_in_its_second_picture_tells_what_was_saved_before(
        page, every_message, monkeypatch):
    monkeypatch.setattr("ssd_core.runs.request.sooner_alone", lambda *_: True)

    def tell(job, message):
        job.messages.append(message)
        if message["panel"] == 1 and message.get("last", 0) >= 5:
            job.cancel(parked=False)

    monkeypatch.setattr("studio.jobs.Job.tell", tell)
    create = page.create
    shown = told(create.run, REQUEST, True, True, *values(page, pictures=2))
    entry, = page.services.history.entries()
    assert str(entry.path) in shown[create.status] and "Stopped at row" in shown[create.status]
    job = page.services.worker.job(shown[create.stopped.job])
    assert [one["id"] for one in saved_by(job, "en")] == [entry.id]
    create.stopped.keep_top(job.id, True, *BOX, REQUEST)
    assert sorted(one.seed for one in page.services.history.entries()) == [7, 8]


def test_the_plan_of_pictures_in_turn_says_what_each_takes(page, monkeypatch):
    def pace(backbone, pictures, *_):  # a pass of AR takes 1 ms a picture, of a window much more
        return Pace({1: {1: 1.0 * pictures, 96: 5.0 * pictures**2}})

    monkeypatch.setattr("ssd_core.engine.choice.pace_of", pace)
    loaded = page.services.library.current
    wish = Settings(prompt="a red house", method="rolling", pictures=3)
    asked = wish.request(loaded.backbone, loaded.heads)
    each = asked.parts()[0].choice
    cost = f"About {each.cost.seconds:.2f} s: {each.cost.passes:.0f} passes"
    html = page.controls.plan_html(wish, "en")
    assert f"The 3 pictures are drawn one after the other. Each: {cost}" in html
    assert asked.plan.choice == f"3 pictures one after the other, each {each.text}"
    assert "3 张图像逐张绘制" in page.controls.plan_html(wish, "zh")
    assert "one after the other" not in page.controls.plan_html(replace(wish, pictures=1), "en")


def test_what_was_stopped_is_offered_again_until_it_is_discarded(page, every_message, stopped_at):
    stopped_at(5)
    create = page.create
    draw(page)
    shown = again(create, "me")
    assert shown[create.stopped.row]["visible"] and "Stopped at row" in shown[create.status]
    create.stopped.discarded(shown[create.stopped.job])
    assert create.stopped.row not in again(create, "me")


def test_seeds_that_wait_are_shown_again_and_go_on(page):
    page.services.visits.attach("me", TOKEN)
    start(page, 3)
    page.services.visits.attach("me again", TOKEN)
    shown = again(page.seeds, "me again")
    require_rest(page, shown, ["7", "8", "9"])
    assert "3 paused" in shown[page.seeds.status]
    request = SimpleNamespace(session_hash="me again", headers={})
    done = told(page.seeds.complete, ["8"], shown[page.seeds.job_ids], True, request)
    assert "1 finished" in done[page.seeds.status]
    shown = again(page.seeds, "me again")
    require_rest(page, shown, ["7", "9"])
    assert len(shown[page.seeds.result]) == 1


def test_finished_seeds_are_shown_again_though_their_tops_are_forgotten(page):
    worker = page.services.worker
    finish(page, ["7", "8"], start(page, 2))
    worker.forget(*worker.of("me", TOPS))
    shown = again(page.seeds, "me")
    assert "2 finished" in shown[page.seeds.status] and len(shown[page.seeds.result]) == 2


def test_a_stage_s_tool_opens_its_picture_in_redo_with_its_prompt(page):
    told(page.create.run, REQUEST, True, True, *values(page, pictures=2))
    job = page.services.worker.latest("me", "draw")
    second = saved_by(job, "en")[1]
    shown = page.redo.open_picture(json.dumps({"value": second["id"], "wish": 1}), *BOX, REQUEST)
    tab, source, _, html, *_, prompt = shown
    assert tab["selected"] == "redo" and second["id"] in html and prompt == "a red house"
    assert source == str(page.services.history.entry(second["id"]).path)


def test_variations_are_the_seeds_around_a_picture_s_own(page):
    wish = json.dumps({"value": {"id": "gone.png", "seed": str(2**64 - 1)}, "wish": 1})
    shown = told(page.seeds.vary, REQUEST, wish, 4, "third", {}, *values(page))
    assert shown[page.tabs]["selected"] == "seeds"
    assert page.controls.lock not in shown, "whether seeds are kept is the visitor's choice"
    assert list(shown[page.seeds.job_ids]) == [str(2**64 - 3), str(2**64 - 2), str(2**64 - 1), "0"]


def test_variations_of_a_saved_picture_have_its_settings(page):
    draw(page)
    picture = {"id": page.services.history.entries(1)[0].id, "seed": "7"}
    wish = json.dumps({"value": picture, "wish": 1})
    shown = told(page.seeds.vary, REQUEST, wish, 4, "third", {}, *values(page, rounds=3))
    assert list(shown[page.seeds.job_ids]) == ["5", "6", "7", "8"]
    own = [shown[page.controls.parts[name]] for name in ("prompt", "rounds", "seed")]
    assert own == ["a red house", values(page)[NAMES.index("rounds")], "5"]


def test_variations_of_a_redone_picture_keep_what_it_kept(page):
    services = page.services
    draw(page)
    first = services.history.entries(1)[0]
    redo = services.worker.submit("redo", runs.redo(
        services.library, services.history, Settings.of(prompt="a tent", seed=3), first.path, 12))
    assert redo.wait(30) and redo.state == "done", redo.error
    wish = json.dumps({"value": {"id": redo.result.entries[0].id, "seed": "3"}, "wish": 1})
    shown = told(page.seeds.vary, REQUEST, wish, 2, "third", {}, *values(page))
    parked = [services.parked_seeds._parked[id_].run for id_ in shown[page.seeds.job_ids].values()]
    top = redo.result.tokens[:, :12].cpu()
    assert [run.result.rows for run in parked] == [16, 16]
    for run in parked:
        assert torch.equal(run.result.tokens[:, :12].cpu(), top)
        assert run.request.keep_rows == 12


# Words


@pytest.mark.parametrize("any_words", [True, False])
def test_styles_are_offered_where_any_words_may_stand_in_a_prompt(any_words):
    html = chips_html(SimpleNamespace(word_kinds=(), takes_any_words=any_words), "en")
    assert ("watercolour" in html) is any_words
    assert TextLlamaGen.takes_any_words is Backbone.takes_any_words
    assert ClassLlamaGen.takes_any_words is False


# Race


def race(page, *methods, language="en", **changes):
    job = page.services.worker.submit("race", runs.race(
        page.services.library, page.services.history,
        Settings.of(prompt="a red house", seed=7, **changes), methods))
    assert job.wait(30) and job.state == "done", job.error
    return job.result, verdict(job.result, language)


@pytest.mark.parametrize("methods", [("ssd", "ar"), ("ar", "ssd")])
def test_the_verdict_is_of_the_picture_that_is_not_ar(page, methods):
    raced, text = race(page, *methods, rounds=0)
    label = raced.labels[methods.index("ssd")]
    assert text.startswith(f"{label} is approximate, "), "the figures stand below the pictures"
    assert "of its tokens are those of normal decoding" in text
    assert "ar is" not in text and "identical" not in text


def test_without_ar_both_are_judged_and_what_they_share_is_told(page):
    raced, text = race(page, "ssd", "rows", rounds=0)
    assert [f"{label} is approximate." in text for label in raced.labels] == [True, True]
    assert "of their tokens" in text
    assert "两张图" in verdict(raced, "zh")


def test_more_than_two_are_compared_in_a_table(page):
    raced, _ = race(page, "ar", "exact", "rows", rounds=0)
    for language, itself in (("en", "normal decoding itself"), ("zh", "普通解码本身")):
        rows = re.findall("<tr>(.*?)</tr>", figures(raced, language))
        cells = [re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in rows]
        assert [len(row) for row in cells] == [4] * 4
        assert cells[1][0] == run_title("ar", language) != "ar"
        assert cells[1][1] == "576" and cells[1][3] == itself
        assert cells[2][3] == say(language, "identical") and "%" in cells[3][3]
    shown = page.race.outcome(SimpleNamespace(state="done", result=raced), "en")
    assert "<table" in shown[page.race.status]


def test_every_list_of_methods_says_what_they_promise(page):
    lists = [page.controls.parts["method"], *page.race.racers]
    for box in lists:
        values = [value for _, value in box.choices]
        assert [value for value in values if value in METHODS] == list(METHODS)
    texts = labels()
    for name, method in METHODS.items():
        english, chinese = texts[f"method_{name}"]
        assert english == f"{name} ({method.verdict})" and name in chinese
        assert chinese != english and not chinese.endswith("（）")


def test_speeds_race_under_their_names(page):
    own = Settings.of(prompt="a red house", method="ssd", rounds=1)
    for stop in STOPS[1:]:
        assert stop_of(racing(own, stop.name)) == STOPS.index(stop)
    assert racing(own, AS_CHOSEN) == own and racing(own, "rows").method == "rows"
    offered = [value for _, value in page.race.racers[0].choices]
    assert len(offered) == len(set(offered)) and set(METHODS) | {"fast", "balanced"} < set(offered)


def test_nearly_all_is_not_all(page):
    raced, _ = race(page, "ssd", "ar", rounds=0)
    assert "99.9% of its tokens" in verdict(replace(raced, identical=[0.99991, 1.0]), "en")


def test_a_stopped_race_only_says_so(page, every_message, stopped_at):
    stopped_at(5)
    shown = told(page.race.run, REQUEST, "ar", "ssd", "", "", "", "", True, True,
                 *values(page))
    assert say("en", "halted") in shown[page.race.status]


# Seeds


def start(page, count=4, part="third", **options):
    return told(page.seeds.begin, REQUEST, count, part, {}, True, *values(page), **options)


def finish(page, ticked, shown, **options):
    return told(page.seeds.complete, ticked, shown[page.seeds.job_ids], True, REQUEST, **options)


def require_rest(page, shown, left):
    """Nothing runs; the seeds in `left` can be ticked and are parked, no others."""
    seeds, parked = page.seeds, page.services.parked_seeds._parked
    assert shown[seeds.running] == [] and shown[seeds.start]["interactive"] is True
    assert shown[seeds.stop]["interactive"] is False
    assert list(shown[seeds.job_ids]) == left
    assert set(parked) == set(shown[seeds.job_ids].values())


def pressing_stop(page, at):
    """Press Stop once a status line holds `at`."""
    def meanwhile(number, shown):
        if at in shown.get(page.seeds.status, ""):
            for job in list(page.services.worker._jobs.values()):
                job.cancel(parked=False)
    return meanwhile


@pytest.fixture
def hanging(monkeypatch):
    """Runs of a module but the first `count` reach so many rows, and no more until they are
    stopped."""
    def hang(module, count, rows):
        advance, begun = module.advance, []

        def first_rows(job, run, *until, **beside):
            begun.append(job)
            if len(begun) <= count:
                return advance(job, run, *until, **beside)
            advance(job, run, rows, **beside)
            end = time.monotonic() + 60
            while time.monotonic() < end:
                job.check()
                time.sleep(0.002)
            raise AssertionError("nobody stopped this run")

        monkeypatch.setattr(module, "advance", first_rows)
    return hang


def test_stop_leaves_the_seeds_that_wait(page, hanging):
    hanging(seeds_module, 2, 1)
    shown = start(page, meanwhile=pressing_stop(page, "2 of 4 drawn"))
    require_rest(page, shown, ["7", "8"])
    assert shown[page.seeds.ticks]["choices"] == ["7", "8"]
    assert re.search(r"2 paused at row (8|9) of 24", shown[page.seeds.status])
    done = finish(page, ["8"], shown)
    assert "1 finished" in done[page.seeds.status] and len(done[page.seeds.result]) == 1
    require_rest(page, done, ["7"])


@pytest.mark.parametrize(("part", "row"), [("third", 8), ("half", 12), ("most", 16)])
def test_as_much_of_each_seed_is_drawn_first_as_was_asked(page, part, row):
    shown = start(page, 2, part)
    assert re.search(rf"2 paused at row ({row}|{row + 1}) of 24", shown[page.seeds.status])


def test_seeds_stopped_before_any_waits_are_just_stopped(page, stopped_at):
    stopped_at(0)
    shown = start(page, 2)
    require_rest(page, shown, [])
    assert shown[page.seeds.status] == line(say("en", "halted"))


def test_stop_while_finishing_keeps_the_others_and_offers_the_top(page, hanging):
    shown = start(page)
    hanging(drawn_module, 0, 12)

    def stop(number, one):
        jobs = [page.services.worker.job(id_) for id_ in one.get(page.seeds.running, ())]
        while jobs and jobs[0].progress < 0.5 and not jobs[0].over:
            time.sleep(0.002)
        for job in jobs:
            job.cancel(parked=False)

    done = finish(page, ["7", "8", "9"], shown, meanwhile=stop)
    require_rest(page, done, ["8", "9", "10"])
    assert "Stopped at row 12 of 24" in done[page.seeds.status]
    assert done[page.seeds.stopped.row]["visible"] and done[page.seeds.result] == []
    assert page.seeds.stopped.keep_top(done[page.seeds.stopped.job], True, *BOX, REQUEST)


def test_seeds_that_another_visitor_freed_are_told_as_gone(page, hanging):
    hanging(seeds_module, 2, 1)

    def use(number, shown):
        if "2 of 4 drawn" in shown.get(page.seeds.status, ""):
            page.services.parked_seeds.drop_all()
            pressing_stop(page, "")(number, shown)

    shown = start(page, meanwhile=use)
    require_rest(page, shown, [])
    assert shown[page.seeds.status] == line(say("en", "seeds_gone"))


def test_ticks_of_seeds_that_are_gone_are_left_out(page):
    shown = start(page)
    done = finish(page, ["7", "99"], shown)
    assert "1 finished" in done[page.seeds.status]
    refused = finish(page, ["99"], done)
    assert say("en", "tick_first") in refused[page.seeds.status]
    require_rest(page, refused, ["8", "9", "10"])


def test_seeds_freed_while_they_rest_are_refused_and_the_buttons_stay_usable(page):
    shown = start(page, 2)
    page.services.parked_seeds.drop_all()
    refused = finish(page, ["7"], shown)
    assert "has expired" in refused[page.seeds.status]
    require_rest(page, refused, [])


def test_a_failed_seed_is_told_beside_those_that_were_finished(page, monkeypatch):
    shown = start(page, 3)
    save, number = History.save, iter(range(9))

    def full(*args, **options):
        if next(number):
            raise SSDError("the disk is full")
        return save(*args, **options)

    monkeypatch.setattr(History, "save", full)
    done = finish(page, ["7", "8"], shown)
    assert "1 finished" in done[page.seeds.status] and "full" in done[page.controls.trouble]
    require_rest(page, done, ["9"])


def test_a_start_that_is_refused_leaves_what_waits(page):
    shown = start(page, 2)
    refused = told(page.seeds.begin, REQUEST, 2, "third", shown[page.seeds.job_ids], True,
                   *values(page, k_h=0))
    assert "k_h" in refused[page.controls.trouble]
    require_rest(page, refused, ["7", "8"])
