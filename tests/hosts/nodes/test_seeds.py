"""Begin several pictures, pick some, finish them; what an interrupt leaves can be finished too."""

from __future__ import annotations

import json
import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support import comfyui_stub
from support.small_bundle import PIXELS, SIDE

pytestmark = pytest.mark.usefixtures("small_bundle")
TOP = -(-SIDE // 3)  # rows


@pytest.fixture
def started(pack, model):
    """(images, run) of three seeds, the top third of each."""
    return pack.run("SSD_Sampler", model=model, seed=20, batch_size=3, part=1 / 3, cfg=1.0)


def finish(pack, model, begun, pictures):
    """(images, tokens, stats, report) of the pictures with these numbers."""
    images, run = pack.run("SSD_Finish", model=model, run=begun, pictures=pictures)
    return images, run.tokens, run.stats, run.report


def ar_run(pack, model, **values):
    return pack.run("SSD_Sampler", model=model, method="Reference (AR)", seed=5, cfg=1.0, **values)


def test_only_the_tops_are_drawn_and_each_has_its_seed(pack, started):
    images, begun = started
    assert [recipe["seed"] for recipe in begun.recipes] == [20, 21, 22]
    assert {recipe["stopped_rows"] for recipe in begun.recipes} == {TOP}
    assert images.shape == (3, PIXELS, PIXELS, 3)
    below = images[:, TOP * 16 :]
    assert below.min() == below.max() and images[:, : TOP * 16].std() > 0.01
    assert pack.preview()[-1] == {**pack.preview()[-1], "kind": "cancelled", "reason": "paused"}


def test_a_finished_seed_is_the_picture_that_the_sampler_draws(pack, model, started):
    images, tokens, stats, report = finish(pack, model, started[1], "3, 1")
    for n, seed in enumerate((22, 20)):
        alone = pack.run("SSD_Sampler", model=model, seed=seed, cfg=1.0)
        assert torch.equal(tokens.tokens[n], alone[1].tokens.tokens[0])
        assert torch.equal(images[n], alone[0][0])
        assert stats.recipes[n]["seed"] == seed and f"seeds: {seed}" in report
    assert stats.stats["passes"] == sum(recipe["passes"] for recipe in stats.recipes)
    names = {message["panel"]: message["label"] for message in pack.preview()
             if message["kind"] == "started" and message["label"].startswith("seed")}
    assert names == {0: "seed 22", 1: "seed 20"}


def test_one_more_picked_leaves_the_finished_ones_alone(pack, model, started, monkeypatch):
    drawn = []
    request = pack.module("ssd_core.runs.request").Request
    events = request.events
    monkeypatch.setattr(request, "events", lambda self: drawn.append(self.seeds) or events(self))

    def finished(pictures):
        drawn.clear()
        return finish(pack, model, started[1], pictures)

    images, tokens, stats, _ = finished("3")
    both = finished("1, 3")
    assert drawn and all(seeds == [20] for seeds in drawn)
    assert torch.equal(both[0][1], images[0]) and torch.equal(both[1].tokens[1], tokens.tokens[0])
    assert both[2].recipes[1] == stats.recipes[0] and "drawn in an earlier run" in both[3]
    assert {message["panel"] for message in both[2].messages} == {0, 1}


def test_pictures_that_were_begun_with_heads_ask_for_them(pack, model, headless):
    begun = pack.run("SSD_Sampler", model=model, batch_size=2, part=1 / 3, cfg=1.0,
                     method={"method": "SSD (k_h, k_v, r, b/i)", "rounds": 0,
                             "incremental": 0})[1]
    with pytest.raises(pack.error, match="choose the same ones in 'heads' of Load Model"):
        finish(pack, headless, begun, "all")


def test_nothing_picked_makes_the_nodes_behind_wait(pack, model, started):
    waiting = pack.run("SSD_Finish", model=model, run=started[1])
    assert len(waiting) == 2 and all(
        isinstance(each, comfyui_stub.ExecutionBlocker) and each.message is None
        for each in waiting)
    assert "Nothing is picked yet" in pack.server.texts[-1][0]


@pytest.mark.parametrize(("text", "wanted"), [
    ("2", [2]), (" 3, 1 ,3", [3, 1]), ("1-3", [1, 2, 3]), ("2 - 3 1", [2, 3, 1]), ("1，3", [1, 3]),
    (" All", [1, 2, 3]), ("", [])])
def test_numbers_are_read_as_people_write_them(pack, text, wanted):
    assert pack.module("nodes.finish").picked(text, 3) == wanted


@pytest.mark.parametrize("text", ["0", "4", "3-1", "one", "1-", "2-9", "99999"])
def test_other_numbers_are_refused_with_the_range(pack, text):
    with pytest.raises(pack.error, match="write numbers from 1 to 3"):
        pack.module("nodes.finish").picked(text, 3)


@pytest.fixture
def unfinished(pack):
    """Where an interrupted run is kept; nothing is there before and after."""
    file = pack.module("nodes.unfinished").file()
    file.unlink(missing_ok=True)
    yield file
    file.unlink(missing_ok=True)


def recipes_in(file) -> list[dict]:
    return json.loads(file.read_text())["recipes"]


def test_an_interrupted_run_is_kept_and_finished(pack, model, unfinished):
    """With nothing connected to 'run', as after a restart of ComfyUI."""
    finish = partial(pack.run, "SSD_Finish", model=model)
    with pytest.raises(pack.error, match="no interrupted run is kept"):
        finish()
    before = pack.nodes["SSD_Finish"].fingerprint_inputs()
    pack.manager.interrupt_at = 2 * SIDE + 5
    with pytest.raises(comfyui_stub.InterruptProcessingException):
        ar_run(pack, model, batch_size=2)
    assert "They are kept: Finish" in pack.server.texts[-1][0]
    assert pack.nodes["SSD_Finish"].fingerprint_inputs() != before
    assert [one["seed"] for one in recipes_in(unfinished)] == [5, 6]
    tokens = finish()[1].tokens.tokens
    whole = ar_run(pack, model, batch_size=2)
    assert torch.equal(tokens, whole[1].tokens.tokens)
    unfinished.write_text("{}")
    with pytest.raises(pack.error, match="unfinished.json cannot be read"):
        finish()


def test_a_row_that_was_shown_is_kept_even_if_its_frame_ends_the_run(pack, model, unfinished,
                                                                     monkeypatch):
    """ComfyUI's bar looks for an interrupt when it sends a frame."""
    def interrupted(*_):
        raise comfyui_stub.InterruptProcessingException

    monkeypatch.setattr(pack.nodes["SSD_Sampler"], "hidden",
                        SimpleNamespace(unique_id="5", extra_pnginfo=None))
    monkeypatch.setattr(pack.module("nodes.running").Bar, "show", interrupted)
    with pytest.raises(comfyui_stub.InterruptProcessingException):
        ar_run(pack, model)
    recipe, = recipes_in(unfinished)
    assert recipe["stopped_rows"] == max(m["last"] for m in pack.preview() if m["kind"] == "rows")


def test_tokens_are_kept_if_the_run_is_stopped_while_they_become_pixels(pack, model, unfinished,
                                                                        monkeypatch):
    def interrupted(*_):
        raise comfyui_stub.InterruptProcessingException

    with monkeypatch.context() as patched:
        patched.setattr(pack.module("nodes.running"), "images_of", interrupted)
        with pytest.raises(comfyui_stub.InterruptProcessingException):
            ar_run(pack, model)
    assert f"Stopped after {SIDE} of {SIDE} rows" in pack.server.texts[-1][0]
    tokens = pack.run("SSD_Finish", model=model)[1].tokens.tokens
    whole = ar_run(pack, model)
    assert torch.equal(tokens, whole[1].tokens.tokens)


def test_what_a_stopped_node_had_finished_before_is_kept_with_the_rest(pack, model, started,
                                                                       unfinished):
    before = pack.manager.checks
    finish(pack, model, started[1], "1")
    pack.module("nodes.finished").FINISHED.clear()  # as after a restart
    pack.manager.interrupt_at = 2 * pack.manager.checks - before + 1
    with pytest.raises(comfyui_stub.InterruptProcessingException):
        finish(pack, model, started[1], "all")
    first, *others = recipes_in(unfinished)
    assert first["stopped_rows"] == SIDE
    assert [recipe["seed"] for recipe in others] == [21, 22]
    assert all(TOP <= recipe["stopped_rows"] < SIDE for recipe in others)


def test_a_run_is_played_again_as_it_was_shown(pack, model):
    drawn = pack.run("SSD_Sampler", model=model, cfg=1.0)
    replayed = partial(pack.nodes["SSD_RunViewer"].execute, run=drawn[1], seconds=3.0,
                       format="webp", filename_prefix="films/a")
    output = replayed(overlay=False)
    sheet, frames, fps = output.args
    assert len(sheet) == 1 and 2 <= len(frames) <= 37 and 0 < fps <= 12
    assert torch.equal(frames[-1], (drawn[0][0] * 255).round() / 255)
    assert not torch.equal(replayed(overlay=True).args[1][-1], frames[-1])
    entry, = output.ui["images"]
    film = pack.stubs.folders.output / entry["subfolder"] / entry["filename"]
    assert film.read_bytes()[8:12] == b"WEBP" and entry["subfolder"] == "films"


def test_a_film_has_the_length_that_is_asked_for(pack, model):
    view = partial(pack.run, "SSD_RunViewer", format="do not save",
                   run=pack.run("SSD_Sampler", model=model, cfg=1.0)[1])
    lasts = {seconds: len(frames) / fps for seconds in (0.0, 3.0, 6.0)
             for _, frames, fps in [view(seconds=seconds)]}
    assert lasts[0] == lasts[3], "a short run takes 3 seconds"
    assert lasts[6] - lasts[3] == pytest.approx(3)


def test_without_a_preview_the_rows_appear_one_by_one(pack, model):
    run = pack.run("SSD_Sampler", model=model, cfg=1.0, preview=False)[1]
    _, frames, _ = pack.run("SSD_RunViewer", run=run, format="do not save")
    assert len(frames) == SIDE + 1 and not torch.equal(frames[3], frames[4])


def test_programs_get_frames_and_pages_only_where_the_preview_is_out_of_sight(
        pack, model, monkeypatch):
    def frames(node, extra):
        hidden = SimpleNamespace(unique_id=node, extra_pnginfo=extra, prompt={})
        monkeypatch.setattr(pack.nodes["SSD_Sampler"], "hidden", hidden)
        pack.server.sent.clear()
        pack.run("SSD_Sampler", model=model, cfg=1.0)
        return [data for event, data, _ in pack.server.sent if event == 4]

    assert frames("5", None) == []
    kind, picture, most = pack.stubs.frames[-1]
    assert (kind, picture.size, most) == ("JPEG", (PIXELS, PIXELS), None)
    assert np.asarray(picture).std() > 3
    pack.stubs.frames.clear()
    page = {"workflow": {"id": "flow"}}
    assert {about["display_node_id"] for _, about in frames("5", page)} == {"ssd-preview"}
    assert {about["display_node_id"] for _, about in frames("12:5", page)} == {"12:5"}
    assert pack.stubs.frames == []


def test_the_page_lists_the_sizes_of_the_backbone(pack):
    sizes_of = pack.module("nodes.facts").sizes_of
    assert sizes_of("postcard") == [f"{PIXELS}x{PIXELS}"]
    assert sizes_of("Janus-Pro-7B") == ["384x384"] and sizes_of("../postcard") == []


def test_what_links_carry_is_a_handle_that_finds_the_one_copy(pack, model, headless):
    stored = pickle.dumps((model, headless))
    assert len(stored) < 2000
    again, bare = pickle.loads(stored)
    assert again.backbone is bare.backbone is model.backbone
    assert again.heads is model.heads and bare.heads is None


def test_the_page_offers_the_words_of_a_backbone_that_knows_only_some(pack):
    kinds_of = pack.module("nodes.facts").kinds_of
    assert sum(len(kind["chips"]) for kind in kinds_of("postcard")) > 50
    thing = kinds_of("postcard")[0]
    assert thing["role"] == "thing" and "house" in {c["phrases"][0] for c in thing["chips"]}
    assert "房子" in {c["phrases"][0] for c in kinds_of("postcard", chinese=True)[0]["chips"]}
    assert kinds_of("Janus-Pro-7B") == [] == kinds_of("nonsense")
