"""Works: drawn pictures are saved and told, stopped ones go on, races measure, seeds are parked."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from support.drawings import by_methods, wished
from support.solo import PIXELS, SIDE, solo
from support.tiny_checkpoints import lumina

from ssd_core import SSDError
from ssd_core.output.pixels import tops
from ssd_core.output.preview import Preview
from ssd_core.output.recipe import read_recipe, recipe_tokens, to_bytes
from ssd_core.output.words import Words
from ssd_core.runs.request import Result
from ssd_core.weights.fit import fit
from studio import races, running, runs
from studio.history import History, restore
from studio.library import Library
from studio.seeds import ParkedSeeds
from studio.settings import as_json, asked


def kinds(job):
    return [message["kind"] for message in job.messages]


def stopping(work, rows=5):
    """The work of a visitor who presses Stop once so many rows were told."""
    def run(job):
        tell = job.tell
        job.tell = lambda message: (tell(message), message.get("row", 0) >= rows and job.cancel())
        return work(job)
    return run


# Draw


@pytest.mark.parametrize("method", ["ssd", "ar", "exact", "rows"])
def test_a_drawn_picture_is_saved_told_and_what_the_engine_draws(library, history, settings, ended,
                                                                 method):
    settings = asked({"method": method}, settings)
    job = ended(runs.draw(library, history, settings))
    drawn = job.result
    assert torch.equal(drawn.tokens, solo(library, settings))
    assert kinds(job)[0] == "started" and kinds(job)[-1] == "finished" and job.progress == 1
    assert history.entries() == drawn.entries and drawn.stopped_rows is None
    own = library.current.backbone.preset
    restored = restore(drawn.entries[0].path)[0]
    assert as_json(restored) == as_json(asked({
        "cfg": own.cfg, "min_p": own.min_p, "temperature": 1.0, "top_p": 1.0, "top_k": 0,
        "size": f"{PIXELS}x{PIXELS}", "prompt_expanded": settings.prompt,
        **vars(restored.method)}, settings))
    assert restored.method == settings.method.resolve(own)
    assert drawn.label.startswith(method) and drawn.stats["ar_passes"] == SIDE**2


def test_a_batch_has_a_picture_and_a_seed_each(library, history, settings, ended):
    drawn = ended(runs.draw(library, history, replace(settings, pictures=2))).result
    assert [entry.seed for entry in drawn.entries] == [7, 8]
    assert torch.equal(drawn.tokens, solo(library, replace(settings, pictures=2)))


def test_metadata_can_be_left_out(library, history, settings, ended):
    entry, = ended(runs.draw(library, history, settings, metadata=False)).result.entries
    with Image.open(entry.path) as image:
        assert image.info == {}


@pytest.mark.parametrize(("change", "line"), [
    ({"prompt": " "}, "prompt is empty"), ({"method": "ssd", "k_v": 9}, "k_v 9"),
    ({"size": "7x7"}, "size 7x7"), ({"negative": "sun", "cfg": 1.0}, "negative")])
def test_what_is_wrong_is_told_and_the_next_run_goes_well(library, history, settings, worker,
                                                         ended, change, line):
    job = worker.submit("wrong", runs.draw(library, history, asked(change, settings)))
    assert job.wait(30) and job.state == "failed" and line in job.error
    assert ended(runs.draw(library, history, settings)).result.entries


def test_the_picture_is_saved_before_it_is_shown_as_finished(library, history, settings, worker):
    saved = []

    def work(job):
        tell = job.tell
        job.tell = lambda message: (message["kind"] == "finished"
                                    and saved.extend(history.entries()), tell(message))
        return runs.draw(library, history, settings)(job)

    job = worker.submit("draw", work)
    assert job.wait(30) and job.result.entries == saved


def test_out_of_memory_is_one_line_and_the_next_run_goes_well(library, history, settings, worker,
                                                              ended, monkeypatch):
    def short(*args, **options):
        raise torch.OutOfMemoryError("tried to allocate 9 GiB")

    with monkeypatch.context() as patch:
        patch.setattr(type(library.current.backbone), "new_cache", short)
        job = worker.submit("draw", runs.draw(library, history, settings))
        assert job.wait(30) and job.state == "failed"
    assert job.error == f"out of memory: {running.REMEDY}" and kinds(job)[-1] == "cancelled"
    assert ended(runs.draw(library, history, settings)).result.entries


def test_a_preview_without_memory_does_not_end_the_run(library, history, settings, ended,
                                                       every_message, monkeypatch):
    tries = []

    def short(*args):
        tries.append(args)
        raise torch.OutOfMemoryError

    monkeypatch.setattr(Preview, "glanced", short)
    job = ended(runs.draw(library, history, settings))
    assert len(tries) == 1 and job.result.entries and kinds(job)[-1] == "finished"


def test_what_was_saved_before_the_memory_ended_is_kept(library, history, settings, worker,
                                                        monkeypatch):
    decoded = Result.pictures

    def second_fails(result):
        yield next(decoded(result))
        raise torch.OutOfMemoryError

    monkeypatch.setattr(Result, "pictures", second_fails)
    job = worker.submit("draw", runs.draw(library, history, replace(settings, pictures=2)))
    assert job.wait(30) and job.state == "failed" and job.result.entries == history.entries()
    assert len(job.result.entries) == 1 and len(job.result.tokens) == 2


def test_a_batch_that_cannot_fit_is_refused_before_it_runs(library, history, settings, worker,
                                                           monkeypatch):
    monkeypatch.setattr("ssd_core.weights.fit.free_bytes", lambda device: 1 << 10)
    job = worker.submit("draw", runs.draw(library, history, replace(settings, pictures=64)))
    assert job.wait(30) and "are needed" in job.error and not job.messages


@pytest.mark.parametrize("make", [
    lambda library, history, settings, source: runs.draw(library, history, settings),
    lambda library, history, settings, source: runs.redo(library, history, settings, source, 3),
    lambda library, history, settings, source: races.race(library, history,
                                                         by_methods(settings, "ar", "rows")),
    lambda library, history, settings, source: ParkedSeeds(library, history).start(
        settings, 1)[0][1]])
def test_a_run_never_draws_with_another_backbone_than_it_was_planned_for(
        library, history, settings, worker, tmp_path, make):
    Image.new("RGB", (PIXELS, PIXELS)).save(tmp_path / "x.png")
    work = make(library, history, settings, tmp_path / "x.png")
    library.use("bare")
    job = worker.submit("late", work)
    assert job.wait(30) and job.state == "failed"
    assert job.error.startswith("tiny was replaced by bare while this run waited")
    assert not job.messages and not history.entries()


def test_the_same_backbone_loaded_again_draws_what_was_planned(library, history, settings, ended):
    work = runs.draw(library, history, settings)
    library.use("bare")
    library.use("tiny")
    assert ended(work).result.entries


@pytest.mark.parametrize("make", [
    runs.draw,
    lambda library, history, settings: races.race(library, history,
                                                  by_methods(settings, "ar", "rows")),
    lambda library, history, settings: ParkedSeeds(library, history).start(settings, 1)[0][1]])
def test_where_nothing_can_be_saved_nothing_is_drawn(library, settings, worker, tmp_path, make):
    (tmp_path / "file").write_text("in the way")
    job = worker.submit("draw", make(library, History(tmp_path / "file"), settings))
    assert job.wait(30) and "start with another --output-dir" in job.error and not job.messages


# Stop, and go on below


def test_stop_keeps_the_rows_that_were_final_and_redo_goes_on(library, history, settings, worker,
                                                             ended, every_message):
    job = worker.submit("draw", stopping(runs.draw(library, history, settings)))
    assert job.wait(30) and job.state == "cancelled" and kinds(job)[-1] == "cancelled"
    left = job.result
    whole = solo(library, settings)
    assert 1 <= left.stopped_rows < SIDE and history.entries() == []
    assert torch.equal(left.tokens[:, : left.stopped_rows], whole[:, : left.stopped_rows])
    assert not left.tokens[:, left.stopped_rows :].any()
    below = replace(settings.with_seed(9), keep=left.tokens, keep_rows=left.stopped_rows)
    drawn = ended(runs.draw(library, history, below)).result
    assert torch.equal(drawn.tokens, solo(library, settings.with_seed(9), keep=left.tokens,
                                          keep_rows=left.stopped_rows))
    assert read_recipe(drawn.entries[0].path)["keep_rows"] == left.stopped_rows


def test_a_stopped_picture_can_be_saved_and_gone_on_with(library, history, settings, worker, ended,
                                                        every_message):
    job = worker.submit("draw", stopping(runs.draw(library, history, settings)))
    assert job.wait(30)
    left = job.result
    entry = runs.save_partial(history, library, left)
    assert entry.kind == "partial" and left.partial == [entry]
    assert runs.look(history, entry.path, library.current.backbone) == runs.Redoable(
        "tokens from its recipe", left.stopped_rows, SIDE, SIDE, (), *[Words(settings.prompt)] * 2)
    drawn = ended(runs.redo(library, history, settings, entry.path, left.stopped_rows)).result
    assert torch.equal(drawn.tokens[:, : left.stopped_rows], left.tokens[:, : left.stopped_rows])
    with Image.open(entry.path) as image:
        assert image.getpixel((5, PIXELS - 4)) == (240, 240, 240)
        assert image.size == (PIXELS, PIXELS)


def test_a_stopped_picture_without_metadata_goes_on_from_its_own_tokens(
        library, history, settings, worker, ended, every_message):
    job = worker.submit("draw", stopping(runs.draw(library, history, settings)))
    assert job.wait(30)
    left, backbone = job.result, library.current.backbone
    entry = runs.save_partial(history, library, left, metadata=False)
    with Image.open(entry.path) as image:
        assert image.info == {}
    rows = left.stopped_rows
    assert runs.look(history, entry.path, backbone) == runs.Redoable(runs.HELD, rows, SIDE, SIDE)
    drawn = ended(runs.redo(library, history, settings, entry.path, rows)).result
    assert torch.equal(drawn.tokens[:, :rows], left.tokens[:, :rows]) and drawn.how == runs.HELD
    Image.new("RGB", (PIXELS, PIXELS)).save(entry.path)
    assert runs.look(history, entry.path, backbone).how == "encoded: it carries no recipe"


def test_a_stopped_picture_of_another_backbone_is_not_saved(library, history, settings, worker,
                                                           every_message):
    job = worker.submit("draw", stopping(runs.draw(library, history, settings)))
    assert job.wait(30)
    library.use("bare")
    with pytest.raises(SSDError, match="but bare is loaded"):
        runs.save_partial(history, library, job.result)


def test_a_run_stopped_before_its_first_row_leaves_nothing_to_save(library, history, settings,
                                                                  worker, every_message):
    job = worker.submit("draw", stopping(runs.draw(library, history, settings), rows=0))
    assert job.wait(30) and job.state == "cancelled" and job.result.stopped_rows == 0
    with pytest.raises(SSDError, match="nothing to save"):
        runs.save_partial(history, library, job.result)


def test_redo_keeps_the_top_of_a_saved_picture(library, history, settings, ended):
    first = ended(runs.draw(library, history, settings)).result
    job = ended(runs.redo(library, history, asked({"seed": 8}, settings), first.entries[0].path, 5))
    drawn = job.result
    assert drawn.how == "tokens from its recipe"
    assert torch.equal(drawn.tokens[:, :5], first.tokens[:, :5])
    assert not torch.equal(drawn.tokens[:, 5:], first.tokens[:, 5:])
    assert next(m for m in job.messages if m["kind"] == "rows")["known"]


def test_a_redo_with_nothing_changed_says_that_its_rows_are_the_same(library, history, settings,
                                                                      ended):
    first = ended(runs.draw(library, history, settings)).result
    for seed, same in ((settings.sampling.seed, True), (settings.sampling.seed + 1, False)):
        wish = asked({"seed": seed}, settings)
        again = ended(runs.redo(library, history, wish, first.entries[0].path, 5)).result
        assert again.unchanged is same


def test_rows_that_were_not_drawn_are_not_kept(library, history, settings, worker, every_message):
    job = worker.submit("draw", stopping(runs.draw(library, history, settings)))
    assert job.wait(30)
    left = job.result
    entry = runs.save_partial(history, library, left)
    wish = runs.redo(library, history, settings, entry.path, left.stopped_rows + 1)
    failed = worker.submit("redo", wish)
    assert failed.wait(30) and failed.state == "failed"
    assert f"only {left.stopped_rows} of its rows were drawn" in failed.error


def test_a_picture_is_extended_downward_where_the_model_has_a_taller_size(
        history, settings, ended, tmp_path):
    """Lumina-mGPT's own rows, with their ends: 56 rows stay and 8 are drawn below them."""
    lumina(tmp_path / "ssd_backbones" / "Lumina-mGPT-7B-512")
    library = Library(tmp_path, "Lumina-mGPT-7B-512", device="cpu")
    wish = asked({"method": "rows", "size": "256x896"}, settings)
    first = ended(runs.draw(library, history, wish)).result
    source = first.entries[0].path
    seen = runs.look(history, source, library.current.backbone)
    assert seen.rows == 56 and seen.taller == ("256x928", "256x960", "256x992", "256x1024")
    drawn = ended(runs.redo(library, history, wish, source, 56, "256x1024")).result
    assert drawn.tokens.shape == (1, 64, 16)
    assert torch.equal(drawn.tokens[:, :56], first.tokens) and drawn.tokens[:, 56:].any()
    with Image.open(drawn.entries[0].path) as image:
        assert image.size == (256, 1024)


