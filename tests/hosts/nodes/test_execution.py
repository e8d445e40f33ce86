"""The nodes at work on the bundled backbone, over the stub of ComfyUI."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import torch
from support import comfyui_stub
from support.road import watched
from support.small_bundle import PIXELS, SIDE

from ssd_core.engine.methods import METHODS

pytestmark = pytest.mark.usefixtures("small_bundle")

WIDGETS = {"k_h": 2, "k_v": 2, "rounds": 1, "prompt": "a blue tent at night", "negative": "a house",
           "seed": 8, "cfg": 1.0, "temperature": 0.5, "top_k": 3, "top_p": 0.3}


def sample(pack, model, **values):
    """(images, tokens, stats, report) of the sampler; few rounds, to be quick."""
    quick = {"quality": "custom", "k_h": 5, "k_v": 3, "rounds": 0, "incremental": 0, "cfg": 2.0}
    return pack.run("SSD_Sampler", model=model, **{**quick, **values})[:4]


def test_what_a_run_took_is_kept_for_the_plans_of_later_ones(pack, model):
    assert "first run on this model: measuring" in pack.run("SSD_Method", method="exact",
                                                            model=model)[2]
    report = sample(pack, model, quality="Faithful")[3]
    figures = pack.module("nodes.folders").estimates().pictures
    (key, (drawn,)), = figures.entries.items()
    assert model.module.sha256[:16] in key and drawn.passes > 1
    kept = Path(pack.stubs.folders.output).with_name("user") / "__ssd" / figures.file
    assert json.loads(kept.read_text()) == {key: [list(vars(drawn).values())]}
    assert f"exact: {drawn.passes:.0f} passes and " in report and "(drawn here: 1)" in report
    pack.run("SSD_LoadModel")
    told = pack.server.texts[-1][0]
    assert f"exact: {drawn.passes:.0f} passes and " in told and "measuring" not in told


def test_one_picture_is_checked_and_prepared_once(pack, model):
    with watched() as road:
        sample(pack, model)
    assert road.complaints == []


def test_a_sampler_puts_out_picture_tokens_statistics_and_a_report(pack, model):
    images, tokens, stats, report = sample(pack, model)
    assert images.shape == (1, PIXELS, PIXELS, 3) and images.dtype == torch.float32
    assert 0 <= images.min() and images.max() <= 1 and images.std() > 0.01
    assert tokens.tokens.shape == (1, SIDE, SIDE) and tokens.sha256 == model.module.sha256
    assert "ssd" in report and f"{stats.stats['passes']} passes" in report


@pytest.mark.parametrize(("values", "rows"), [
    ({"quality": "Faithful"}, SIDE), ({"quality": "Fast", "batch_size": 2}, 2 * SIDE)])
def test_progress_counts_rows_and_not_the_passes_that_might_be_needed(pack, model,
                                                                      values, rows):
    """Faithful takes fewer passes than it might: counted against those, it stays below a third."""
    sample(pack, model, **values)
    seen, totals = zip(*pack.stubs.bars, strict=True)
    assert set(totals) <= {rows, SIDE} and list(seen) == sorted(seen)
    assert len(set(seen)) > 2 and seen[-1] == totals[-1]


def test_progress_of_a_part_and_of_what_is_drawn_below_kept_rows(pack, model):
    pack.run("SSD_StartPictures", model=model, count=2, part=0.5, cfg=1.0)
    assert pack.stubs.bars[-1] == (SIDE // 2, SIDE // 2)
    _, tokens, *_ = sample(pack, model)
    pack.stubs.bars.clear()
    sample(pack, model, picture=tokens, keep_rows=SIDE - 2)
    assert pack.stubs.bars[-1] == (2, 2) and pack.stubs.bars[0][1] == 2


def test_one_copy_of_weights_however_many_nodes(pack, model):
    assert pack.run("SSD_LoadModel")[0] == model
    assert pack.run("SSD_LoadHeads", model=pack.run("SSD_LoadModel", heads="none")[0])[0] == model
    assert pack.run("SSD_LoadModel", dtype="bf16")[0].module.dtype == torch.bfloat16


def test_weights_and_cache_are_told_to_the_manager(pack, model):
    sample(pack, model, batch_size=2)
    patchers, wanted, full = pack.manager.loads[-1]
    assert patchers == [model.backbone.patcher, model.backbone.codec, model.heads.patcher] and full
    module = model.module
    rows = 4  # two pictures, two branches
    cache = module.new_cache(rows, module.prompt_limit + 2 + module.grid.slots).nbytes
    assert cache < wanted < cache + 250 * 2**20


def test_weights_move_as_a_whole(pack, model):
    model.backbone.codec.partially_load("cuda:0", 0.1)
    assert model.backbone.codec.loads[-1] > 1e30
    assert model.backbone.codec.partially_unload("cpu", 1000) == 0


@pytest.mark.parametrize("knob", WIDGETS)
def test_every_knob_changes_the_tokens(pack, model, knob):
    # k_h is about the first row alone, often one plain colour.
    noisy = {"temperature": 2.0, "seed": 3}
    plain = sample(pack, model, **noisy)[1].tokens
    changed = sample(pack, model, **{**noisy, knob: WIDGETS[knob]})[1].tokens
    assert not torch.equal(plain, changed)


def test_staged_rounds_change_the_tokens(pack, model):
    plain = sample(pack, model, rounds=1)[1].tokens
    assert not torch.equal(plain, sample(pack, model, rounds=1, incremental=1)[1].tokens)


def test_picture_n_of_a_batch_is_the_picture_of_its_seed(pack, model):
    images, tokens, _, report = sample(pack, model, batch_size=2)
    alone = sample(pack, model, seed=8)
    assert torch.equal(tokens.tokens[1], alone[1].tokens[0])
    assert torch.allclose(images[1], alone[0][0], atol=1e-5)
    assert "seeds: 7, 8" in report


def test_kept_rows_stand_token_for_token(pack, model):
    tokens = sample(pack, model)[1]
    redone = sample(pack, model, seed=99, picture=tokens, keep_rows=6)[1].tokens
    assert torch.equal(redone[:, :6], tokens.tokens[:, :6])
    assert not torch.equal(redone[:, 6:], tokens.tokens[:, 6:])


def test_one_picture_of_a_batch_is_kept(pack, model):
    tokens = sample(pack, model, batch_size=3)[1]
    redone = sample(pack, model, seed=99, picture=tokens, keep_rows=6, picture_number=2)[1]
    assert torch.equal(redone.tokens[0, :6], tokens.tokens[1, :6])
    with pytest.raises(pack.error, match="picture_number 4: the batch of 'picture' has 3"):
        sample(pack, model, picture=tokens, keep_rows=6, picture_number=4)


def test_the_used_seed_and_the_prompt_are_the_last_outputs(pack, model):
    outputs = pack.run("SSD_Sampler", model=model, seed=2**64 - 1, cfg=1.0, prompt="a tent")
    assert outputs[-2:] == (2**64 - 1, "a tent")
    names = [one.display_name for one in pack.schemas["SSD_Sampler"].outputs]
    assert names[-2:] == ["seed", "prompt"]


def test_a_report_names_no_knob_without_a_value_and_no_heads_that_are_not_there(pack, model,
                                                                                headless):
    for loaded in (headless, model):
        report = pack.run("SSD_Sampler", model=loaded)[3]
        assert "None" not in report and ("drafter heads" in report) == (loaded is model)
    assert "None" not in pack.run("SSD_Method", method="exact")[2]


def test_a_picture_without_keep_rows_is_told_and_the_reverse_is_refused(pack, model):
    with pytest.raises(pack.error, match="keep_rows 3: there is no picture to keep a part of"):
        sample(pack, model, keep_rows=3)
    tokens = sample(pack, model)[1]
    again, report = sample(pack, model, picture=tokens, seed=99)[1::2]
    assert "note: picture is not used" in report and "kept:" not in report
    assert not torch.equal(again.tokens[:, :3], tokens.tokens[:, :3])


def test_without_heads_ssd_runs_as_rows_and_says_so(pack, headless):
    *_, stats, report = sample(pack, headless)
    assert stats.recipes[0]["method"] == "rows" and "no draft heads" in report
    assert "no draft heads" in pack.preview()[0]["notes"][0]


@pytest.mark.parametrize(("node", "link"), [("SSD_Sampler", "method"), ("SSD_Compare", "method_2")])
def test_a_connected_ssd_without_heads_runs_as_rows_too(pack, headless, node, link):
    ssd = pack.run("SSD_Method", k_h=5, k_v=3)[0]
    told = "\n".join(one for one in pack.run(node, model=headless, cfg=1.0, **{link: ssd})
                     if isinstance(one, str))
    assert "rows" in told and "there are no draft heads" in told


def test_by_default_the_product_draws_with_heads_or_without(pack, model, headless):
    auto = {"quality": "Faithful", "k_h": "auto", "k_v": "auto", "rounds": "auto",
            "incremental": "auto"}
    pictures = [sample(pack, loaded, **auto) for loaded in (model, headless)]
    assert torch.equal(pictures[0][1].tokens, pictures[1][1].tokens)
    for *_, stats, report in pictures:
        assert stats.recipes[0]["method"] == "exact" and "note:" not in report
    assert "heads: postcard/heads.safetensors" in pictures[0][3]
    assert "Faithful does not use k_v 3" in sample(pack, headless, **{**auto, "k_v": "3"})[3]


def test_a_connected_method_overrides_the_widgets_and_says_so(pack, model):
    method = pack.run("SSD_Method", method="exact")[0]
    *_, stats, report = sample(pack, model, method=method)
    assert stats.recipes[0]["method"] == "exact" and "connected method draws" in report
    assert "connected method draws" in pack.preview()[0]["notes"][0]


def test_what_a_connected_method_overrides_is_not_refused(pack, model):
    method = pack.run("SSD_Method", method="rows", rounds=0)[0]
    assert "rows" in sample(pack, model, method=method, quality="custom", k_v="auto")[3]


def test_a_method_that_needs_heads_names_those_that_do_not(pack, headless):
    method = pack.run("SSD_Method", method="strict")[0]
    with pytest.raises(pack.error, match="rows or exact"):
        sample(pack, headless, method=method)


def test_words_without_meaning_are_named(pack, model):
    assert "zeppelin" in sample(pack, model, prompt="a zeppelin at night")[3]
    assert "zeppelin" in pack.preview()[0]["notes"][0]
    assert not [text for text, *_ in pack.server.texts if "zeppelin" in text]
    sample(pack, model, prompt="a zeppelin at night", preview=False)
    assert "zeppelin" in pack.server.texts[-1][0] and pack.server.texts[-1][1] == "5"


def test_an_interrupt_ends_the_run_within_one_pass_and_the_next_is_clean(pack, model):
    pack.manager.interrupt_at = 4
    with pytest.raises(comfyui_stub.InterruptProcessingException):
        sample(pack, model)
    assert pack.manager.checks == 4
    assert pack.preview()[-1]["kind"] == "cancelled"
    assert pack.preview()[-1]["reason"] == "interrupted"
    assert sample(pack, model)[0].shape == (1, PIXELS, PIXELS, 3)


def test_no_cache_outlives_a_run(pack, model):
    import gc

    sample(pack, model)
    pack.manager.interrupt_at = 4
    with pytest.raises(comfyui_stub.InterruptProcessingException):
        sample(pack, model)
    gc.collect()
    cache = pack.module("ssd_core.model.kv_cache").KVCache
    assert not [o for o in gc.get_objects() if type(o) is cache]


def test_tokens_survive_when_only_the_pixels_ran_out_of_memory(pack, model, monkeypatch):
    decode = type(model.module).decode

    def fail(module, tokens):
        raise comfyui_stub.OutOfMemory

    monkeypatch.setattr(type(model.module), "decode", fail)
    images, tokens, _, report = sample(pack, model, preview=True)
    assert isinstance(images, comfyui_stub.ExecutionBlocker) and "tokens are kept" in images.message
    assert "problem: out of memory" in report
    monkeypatch.setattr(type(model.module), "decode", decode)
    drawn, = pack.run("SSD_TokensToImage", model=model, tokens=tokens)
    assert drawn.shape == (1, PIXELS, PIXELS, 3)


def test_out_of_memory_says_what_was_needed_and_what_to_turn(pack, model, monkeypatch):
    def fail(module, x, cache=None):
        raise comfyui_stub.OutOfMemory

    monkeypatch.setattr(type(model.module), "forward", fail)
    with pytest.raises(pack.error, match=r"MiB are needed.*batch_size"):
        sample(pack, model)
    assert pack.preview()[-1]["reason"] == "failed" and pack.manager.unloads == 1
    assert "last error: SSDError: out of memory" in pack.run("SSD_Doctor")[0]


def test_a_preview_without_memory_goes_dark_and_the_run_goes_on(pack, model, monkeypatch):
    def fail(screen, first, last):
        raise comfyui_stub.OutOfMemory

    monkeypatch.setattr(pack.module("ssd_core.output.preview").Preview, "looked_up", fail)
    monkeypatch.setattr(pack.module("ssd_core.output.preview").Preview, "glanced", fail)
    monkeypatch.setattr(pack.module("ssd_core.output.preview"), "BUDGET", 1e6)
    images, _, _, report = sample(pack, model, preview=True)
    assert images.shape == (1, PIXELS, PIXELS, 3) and "problem" not in report
    assert pack.preview()[-1]["reason"] == "failed"


def test_a_run_is_checked_for_the_device_that_will_draw(pack, model, monkeypatch):
    """The weights rest on the CPU until the run; windows are 48 there and 96 on a card,
    or all cells."""
    rolling = pack.run("SSD_Method", method="rolling")[0]
    monkeypatch.setattr(pack.module("nodes.requests").mm, "get_torch_device",
                        lambda: torch.device("cuda"))
    checked = []
    monkeypatch.setattr(pack.module("ssd_core.runs.request").Request, "check",
                        lambda request: checked.append(request.method.window))

    def resident(weights, room, remedy):
        raise pack.error("the run begins")

    monkeypatch.setattr(pack.module("nodes.running"), "resident", resident)
    with pytest.raises(pack.error, match="the run begins"):
        sample(pack, model, method=rolling)
    assert model.module.device.type == "cpu" and checked == [SIDE**2]


def test_doctor_tells_refusals_too(pack, model):
    with pytest.raises(pack.error, match="quality 'gone'"):
        sample(pack, model, quality="gone")
    assert "last error: SSDError: quality 'gone'" in pack.run("SSD_Doctor")[0]


@pytest.mark.parametrize(("wish", "client"), [(True, "tab"), (True, None), (False, "tab")])
def test_the_preview_goes_to_the_tab_that_asked(pack, model, wish, client):
    pack.server.client_id = client
    sample(pack, model, preview=wish)
    assert bool(pack.preview()) == wish
    assert {to for _, _, to in pack.server.sent} <= {client}
    assert {message["node"] for message in pack.preview()} <= {"5"}


def test_compare_draws_its_methods_side_by_side_and_measures(pack, model, monkeypatch):
    monkeypatch.setattr(pack.module("ssd_core.output.preview"), "BUDGET", 1e6)  # tell every pass
    rows = pack.run("SSD_Method", method="rows", rounds=0)[0]
    sheet, images, table = pack.run("SSD_Compare", model=model, draw_6="ar", method_6=rows, cfg=1.0)
    assert images.shape == (3, PIXELS, PIXELS, 3) and torch.equal(images[0], images[1])
    assert sheet.shape[0] == 1 and sheet.shape[2] > 3 * PIXELS
    lines = table.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["ar", "exact", "rows", "drawn"]
    assert "100%" in lines[2] and "approximate" in lines[3] and "one after the other" not in table
    told = [(m["panel"], m["kind"]) for m in pack.preview() if m["kind"] in ("started", "pass")]
    assert [panel for panel, kind in told if kind == "started"] == [0, 1, 2]
    assert len(list(groupby(panel for panel, kind in told if kind == "pass"))) > 6, "in turns"
    ends = {m["panel"]: (m["guarantee"], m["identical"]) for m in pack.preview()
            if m["kind"] == "finished"}
    assert ends[0] == ends[1] == ("identical", 1.0) and ends[2][0] == "approximate"


def test_compare_draws_in_turn_if_the_memory_is_not_there_and_says_so(pack, model, monkeypatch):
    monkeypatch.setattr(pack.module("nodes.weights").mm, "get_free_memory", lambda _: 1000)
    monkeypatch.setattr(pack.module("ssd_core.output.preview"), "BUDGET", 1e6)  # tell every pass
    images, table = pack.run("SSD_Compare", model=model, cfg=1.0)[1:]
    assert torch.equal(images[0], images[1])
    assert "not enough memory to draw with all methods at once" in table
    panels = [m["panel"] for m in pack.preview() if m["kind"] == "pass"]
    assert [panel for panel, _ in groupby(panels)] == [0, 1]


@pytest.mark.parametrize(("free", "runs"), [(2**30, 2), (1000, 1)])
def test_only_runs_side_by_side_need_memory_at_once(pack, model, monkeypatch, free, runs):
    request = pack.module("ssd_core.runs.request").Request
    monkeypatch.setattr(request, "bytes_needed", property(lambda self: 1000))
    monkeypatch.setattr(pack.module("nodes.weights").mm, "get_free_memory", lambda _: free)

    def resident(weights, room, remedy):
        raise pack.error(f"{room} bytes")

    monkeypatch.setattr(pack.module("nodes.running"), "resident", resident)
    with pytest.raises(pack.error, match=f"^{runs * 1000} bytes"):
        pack.run("SSD_Compare", model=model)


def test_compare_needs_two_methods_and_says_what_cannot_run(pack, headless):
    for values in ({"draw_2": "none"}, {"draw_1": "none", "draw_2": "none"}):
        with pytest.raises(pack.error, match="^there is nothing to compare: set draw_1 and draw_2"):
            pack.run("SSD_Compare", model=headless, **values)
    with pytest.raises(pack.error, match="drafts with heads"):
        pack.run("SSD_Compare", model=headless, draw_1="strict", draw_2="strict")
    _, images, table = pack.run("SSD_Compare", model=headless, draw_2="strict", draw_3="ssd",
                                cfg=1.0)
    assert len(images) == 2 and "left out: 2. strict" in table
    assert "there are no draft heads" in table and "rows" in table


def test_an_interrupt_ends_all_panels_of_a_comparison(pack, model):
    pack.server.client_id = "tab"
    pack.manager.interrupt_at = 30
    with pytest.raises(comfyui_stub.InterruptProcessingException):
        pack.run("SSD_Compare", model=model, cfg=1.0)
    ends = [m for m in pack.preview() if m["kind"] == "cancelled"]
    assert {m["panel"] for m in ends} == {0, 1}


def test_a_refusal_shows_as_its_sentence_without_a_path(pack, model):
    with pytest.raises(pack.error) as told:
        sample(pack, model, quality="gone")
    kind = type(told.value)
    assert (kind.__module__, kind.__qualname__) == ("builtins", "SSD")  # ComfyUI prints both


def test_doctor_needs_no_other_node(pack):
    assert pack.schemas["SSD_Doctor"].is_output_node
    output = pack.nodes["SSD_Doctor"].execute()
    (text, node, tab), = pack.server.texts
    assert output.ui == {"text": [text]} and "attention" in text and (node, tab) == ("5", "tab")


def test_a_map_is_one_sheet_a_picture(pack, model):
    stats = sample(pack, model, rounds=1, batch_size=2)[2]
    sheets = pack.run("SSD_RunViewer", stats=stats)[0]
    assert sheets.shape[0] == 2 and not torch.equal(sheets[0], sheets[1])
    share = stats.acceptance
    assert np.nanmin(share) == 0 and np.nanmax(share) == 1


def test_a_map_of_ar_says_that_nothing_was_verified(pack, model):
    method = pack.run("SSD_Method", method="ar")[0]
    stats = sample(pack, model, method=method, cfg=1.0)[2]
    assert np.isnan(stats.acceptance).all()
    assert pack.run("SSD_RunViewer", stats=stats)[0].shape[0] == 1


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_runs_with_the_widgets_as_they_stand(pack, name):
    method = pack.run("SSD_Method", method=name)[0]
    assert method.name == name and method == type(method)()
