"""A request is what the engine would run, whatever a host fills in, and tells where it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, random_heads, tiny_postcard
from support.requests import requested

from ssd_core import Sampling, SSDError, generate, methods, plan
from ssd_core.backbones.postcard.words.spelling import read
from ssd_core.engine.events import FinalRows
from ssd_core.engine.methods import METHODS
from ssd_core.output.palette import GREY
from ssd_core.output.pixels import pixels
from ssd_core.output.recipe import read_recipe, save_png
from ssd_core.output.unknown import MISPLACED
from ssd_core.runs.comparison import compare_with_ar, conditions
from ssd_core.runs.request import Request, Result, resolved_method
from ssd_core.weights.memory import is_out_of_memory
from ssd_core.weights.quantize import quantise, quantiser

BACKBONE = MockBackbone()
HEADS = random_heads(BACKBONE)
TOP = torch.ones(1, 4, 5, dtype=torch.long)


def ran(request: Request, until: int | None = None) -> Result:
    """The result of a run, stopped once `until` rows are final."""
    result, events = Result(request), request.events()
    for event in events:
        result.take(event, 1.0)
        if until is not None and result.rows >= until:
            events.close()
    return result


def refusal(call) -> str | None:
    try:
        call()
    except SSDError as error:
        return str(error)
    return None


KNOBS = st.fixed_dictionaries({}, optional={
    "k_h": st.integers(-1, 7), "k_v": st.integers(-1, 5), "rounds": st.integers(-1, 3),
    "acceptance": st.sampled_from(["residual", "coupled", "magic"]), "window": st.integers(-1, 30)})
ASKED = st.fixed_dictionaries({
    "heads": st.sampled_from([HEADS, None, random_heads(tiny_postcard(), 2, 2)]),
    "prompt": st.sampled_from(["a sun", "", "  ", "far too long a prompt", "\ud800", 7]),
    "negative": st.sampled_from([None, "", "night", "far too long a prompt"]),
    "size": st.sampled_from([None, (5, 4), [5, 4], (7, 7), "5x4", (5,)]),
    "pictures": st.integers(-1, 2),
    "keep": st.sampled_from([None, TOP, TOP.float(), TOP[:, 1:], TOP * 99, [[1]]]),
    "keep_rows": st.sampled_from([0, 1, 3, 4, -1, "2"]),
    "cfg": st.sampled_from([None, 1.0, 2.0])})


@given(st.sampled_from(list(METHODS)), KNOBS, ASKED)
def test_it_refuses_what_generate_refuses_and_nothing_else(name, knobs, asked):
    kind = METHODS[name]
    try:
        method = kind(**{k: v for k, v in knobs.items() if k in kind.__dataclass_fields__})
    except SSDError:
        return
    sampling, asked = Sampling(cfg=asked["cfg"]), {k: v for k, v in asked.items() if k != "cfg"}
    error = refusal(lambda: requested(BACKBONE, method=method, sampling=sampling, fall_back=False,
                                   **asked).check())
    prompts, options = [asked["prompt"]] * asked["pictures"], dict(asked)
    del options["prompt"], options["pictures"]
    engine = refusal(lambda: generate(BACKBONE, prompts, method, sampling=sampling, **options))
    assert (error is None) == (engine is None), (error, engine)


def test_the_examples_of_that_property_are_of_both_kinds():
    """So that it cannot hold because everything, or nothing, is refused."""
    fine = {"prompt": "a sun", "method": methods.SSD(), "sampling": Sampling(), "heads": HEADS}
    requested(BACKBONE, **fine).check()
    for wrong in ({"prompt": " "}, {"pictures": 0}, {"size": (7, 7)}, {"keep_rows": 3},
                  {"prompt": 7}, {"heads": random_heads(BACKBONE, 1, 1)}):
        with pytest.raises(SSDError):
            requested(BACKBONE, **{**fine, **wrong}).check()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.by_day(7)
def test_its_events_are_those_of_generate(name):
    request = requested(BACKBONE, HEADS, METHODS[name](), Sampling(3), "a sun", pictures=2,
                      keep=TOP, keep_rows=1)
    plain = list(generate(BACKBONE, ["a sun"] * 2, METHODS[name](), HEADS, Sampling(3), keep=TOP,
                          keep_rows=1))
    events = [event.to_json() for event in request.events()]
    assert events[1:-1] == [event.to_json() for event in plain[1:-1]]
    assert torch.equal(ran(request).tokens, plain[-1].tokens)
    written_out = replace(plain[0].plan, tuning=request.plan.tuning)  # a window, if it has one
    assert request.plan == request_plan(request) == written_out


def request_plan(request: Request):
    return next(request.events()).plan


@pytest.fixture(scope="module")
def postcard():
    """A backbone that has pixels, and heads that a recipe can name."""
    backbone = tiny_postcard()
    backbone.sha256 = "a1" * 32
    backbone.decode = lambda tokens: torch.zeros(len(tokens), 384, 384, 3)
    heads = random_heads(backbone, 5, 3)
    heads.sha256 = "b2" * 32
    return backbone, heads


@pytest.mark.parametrize("rows", [0, 9])
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.by_day(14)
def test_a_saved_recipe_is_the_request_of_that_picture(postcard, tmp_path, name, rows):
    backbone, heads = postcard
    keep = torch.arange(2 * 576).view(2, 24, 24) % backbone.codes
    request = requested(backbone, heads, METHODS[name](), Sampling(7, 1.5, 0.9, 20, 0.8), "a house",
                      "sun", pictures=2, keep=keep if rows else None, keep_rows=rows)
    result = Result(request, stats={"passes": 5, "seconds": {"total": 1.0}})
    result.take(FinalRows(0, 24, keep))
    for index, recipe in enumerate(result.recipes()):
        save_png(tmp_path / "x.png", torch.zeros(384, 384, 3), recipe)
        again = Request.of_recipe(read_recipe(tmp_path / "x.png"), backbone, heads)
        alone = replace(request, drawing=request.drawing.of_picture(index))
        assert again == alone and hash(again) == hash(alone) and again != request


@pytest.mark.parametrize("change", [
    {"prompt": "a boat"}, {"negative": "sun"}, {"method": methods.SSD(rounds=1)},
    {"sampling": Sampling(1)}, {"pictures": 2}, {"keep": TOP, "keep_rows": 1}])
def test_requests_of_other_pictures_are_not_equal(change):
    plain = requested(BACKBONE, HEADS, methods.SSD(), Sampling(), "a sun")
    same = requested(BACKBONE, HEADS, methods.SSD().resolve(BACKBONE.preset),
                     Sampling(cfg=BACKBONE.preset.cfg), "a sun", "", size=BACKBONE.size)
    other = replace(plain, drawing=replace(plain.drawing, **change))
    assert plain == same and other != plain


def test_a_recipe_of_other_weights_is_refused(postcard):
    backbone, heads = postcard
    request = requested(backbone, heads, methods.SSD(), Sampling(), "a house")
    recipe = request.recipe(0, torch.zeros(24, 24, dtype=torch.long),
                            {"passes": 1, "seconds": {}})
    for change in ({"backbone": {"name": "x", "sha256": "0" * 64}}, {"heads": "0" * 64}):
        with pytest.raises(SSDError, match="load the recipe.s own first"):
            Request.of_recipe({**recipe, **change}, backbone, heads)
    earlier = {**recipe, "backbone": {"name": "postcard", "sha256": "0" * 64}}
    with pytest.raises(SSDError, match="other weights of postcard .* drawn anew: 'a house'"):
        Request.of_recipe(earlier, backbone, heads)


@pytest.mark.parametrize("drafter", ["heads", "row"])
def test_ar_s_picture_is_drawn_again_with_any_heads_or_none(drafter):
    own, others = random_heads(BACKBONE, 1, 1, row=True), random_heads(BACKBONE, 1, 1)
    request = requested(BACKBONE, own, methods.Exact(drafter=drafter), Sampling(), "a sun")
    recipe = {**request.recipe(0, TOP[0], {"passes": 1, "seconds": {}}), "heads": "0" * 64}
    for loaded in (own, others, None):
        again = Request.of_recipe(recipe, BACKBONE, loaded)
        assert again.heads is loaded
        by_row = drafter == "row" and loaded is own
        assert again.drawing.method.drafter == ("row" if by_row else "heads")


def test_a_recipe_drawn_in_another_dtype_is_told_so(postcard):
    backbone, heads = postcard
    request = requested(backbone, heads, methods.AR(), Sampling(), "a house")
    recipe = request.recipe(0, torch.zeros(24, 24, dtype=torch.long), {"passes": 1, "seconds": {}})
    assert recipe["dtype"] == "fp32" and not Request.of_recipe(recipe, backbone, heads).notes
    note, = Request.of_recipe({**recipe, "dtype": "int8"}, backbone, heads).notes
    assert "drawn in int8" in note and "loaded in fp32" in note and "with dtype int8" in note


def test_the_same_request_in_another_dtype_draws_another_picture():
    small = MockBackbone()
    quantise(small.decoder, quantiser("int8", torch.device("cpu")))
    request, other = (requested(backbone, None, methods.AR(), Sampling(), "a sun")
                  for backbone in (MockBackbone(), small))
    assert request != other
    assert "int8 on cpu" in conditions(other) and "fp32 on cpu" in conditions(request)


# Falling back


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("heads", [True, False])
def test_only_ssd_without_heads_falls_back_and_says_so(name, heads):
    method, note = resolved_method(METHODS[name](), BACKBONE.preset, heads)
    falls = name == "ssd" and not heads
    assert method.name == ("rows" if falls else name) and (note is not None) == falls
    assert resolved_method(METHODS[name](), BACKBONE.preset, heads, False)[0].name == name


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.integers(0, 9),
       st.sampled_from(["residual", "coupled"]))
def test_the_schedule_stays_the_same(k_h, k_v, rounds, incremental, acceptance):
    method = methods.SSD(k_h, k_v, rounds, incremental, acceptance, fused_commit=rounds > 0)
    rows, _ = resolved_method(method, BACKBONE.preset, heads=False)
    assert rows.plan(BACKBONE.grid).passes == plan(BACKBONE, method).passes
    assert all(getattr(rows, knob) == getattr(method, knob) for knob in (
        "k_h", "k_v", "rounds", "incremental", "acceptance", "fused_commit"))


def test_a_request_that_fell_back_draws_and_tells():
    request = requested(BACKBONE, None, methods.SSD(), Sampling(), "a sun")
    assert request.method.name == "rows" and "no draft heads" in request.note
    assert request.notes == [request.note] and ran(request).finished
    with pytest.raises(SSDError, match="drafts with heads"):
        requested(BACKBONE, None, methods.SSD(), Sampling(), "a sun", fall_back=False)


def test_heads_are_only_those_that_are_used():
    assert requested(BACKBONE, HEADS, methods.SSD(), Sampling(), "a sun").heads is HEADS
    assert requested(BACKBONE, HEADS, methods.AR(), Sampling(), "a sun").heads is None


def test_words_without_meaning_are_named_in_both_prompts(postcard):
    request = requested(postcard[0], None, methods.AR(), Sampling(cfg=2.0), "a wooden house",
                      "gondola")
    assert request.unknown_words == ["gondola"]
    assert request.notes == ["postcard does not know, and leaves out: gondola"]


@pytest.mark.parametrize("expand", [True, False])
def test_an_unknown_thing_is_told_and_no_other_is_drawn_in_its_place(postcard, expand):
    request = requested(postcard[0], None, methods.AR(), Sampling(), "a dog on the beach",
                      expand=expand)
    assert request.notes[0].startswith("postcard does not know, and leaves out: a dog")
    assert not read(request.words[0].prompt).things


@pytest.mark.parametrize("changes", [{}, {"expand": True}, {"expand": True, "pictures": 2}])
def test_of_a_prompt_without_a_known_word_nothing_is_drawn(postcard, changes):
    request = requested(postcard[0], None, methods.AR(), Sampling(), "a dog and two cats",
                        **changes)
    with pytest.raises(SSDError, match="^postcard cannot draw a dog, two cats, and the prompt"):
        request.check()


def test_a_word_that_is_passed_on_is_not_called_ignored(postcard):
    """The red of a chair, which postcard does not know, colours a house."""
    request = requested(postcard[0], None, methods.AR(), Sampling(), "a house a red chair")
    ignored, misplaced = request.notes
    assert ignored == "postcard does not know, and leaves out: a red chair"
    assert misplaced.startswith(f"postcard {MISPLACED}: red (known only in \"red house\"")


# Results


@pytest.mark.parametrize("until", [1, 2, 3])
def test_a_stopped_run_has_the_rows_that_were_final(until):
    request = requested(BACKBONE, HEADS, methods.AR(), Sampling(5), "a sun")
    whole, part = ran(request), ran(request, until)
    assert whole.stopped_rows is None and part.stopped_rows == until == part.rows
    assert torch.equal(part.tokens[:, :until], whole.tokens[:, :until])
    assert not part.tokens[:, until:].any()
    assert part.recipes()[0]["stopped_rows"] == until and part.recipes()[0]["seconds"] == {
        "total": 1.0}
    assert "stopped_rows" not in whole.recipes()[0]
    begun = requested(BACKBONE, HEADS, methods.AR(), Sampling(5), "a sun", keep=TOP, keep_rows=2)
    assert Result(begun).stopped_rows == 0


def test_shares_are_measured_against_ar_where_it_ran():
    compared = methods.AR(), methods.Exact(), methods.SSD(rounds=0)
    results = [ran(requested(BACKBONE, HEADS, method, Sampling(5), "a sun")) for method in compared]
    compare_with_ar(results[1:])
    assert [result.share for result in results[1:]] == [None, None]
    assert results[1].guarantee == "identical" and "measured" not in results[1].guarantee_text
    compare_with_ar(results)
    assert results[0].share == results[1].share == 1 and results[2].share < 1
    assert "100% of tokens are AR's (measured, fp32)" in results[1].guarantee_text
    assert [result.guarantee for result in results] == ["identical", "identical", "approximate"]
    assert "% of tokens are AR's" in results[2].guarantee_text


# Memory


def test_pictures_are_decoded_one_at_a_time_and_may_be_written_to(postcard):
    backbone, seen = postcard[0], []
    backbone.decode = lambda tokens: seen.append(len(tokens)) or torch.zeros(1, 8, 8, 3)
    drawn = list(pixels(backbone, torch.zeros(3, 24, 24, dtype=torch.long)))
    assert seen == [1, 1, 1] and [tuple(picture.shape) for picture in drawn] == [(8, 8, 3)] * 3
    drawn[0][:] = 1


class Coded(RuntimeError):
    error_code = 2


@pytest.mark.parametrize(("error", "short"), [
    (MemoryError(), True), (torch.OutOfMemoryError("9 GiB"), True), (Coded("CUDA error"), True),
    (RuntimeError("MPS backend out of memory"), True), (RuntimeError("Out of memory"), True),
    (RuntimeError("shapes do not fit"), False), (OSError("out of memory"), False)])
def test_memory_that_ran_out_is_told_from_other_errors(error, short):
    assert is_out_of_memory(error) == short


def test_a_preview_without_memory_for_its_palette_is_grey_and_the_next_one_is_not(monkeypatch):
    backbone = tiny_postcard(5)
    request = requested(backbone, None, methods.AR(), Sampling(), "a house")
    with monkeypatch.context() as patch:
        patch.setattr(type(backbone.picture_codec), "code_colours", short_of_memory)
        assert (request.preview(print).palette.colours == GREY).all()
    assert (request.preview(print).palette.colours != GREY).any()


@pytest.mark.parametrize("lacking", [("decoded",), ("decoded", "looked_up")])
def test_a_preview_without_memory_turns_plain_then_dark(monkeypatch, lacking):
    messages, request = [], requested(Painted(), None, methods.AR(), Sampling(), "a sun")
    screen = request.preview(messages.append)
    monkeypatch.setattr("ssd_core.output.preview.BUDGET", 1e6)
    for name in lacking:
        monkeypatch.setattr(type(screen), name, short_of_memory)
    for event in request.events():
        screen(event, 1.0)
    screen.finish(event.stats)
    refined = [m["refined"] for m in messages if m["kind"] == "rows"]
    if len(lacking) == 1:
        assert refined and not any(refined) and messages[-1]["kind"] == "finished"
    else:
        assert not refined and messages[-1]["reason"] == "failed"
        assert [m["kind"] for m in messages].count("cancelled") == 1


class Painted(MockBackbone):
    def decode(self, tokens):
        return torch.zeros(*tokens.shape, 3)


def short_of_memory(*_):
    raise torch.OutOfMemoryError


def test_a_finished_run_tells_the_plans_of_later_ones_what_it_took():
    backbone = MockBackbone()
    backbone.sha256 = "c" * 64
    request = requested(backbone, None, methods.Exact(), Sampling(), "a sun")
    ran(request, until=1)
    assert request.plan.stand_in and request.plan.prior_pictures == 0
    ran(request)
    assert not request.plan.stand_in and request.plan.prior_pictures == 1
    assert requested(backbone, None, methods.AR(), Sampling(), "a sun").plan.prior_passes is None