def test_redo_of_any_png_encodes_it(library, history, settings, ended, tmp_path):
    Image.new("RGB", (PIXELS, PIXELS), "teal").save(tmp_path / "x.png")
    seen = runs.look(history, tmp_path / "x.png", library.current.backbone)
    assert seen == runs.Redoable("encoded: it carries no recipe", None, SIDE, SIDE)
    drawn = ended(runs.redo(library, history, settings, tmp_path / "x.png", 3)).result
    assert drawn.how == seen.how and len(drawn.entries) == 1


def test_a_picture_of_another_size_is_refused(library, history, settings, worker, tmp_path):
    Image.new("RGB", (64, PIXELS)).save(tmp_path / "x.png")
    with pytest.raises(SSDError, match=f"64x{PIXELS} pixels, postcard takes {PIXELS}x{PIXELS}"):
        runs.look(history, tmp_path / "x.png", library.current.backbone)
    job = worker.submit("redo", runs.redo(library, history, settings, tmp_path / "x.png", 3))
    assert job.wait(30) and f"64x{PIXELS}" in job.error


# Race


def shares(raced):
    return [facts.measured.share for facts in raced.facts]


def guarantees(raced):
    return [facts.measured.guarantee for facts in raced.facts]


def judged_of(raced):
    return [n for n, facts in enumerate(raced.facts) if facts.judged]


