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

pytestmark = pytest.mark.usefixtures("small_bundle")

WIDGETS = {"k_h": 2, "k_v": 2, "rounds": 1, "prompt": "a blue tent at night", "negative": "a house",
           "seed": 8, "cfg": 1.0, "temperature": 0.5, "top_k": 3, "top_p": 0.3}


SSD = {"k_h": 5, "k_v": 3, "rounds": 0, "incremental": 0}  # few rounds, to be quick


def sample(pack, model, method="SSD (k_h, k_v, r, b/i)", **values):
    """(images, tokens, stats, report) of the sampler, by default with SSD and its knobs."""
    if method.startswith("SSD"):
        knobs = {**SSD, **{name: values.pop(name) for name in SSD if name in values}}
        method = {"method": method, **knobs}
    images, run = pack.run("SSD_Sampler", model=model, method=method, **{"cfg": 2.0, **values})
    return images, run.tokens, run.stats, run.report


def drawn(pack, model, method, **values):
    return pack.run("SSD_Sampler", model=model, method=method, **values)[1]


def run_of(pack, tokens):
    return pack.module("nodes.types").Run(tokens)


def last_error(pack):
    return pack.module("nodes.errors").last_error[-1]


def test_what_a_run_took_is_kept_for_the_plans_of_later_ones(pack, model):
    report = sample(pack, model, method="Faithful")[3]
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
    with watched(most=545) as road:
        sample(pack, model)
    assert road.complaints == []


def test_a_sampler_puts_out_picture_tokens_statistics_and_a_report(pack, model):
    images, tokens, stats, report = sample(pack, model)
    assert images.shape == (1, PIXELS, PIXELS, 3) and images.dtype == torch.float32
    assert images.min() >= 0 and images.max() <= 1 and images.std() > 0.01
    assert tokens.tokens.shape == (1, SIDE, SIDE) and tokens.sha256 == model.module.sha256
    assert "ssd" in report and f"{stats.stats['passes']} passes" in report


@pytest.mark.parametrize(("values", "rows"), [
    ({"method": "Faithful"}, SIDE), ({"method": "Fast", "batch_size": 2}, 2 * SIDE)])
def test_progress_counts_rows_and_not_the_passes_that_might_be_needed(pack, model,
                                                                      values, rows):
    """Faithful takes fewer passes than it might: counted against those, it stays below a third."""
    sample(pack, model, **values)
    seen, totals = zip(*pack.stubs.bars, strict=True)
    assert set(totals) <= {rows, SIDE} and list(seen) == sorted(seen)
    assert len(set(seen)) > 2 and seen[-1] == totals[-1]


