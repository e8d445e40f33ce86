"""Settings: into methods, the slider's stops, to plain values and back, from hostile recipes."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.drawings import wished
from support.solo import SIDE

from ssd_core import SSDError, methods
from ssd_core.backbones.base import Preset
from ssd_core.engine.edits.words import Edit
from ssd_core.engine.methods import METHODS
from ssd_core.engine.prior_passes import bundled
from ssd_core.model.grid import Grid
from ssd_core.model.sampling import Sampling
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import FIELDS, OPTIONAL
from studio.settings import (
    KNOBS,
    STOPS,
    as_json,
    asked,
    first_values,
    of_recipe,
    request_of,
    stop_of,
)
from studio.words import knob_label

GRID = Grid(24, 24)
SEEDS = st.integers(0, 2**64 - 1)
LEGAL = st.builds(
    wished, prompt=st.text(st.characters(codec="ascii", categories=["L"]), max_size=20),
    seed=SEEDS, pictures=st.integers(1, 64), method=st.sampled_from(list(METHODS)),
    k_h=st.integers(1, 9), k_v=st.integers(1, 5), rounds=st.integers(1, 9),
    incremental=st.integers(0, 5), acceptance=st.sampled_from(["residual", "coupled"]),
    fused_commit=st.booleans(), draft=st.sampled_from(["distribution", "copy"]),
    drafts=st.sampled_from(["horizontal", "vertical"]),
    window=st.none() | st.integers(1, 99), cfg=st.none() | st.floats(1, 100),
    temperature=st.floats(0, 100), top_k=st.integers(0, 9), top_p=st.floats(0.1, 1),
    size=st.none() | st.just("384x384"),
    expand=st.booleans(), open=st.sampled_from([[], ["sky"], ["sky", "place 0"]]),
    prompt_expanded=st.none() | st.just("a tent"), negative_expanded=st.none() | st.just("a boat"))


@pytest.fixture
def loaded(library):
    return library.current


def requested(drawing, loaded, **changes):
    return request_of(replace(drawing, **changes), loaded.backbone, loaded.heads)


@given(LEGAL)
def test_a_drawing_survives_json(drawing):
    back = asked(json.loads(json.dumps(as_json(drawing), allow_nan=False)))
    assert all(getattr(back, f.name) == getattr(drawing, f.name) for f in fields(drawing))


def test_what_a_drawing_keeps_survives_json():
    drawing = replace(wished(prompt="a"), keep=torch.arange(6).view(1, 2, 3), keep_rows=1,
                      keep_mask=torch.arange(6).view(2, 3) > 2, edit=Edit("b", 0.5, False),
                      sources=(torch.ones(1, 2, dtype=torch.long),))
    back = Drawing.from_json(json.loads(json.dumps(drawing.to_json())))
    assert back.keep.equal(drawing.keep) and back.keep_mask.equal(drawing.keep_mask)
    assert (back.keep_rows, back.edit) == (1, drawing.edit)
    assert back.sources[0].equal(drawing.sources[0])


def test_a_seed_beyond_what_browsers_count_stays_exact():
    raw = as_json(wished(seed=2**64 - 1))
    assert raw["seed"] == str(2**64 - 1) and asked(raw).sampling.seed == 2**64 - 1


def test_missing_values_have_their_defaults_and_strangers_are_ignored():
    strange = asked({"prompt": " a sun ", "unknown": object(), "k_h": "x"})
    assert as_json(strange) == as_json(wished(prompt="a sun"))


@pytest.mark.parametrize(("name", "value"), [
    ("seed", "x"), ("seed", -2), ("seed", 2**64), ("seed", True), ("seed", "9" * 30),
    ("pictures", 0), ("pictures", 65), ("pictures", 1.5), ("method", "lightning"),
    ("method", None), ("k_h", 0), ("k_h", -1), ("rounds", -2), ("acceptance", "never"),
    ("draft_choice", 3), ("draft_temperature", 0), ("temperature", float("nan")),
    ("temperature", "hot"), ("top_p", 0), ("top_k", -1), ("cfg", 0.5), ("size", "big"),
    ("size", "1x" + "1" * 99), ("fused_commit", "yes"), ("prompt", 7), ("prompt", "x" * 5000),
    ("window", -3), ("fused_commit", 1)])
def test_a_value_that_is_wrong_is_named_in_one_line(name, value):
    method = "exact" if name == "window" else "ssd"
    with pytest.raises(SSDError, match=name) as caught:
        asked({"method": method, name: value})
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_null_leaves_a_number_to_its_method_or_backbone():
    drawing = asked({"method": "rows", "k_h": None, "rounds": None, "cfg": None, "window": None})
    raw = as_json(drawing)
    assert [raw[name] for name in ("k_h", "rounds", "cfg")] == [None] * 3
    assert drawing.method.resolve(Preset(rounds=4)).rounds == 4 and drawing.sampling.cfg is None


def test_every_knob_is_a_setting_of_its_own_and_has_its_label_in_both_languages():
    others = {*as_json(wished()), *FIELDS, *OPTIONAL} - {f.name for f in fields(Sampling)}
    own = {f.name for f in fields(wished().method)}
    assert not (others - own) & {f.name for method in METHODS.values() for f in fields(method)}
    assert set(KNOBS) <= set(first_values(Preset()))
    assert [knob_label("window", "", language) for language in ("en", "zh")] == [
        "Window: cells checked in a pass", "窗口：每次前向检查的单元格数"]
    for name, knob in KNOBS.items():
        assert knob_label(name, knob.help, "en") != knob_label(name, knob.help, "zh"), name


def test_fused_commit_without_rounds_is_refused():
    with pytest.raises(SSDError, match="fused_commit"):
        asked({"method": "ssd", "fused_commit": True, "rounds": 0})


# Methods


def test_a_method_takes_the_knobs_it_has(loaded):
    wish = wished(method="ssd", k_h=3, k_v=2, rounds=4, incremental=1, acceptance="coupled")
    assert requested(wish, loaded).method == methods.SSD(
        3, 2, 4, 1, "coupled").resolve(Preset())
    exact = requested(asked({"method": "exact", "window": 9}, wish), loaded).method
    assert exact == methods.Exact(9)


def test_without_heads_ssd_is_the_same_schedule_by_rows(loaded):
    wish = wished(method="ssd", rounds=3, acceptance="coupled", fused_commit=True)
    requests = [request_of(wish, loaded.backbone, heads) for heads in (loaded.heads, None)]
    with_heads, without = (request.method for request in requests)
    assert requests[0].note is None and "no draft heads" in requests[1].note
    assert without.name == "rows"
    schedule = {f.name for f in fields(without)} - {"draft"}
    assert all(getattr(without, name) == getattr(with_heads, name) for name in schedule)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_no_stop_needs_heads(loaded, stop):
    wish = wished(**stop.knobs)
    with_heads, without = (request_of(wish, loaded.backbone, h) for h in (loaded.heads, None))
    assert without.method == with_heads.method and without.note is None


@pytest.mark.parametrize("method", ["mtp", "strict"])
def test_methods_that_need_heads_say_so_before_anything_runs(loaded, method):
    with pytest.raises(SSDError, match="rows or exact"):
        request_of(wished(method=method), loaded.backbone, None)


def test_knobs_beyond_the_heads_reach_are_refused_in_the_plan(loaded):
    with pytest.raises(SSDError, match="k_v 9"):
        requested(wished(method="ssd", k_v=9), loaded)


def test_a_backbones_own_schedule():
    own = first_values(Preset(4, 2, 5, 4, 4.0))
    assert [own[name] for name in ("k_h", "k_v", "rounds", "incremental", "cfg")] == [
        4, 2, 5, 4, None]


# Speed against fidelity


def test_every_stop_is_found_again_from_its_own_knobs():
    at = [wished(prompt="a", seed=3, **stop.knobs) for stop in STOPS]
    assert [stop_of(drawing, GRID) for drawing in at] == list(range(len(at)))
    assert stop_of(wished(), GRID) == 1
    assert stop_of(wished(method="ssd", rounds=4), GRID) is None
    assert stop_of(asked({"window": 5}, at[1]), GRID) is None


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_a_restored_picture_has_the_name_of_its_speed_and_its_own_window(loaded, stop):
    request = requested(wished(**stop.knobs), loaded)
    recipe = {**RECIPE, "method": request.recorded.name, **vars(request.recorded)}
    restored = asked(as_json(of_recipe(recipe)))
    assert stop_of(restored, loaded.backbone.grid) == STOPS.index(stop)
    assert restored.method == request.recorded
    assert stop_of(asked({"window": 7}, restored), GRID) in (None, 0), "one's own"


def test_every_stop_differs_visibly_in_passes(loaded):
    requests = [requested(wished(**stop.knobs), loaded) for stop in STOPS]
    assert [request.method.guarantee for request in requests] == [
        "identical", "identical", "approximate", "approximate"]
    plans = [request.plan for request in requests]
    assert plans[1].passes is None and plans[1].stand_in, "nobody knows this backbone"
    exact = bundled()["passes"]["exact/48/heads"]
    taken = [SIDE**2, exact, *(plan.passes_max for plan in plans[2:])]
    assert all(slow > 1.1 * fast for slow, fast in pairwise(taken)), taken
    assert {plan.ar_passes for plan in plans} == {SIDE**2}


def test_a_plan_below_a_line_counts_only_what_is_drawn(loaded):
    wish = wished(method="ssd")
    whole, part = (requested(wish, loaded, keep_rows=rows).plan for rows in (0, SIDE // 2))
    assert part.ar_passes == SIDE**2 / 2 and part.passes < whole.passes


# Recipes

RECIPE = {"prompt": "a sun", "negative": None, "method": "ssd", "seed": 3, "cfg": 2.0,
          "temperature": 1.0, "top_k": 0, "top_p": 1.0, "size": "384x384", "keep_rows": 0,
          "k_h": 4, "k_v": 2, "rounds": 1, "incremental": 0, "acceptance": "coupled",
          "draft_choice": "sample", "draft_temperature": 1.0, "fused_commit": True}


def test_a_recipe_gives_its_settings_back():
    drawing = of_recipe(RECIPE)
    assert as_json(drawing) == as_json(wished(**RECIPE, prompt_expanded="a sun", expand=False))
    assert drawing.method == methods.SSD(4, 2, 1, 0, "coupled", draft_choice="sample",
                                         draft_temperature=1.0, fused_commit=True)


@pytest.mark.parametrize("change", [
    {"method": "lightning"}, {"k_h": "many"}, {"rounds": [1]}, {"acceptance": {}},
    {"size": "1000000000x1"}, {"prompt": "x" * 10_000}])
def test_a_hostile_recipe_is_refused(change):
    with pytest.raises(SSDError):
        of_recipe({**RECIPE, **change})


def test_knobs_of_another_method_are_ignored():
    assert of_recipe({**RECIPE, "draft": "copy"}).method == of_recipe(RECIPE).method