def test_a_race_tells_two_panels_and_measures(library, history, settings, ended):
    job = ended(races.race(library, history, by_methods(settings, "ar", "exact")))
    raced = job.result
    assert {message["panel"] for message in job.messages} == {0, 1}
    assert shares(raced) == [1, 1] and raced.equal == 1
    assert guarantees(raced) == ["identical", "identical"]
    ar, exact = (facts.measured.stats["passes"] for facts in raced.facts)
    assert ar == SIDE**2 > exact
    assert [entry.method for entry in raced.entries] == ["ar", "exact"]
    assert raced.sheet.kind == "race" and set(history.entries()) == {
        *raced.entries, raced.sheet}
    assert [m["identical"] for m in job.messages if m["kind"] == "finished"] == [1, 1]


def test_a_race_without_ar_measures_no_identity(library, history, settings, ended):
    fast = asked({"method": "ssd", "rounds": 0, "pictures": 3}, settings)
    raced = ended(races.race(library, history, [fast, *by_methods(settings, "rows")])).result
    assert shares(raced) == [None, None] and raced.equal < 1 and judged_of(raced) == [0, 1]
    assert [facts.label for facts in raced.facts] == ["ssd rounds=0", "rows rounds=2"]
    assert guarantees(raced) == ["approximate"] * 2
    assert torch.equal(recipe_tokens(read_recipe(raced.entries[0].path)), solo(library, replace(
        fast, pictures=1))[0])