def test_progress_of_a_part_and_of_what_is_drawn_below_kept_rows(pack, model):
    sample(pack, model, batch_size=2, part=0.5, cfg=1.0)
    assert pack.stubs.bars[-1] == (SIDE // 2, SIDE // 2)
    _, tokens, *_ = sample(pack, model)
    pack.stubs.bars.clear()
    sample(pack, model, picture=run_of(pack, tokens), keep_rows=SIDE - 2)
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
    redone = sample(pack, model, seed=99, picture=run_of(pack, tokens), keep_rows=6)[1].tokens
    assert torch.equal(redone[:, :6], tokens.tokens[:, :6])
    assert not torch.equal(redone[:, 6:], tokens.tokens[:, 6:])


def test_one_picture_of_a_batch_is_kept(pack, model):
    tokens = sample(pack, model, batch_size=3)[1]
    redone = sample(pack, model, seed=99, picture=run_of(pack, tokens), keep_rows=6,
                    picture_number=2)[1]
    assert torch.equal(redone.tokens[0, :6], tokens.tokens[1, :6])
    with pytest.raises(pack.error, match="picture_number 4: the batch of 'picture' has 3"):
        sample(pack, model, picture=run_of(pack, tokens), keep_rows=6, picture_number=4)


def test_run_info_tells_the_used_seed_and_the_prompt(pack, model):
    run = pack.run("SSD_Sampler", model=model, seed=2**64 - 1, cfg=1.0, prompt="a tent")[1]
    report, prompt, negative, seed, *size, passes = pack.run("SSD_RunInfo", run=run)
    assert (prompt, negative, seed, size) == ("a tent", "", 2**64 - 1, [PIXELS, PIXELS])
    assert report == run.report and passes == run.stats.stats["passes"] > 0


def test_a_graph_of_two_named_inputs_runs(pack, model):
    images, run = pack.nodes["SSD_Sampler"].execute(model=model, prompt="a tent").args
    assert images.shape == (1, PIXELS, PIXELS, 3)
    assert run.stats.recipes[0]["method"] == "exact" and run.recipe()["prompt"] == "a tent"


def test_a_report_names_no_knob_without_a_value_and_no_heads_that_are_not_there(pack, model,
                                                                                headless):
    for loaded in (headless, model):
        report = pack.run("SSD_Sampler", model=loaded)[1].report
        assert "None" not in report and ("drafter heads" in report) == (loaded is model)


def test_a_picture_without_keep_rows_is_told_and_the_reverse_is_refused(pack, model):
    with pytest.raises(pack.error, match="keep_rows 3: there is no picture to keep a part of"):
        sample(pack, model, keep_rows=3)
    tokens = sample(pack, model)[1]
    again, report = sample(pack, model, picture=run_of(pack, tokens), seed=99)[1::2]
    assert "note: picture is not used" in report and "kept:" not in report
    assert not torch.equal(again.tokens[:, :3], tokens.tokens[:, :3])


def test_without_heads_ssd_runs_as_rows_and_says_so(pack, headless):
    *_, stats, report = sample(pack, headless)
    assert stats.recipes[0]["method"] == "rows" and "no draft heads" in report
    assert "no draft heads" in pack.preview()[0]["notes"][0]


def test_ssd_of_a_comparison_without_heads_runs_as_rows_too(pack, headless):
    table = pack.run("SSD_Compare", model=headless, cfg=1.0,
                     method_2={"method_2": "SSD (k_h, k_v, r, b/i)", **SSD})[-1]
    assert "rows" in table and "there are no draft heads" in table


def test_by_default_the_product_draws_with_heads_or_without(pack, model, headless):
    pictures = [sample(pack, loaded, method="Faithful") for loaded in (model, headless)]
    assert torch.equal(pictures[0][1].tokens, pictures[1][1].tokens)
    for *_, stats, report in pictures:
        assert stats.recipes[0]["method"] == "exact" and "note:" not in report
    assert "heads: postcard/heads.safetensors" in pictures[0][3]


def test_a_method_that_needs_heads_names_those_that_do_not(pack, headless):
    with pytest.raises(pack.error, match="rows or exact"):
        sample(pack, headless, method="Leviathan (strict)")


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
    drawn, *_ = pack.run("SSD_Finish", model=model, run=run_of(pack, tokens))
    assert drawn.shape == (1, PIXELS, PIXELS, 3)


def test_out_of_memory_says_what_was_needed_and_what_to_turn(pack, model, monkeypatch):
    def fail(module, x, cache=None):
        raise comfyui_stub.OutOfMemory

    monkeypatch.setattr(type(model.module), "forward", fail)
    with pytest.raises(pack.error, match=r"MiB are needed.*batch_size"):
        sample(pack, model)
    assert pack.preview()[-1]["reason"] == "failed" and pack.manager.unloads == 1
    assert last_error(pack).startswith("SSDError: out of memory")


def test_a_preview_without_memory_goes_dark_and_the_run_goes_on(pack, model, monkeypatch):
    def fail(screen, first, last):
        raise comfyui_stub.OutOfMemory

    for picture in ("looked_up", "glanced", "decoded"):
        monkeypatch.setattr(pack.module("ssd_core.output.preview").Preview, picture, fail)
    monkeypatch.setattr(pack.module("ssd_core.output.preview"), "BUDGET", 1e6)
    images, _, _, report = sample(pack, model, preview=True)
    assert images.shape == (1, PIXELS, PIXELS, 3) and "problem" not in report
    assert pack.preview()[-1]["reason"] == "failed"


def test_a_run_is_checked_for_the_device_that_will_draw(pack, model, monkeypatch):
    """The weights rest on the CPU until the run; windows are 48 there and 96 on a card,
    or all cells."""
    monkeypatch.setattr(pack.module("nodes.requests").mm, "get_torch_device",
                        lambda: torch.device("cuda"))
    checked = []
    monkeypatch.setattr(pack.module("ssd_core.runs.request").Request, "check",
                        lambda request: checked.append(request.method.window))

    def resident(weights, room, remedy):
        raise pack.error("the run begins")

    monkeypatch.setattr(pack.module("nodes.running"), "resident", resident)
    with pytest.raises(pack.error, match="the run begins"):
        sample(pack, model, method="Balanced")
    assert model.module.device.type == "cpu" and checked == [SIDE**2]


def test_refusals_are_kept_as_the_last_error(pack, model):
    with pytest.raises(pack.error, match="method 'gone'"):
        sample(pack, model, method="gone")
    assert last_error(pack).startswith("SSDError: method 'gone'")


@pytest.mark.parametrize(("wish", "client"), [(True, "tab"), (True, None), (False, "tab")])
def test_the_preview_goes_to_the_tab_that_asked(pack, model, wish, client):
    pack.server.client_id = client
    sample(pack, model, preview=wish)
    assert bool(pack.preview()) == wish
    assert {to for _, _, to in pack.server.sent} <= {client}
    assert {message["node"] for message in pack.preview()} <= {"5"}


def test_compare_draws_its_methods_side_by_side_and_measures(pack, model, monkeypatch):
    monkeypatch.setattr(pack.module("ssd_core.output.preview"), "BUDGET", 1e6)  # tell every pass
    rows = {"method_6": "Rows (SSD without heads)", "rounds": 0}
    images, _, sheet, table = pack.run("SSD_Compare", model=model, method_1="Reference (AR)",
                                       method_2="Faithful", method_6=rows, cfg=1.0)
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
    images, *_, table = pack.run("SSD_Compare", model=model, method_2="Faithful", cfg=1.0)
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
    for values in ({"method_2": "none"}, {"method_1": "none", "method_2": "none"}):
        with pytest.raises(pack.error, match="^there is nothing to compare: set method_1 and"):
            pack.run("SSD_Compare", model=headless, **values)
    strict = "Leviathan (strict)"
    with pytest.raises(pack.error, match="drafts with heads"):
        pack.run("SSD_Compare", model=headless, method_1=strict, method_2=strict)
    images, *_, table = pack.run("SSD_Compare", model=headless, method_2=strict,
                                 method_3={"method_3": "SSD (k_h, k_v, r, b/i)", **SSD}, cfg=1.0)
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
        sample(pack, model, method="gone")
    kind = type(told.value)
    assert (kind.__module__, kind.__qualname__) == ("builtins", "SSD")  # ComfyUI prints both


def test_a_map_is_one_sheet_a_picture(pack, model):
    run = drawn(pack, model, {"method": "SSD (k_h, k_v, r, b/i)", **SSD, "rounds": 1}, batch_size=2)
    sheets, stats = pack.run("SSD_RunViewer", run=run)[0], run.stats
    assert sheets.shape[0] == 2 and not torch.equal(sheets[0], sheets[1])
    share = stats.acceptance
    assert np.nanmin(share) == 0 and np.nanmax(share) == 1


def test_a_map_of_ar_says_that_nothing_was_verified(pack, model):
    run = drawn(pack, model, "Reference (AR)", cfg=1.0)
    assert np.isnan(run.stats.acceptance).all()
    assert pack.run("SSD_RunViewer", run=run)[0].shape[0] == 1