@pytest.mark.parametrize(("methods", "judged"), [
    (["ar", "ssd"], 1), (["ssd", "ar"], 0), (["ar", "ar"], 1)])
def test_the_side_that_is_not_ar_is_judged(library, history, settings, ended, methods, judged):
    raced = ended(races.race(library, history, by_methods(settings, *methods))).result
    assert judged_of(raced) == [judged] and shares(raced)[1 - judged] == 1
    assert shares(raced)[judged] == raced.equal
    assert guarantees(raced)[judged] == ("identical" if methods[judged] == "ar" else "approximate")


def test_six_race_at_once_and_all_but_ar_are_judged(library, history, settings, ended):
    methods = ["rows", "ar", "ssd", "exact", "rows", "ssd"]
    job = ended(races.race(library, history, by_methods(settings, *methods)))
    raced = job.result
    assert {message["panel"] for message in job.messages} == set(range(6))
    assert judged_of(raced) == [0, 2, 3, 4, 5] and shares(raced)[1] == shares(raced)[3] == 1
    assert [entry.method for entry in raced.entries] == methods
    assert len(history.entries()) == 7


@pytest.mark.parametrize("count", [1, 7])
def test_a_race_has_two_to_six_methods(library, history, settings, count):
    with pytest.raises(SSDError, match=f"a race of {count}: choose 2 to 6"):
        races.race(library, history, by_methods(settings, *["ar"] * count))


def test_a_race_for_which_memory_is_too_small_is_refused(library, history, settings, worker,
                                                         monkeypatch):
    seen = []

    def scarce(*asked):
        told = fit(*asked)
        seen.append(told)
        return replace(told, free=told.needed + 3 * told.cache)

    monkeypatch.setattr("studio.library.fit", scarce)
    job = worker.submit("race", races.race(library, history, by_methods(settings, *["ar"] * 5)))
    assert job.wait(30) and "5 pictures at once take about" in job.error
    assert "race fewer methods" in job.error and history.entries() == []
    assert len(seen) == 5


def test_a_race_that_is_stopped_saves_nothing_and_tells_both_panels(library, history, settings,
                                                                   worker, every_message):
    work = races.race(library, history, by_methods(settings, "ar", "ssd"))
    job = worker.submit("race", stopping(work))
    assert job.wait(30) and job.state == "cancelled" and history.entries() == []
    assert [m["panel"] for m in job.messages if m["kind"] == "cancelled"] == [0, 1]


# Seeds


def parked(parked_seeds, ended, settings, count=3, owner="me"):
    """Jobs by seed, all paused."""
    works = parked_seeds.start(settings, count, owner=owner)
    return {seed: ended(work, owner) for seed, work in works}


@pytest.mark.parametrize("method", ["ssd", "exact"])
def test_finished_seeds_equal_their_solo_runs(library, parked_seeds, settings, ended, method):
    settings = asked({"method": method}, settings)
    jobs = parked(parked_seeds, ended, settings)
    assert list(jobs) == [7, 8, 9] and {job.state for job in jobs.values()} == {"paused"}
    works = parked_seeds.finish([jobs[8].id, jobs[9].id], "me")
    for seed, job in zip((8, 9), map(ended, works), strict=True):
        assert torch.equal(job.result.tokens, solo(library, asked({"seed": seed}, settings)))
        assert job.result.entries[0].seed == seed


def test_the_first_third_is_drawn_and_the_story_goes_on_from_there(parked_seeds, settings, ended,
                                                                  every_message):
    jobs = parked(parked_seeds, ended, settings, 1)
    first = jobs[7]
    assert 1 / 3 <= first.progress < 0.5 and first.seconds_left > 0
    seen = len(first.messages)
    assert 4 <= max(m["last"] for m in first.messages if m["kind"] == "rows") <= 5
    job = ended(*parked_seeds.finish([first.id], "me"))
    assert job.messages[:seen] == first.messages[:seen] and len(first.messages) == seen
    assert kinds(job).count("started") == kinds(job).count("finished") == 1
    assert first.state == "done" and len({m["run"] for m in job.messages}) == 1


def test_a_paused_top_is_shown_as_it_will_look(library, parked_seeds, settings, ended):
    job = parked(parked_seeds, ended, settings, 1)[7]
    result, backbone = parked_seeds._parked[job.id].run.result, library.current.backbone
    shown = [message for message in job.messages if message["kind"] == "rows"][-1]
    assert (shown["first"], shown["last"], shown["refined"]) == (0, result.rows, True)
    top, = tops(backbone, result.tokens, result.rows)
    strip = np.asarray(Image.open(io.BytesIO(base64.b64decode(shown["strips"][0]))))
    tall = strip.shape[0]
    assert np.abs(strip - to_bytes(top)[:tall].astype(int)).max() <= 1


def closed(job_or_run):
    return job_or_run._events.gi_frame is None


def test_dropped_seeds_give_their_memory_back(parked_seeds, settings, ended):
    jobs = parked(parked_seeds, ended, settings)
    held = [parked_seeds._parked[job.id].run for job in jobs.values()]
    parked_seeds.drop([jobs[7].id])
    assert [closed(run) for run in held] == [True, False, False]
    parked_seeds.drop_owner("you")
    assert not closed(held[1])
    parked_seeds.drop_owner("me")
    assert all(map(closed, held)) and not parked_seeds._parked
    assert {job.state for job in jobs.values()} == {"cancelled"}


def test_a_new_start_frees_what_its_owner_had(parked_seeds, settings, ended):
    old = parked(parked_seeds, ended, settings, 2)
    others = parked(parked_seeds, ended, settings, 1, "you")
    new = parked(parked_seeds, ended, asked({"seed": 99}, settings), 2)
    assert {job.state for job in old.values()} == {"cancelled"}
    assert set(parked_seeds._parked) == {job.id for job in (*others.values(), *new.values())}
    with pytest.raises(SSDError, match="has expired"):
        parked_seeds.finish([old[7].id], "me")


@pytest.mark.parametrize("count, refused", [(5, False), (6, True)])
def test_a_new_start_counts_with_the_room_its_owner_s_runs_will_leave(
        parked_seeds, settings, ended, monkeypatch, count, refused):
    old = parked(parked_seeds, ended, settings, 2)
    parked(parked_seeds, ended, settings, 1, "you")

    def scarce(*asked):
        told = fit(*asked)
        return replace(told, free=told.needed + 2 * told.cache)  # three runs, and two more
    monkeypatch.setattr("studio.library.fit", scarce)
    if refused:
        with pytest.raises(SSDError, match="start fewer seeds"):
            parked_seeds.start(settings, count, owner="me")
    else:
        parked_seeds.start(settings, count, owner="me")
    assert {job.state for job in old.values()} == {"paused" if refused else "cancelled"}


def test_runs_long_left_alone_make_room_for_others(library, parked_seeds, settings, ended,
                                                   monkeypatch):
    old = parked(parked_seeds, ended, settings, 2)
    kept = parked(parked_seeds, ended, settings, 1, "me too")[7]
    monkeypatch.setattr(library, "require_room", lambda *args, **options: refuse_while(old))
    with pytest.raises(SSDError, match="no room"):
        parked_seeds.start(settings, 1, owner="you")
    for job in old.values():
        job._rested -= 1000
    assert len(parked_seeds.start(settings, 1, owner="you")) == 1
    assert {job.state for job in old.values()} == {"cancelled"} and kept.state == "paused"


def refuse_while(jobs):
    if any(job.state == "paused" for job in jobs.values()):
        raise SSDError("no room")


def test_the_rows_of_parked_runs_are_told(parked_seeds, settings, ended):
    jobs = parked(parked_seeds, ended, settings, 2)
    parked_seeds.drop([jobs[7].id])
    assert parked_seeds.rows([job.id for job in jobs.values()]) == [(4, SIDE)]


def test_works_of_a_start_that_was_dropped_draw_nothing(parked_seeds, settings, worker):
    works = parked_seeds.start(settings, 2, owner="me")
    parked_seeds.drop_owner("me")
    jobs = [worker.submit("seed", work, "me") for _, work in works]
    assert all(job.wait(30) for job in jobs) and {j.state for j in jobs} == {"cancelled"}
    assert not any(job.messages for job in jobs) and not parked_seeds._parked


def test_nobody_finishes_anothers_seeds(parked_seeds, settings, ended):
    jobs = parked(parked_seeds, ended, settings, 1)
    with pytest.raises(SSDError, match="has expired"):
        parked_seeds.finish([jobs[7].id], "you")


def test_a_seed_is_finished_once(parked_seeds, settings, worker, ended):
    jobs = parked(parked_seeds, ended, settings, 1)
    (first,), (second,) = (parked_seeds.finish([jobs[7].id], "me") for _ in range(2))
    ended(first)
    job = worker.submit("again", second, "me")
    assert job.wait(30) and "has expired" in job.error


def test_a_seed_that_waits_to_be_finished_is_freed_when_its_owner_leaves(
        parked_seeds, settings, worker, ended):
    jobs = parked(parked_seeds, ended, settings, 1)
    run = parked_seeds._parked[jobs[7].id].run
    work, = parked_seeds.finish([jobs[7].id], "me")
    for job in worker.of("me", "a run", "seeds"):
        job.cancel()
    parked_seeds.drop_owner("me")
    job = worker.submit("late", work, "me")
    assert job.wait(30) and job.state == "failed" and closed(run)


def test_another_backbone_frees_all_seeds(library, parked_seeds, settings, ended):
    jobs = parked(parked_seeds, ended, settings, 2)
    library.use("bare")
    assert not parked_seeds._parked and {job.state for job in jobs.values()} == {"cancelled"}


@pytest.mark.parametrize("count", [0, 65])
def test_a_senseless_number_of_seeds_is_refused(parked_seeds, settings, count):
    with pytest.raises(SSDError, match="seeds"):
        parked_seeds.start(settings, count)


def test_settings_that_cannot_run_start_no_seeds(parked_seeds):
    with pytest.raises(SSDError, match="k_v 9"):
        parked_seeds.start(wished(prompt="a", method="ssd", k_v=9))


def test_the_bundled_backbone_draws_without_any_folder(history, tmp_path, ended):
    library = Library(tmp_path / "no-models", device="cpu")
    wish = wished(prompt="a lighthouse by the sea", seed=3)
    drawn = ended(runs.draw(library, history, wish)).result
    assert drawn.stats["passes"] <= 150 and drawn.entries[0].width == 768


def test_a_picture_is_extended_downward_only_to_taller_sizes_of_its_width():
    backbone = SimpleNamespace(sizes=((8, 8), (8, 16), (8, 12), (16, 16), (8, 4)))
    assert runs.taller_sizes(backbone, (8, 8)) == ("8x12", "8x16")
    tokens = torch.arange(6).reshape(1, 2, 3)
    longer = runs.with_more_rows(tokens, 4)
    assert longer.shape == (1, 4, 3) and longer[:, :2].equal(tokens) and not longer[:, 2:].any()
