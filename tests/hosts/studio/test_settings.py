"""Settings: into methods, the slider's stops, to plain values and back, from hostile recipes."""

from __future__ import annotations

import json
from dataclasses import fields
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.solo import SIDE

from ssd_core import SSDError, methods
from ssd_core.backbones.base import Preset
from ssd_core.engine.methods import METHODS
from ssd_core.engine.prior_passes import bundled
from ssd_core.output.words import Words
from studio.settings import (
    KNOBS,
    NAMES,
    STOPS,
    Settings,
    from_dict,
    from_recipe,
    stop_of,
    to_dict,
    with_preset,
)
from studio.words import knob_label

SEEDS = st.integers(0, 2**64 - 1)
LEGAL = st.builds(
    Settings.of, prompt=st.text(st.characters(codec="ascii", categories=["L"]), max_size=20),
    seed=SEEDS, pictures=st.integers(1, 64), method=st.sampled_from(list(METHODS)),
    k_h=st.integers(1, 9), k_v=st.integers(1, 5), rounds=st.integers(1, 9),
    incremental=st.integers(0, 5), acceptance=st.sampled_from(["residual", "coupled"]),
    fused_commit=st.booleans(), draft=st.sampled_from(["distribution", "copy"]),
    drafts=st.sampled_from(["horizontal", "vertical"]),
    window=st.none() | st.integers(1, 99), cfg=st.none() | st.floats(1, 100),
    temperature=st.floats(0, 100), top_k=st.integers(0, 9), top_p=st.floats(0.1, 1),
    size=st.none() | st.just("384x384"),
    expand=st.booleans(), open=st.sampled_from([(), ("sky",), ("sky", "place 0")]),
    fixed=st.none() | st.builds(Words, st.just("a tent"), st.none() | st.just("a boat")))


@pytest.fixture
def loaded(library):
    return library.current


def requested(settings, loaded, **options):
    return settings.request(loaded.backbone, loaded.heads, **options)


@given(LEGAL)
def test_settings_survive_json(settings):
    raw = json.loads(json.dumps(to_dict(settings), allow_nan=False))
    assert None not in raw.values() and from_dict(raw) == settings


def test_a_seed_beyond_what_browsers_count_stays_exact():
    raw = to_dict(Settings.of(seed=2**64 - 1))
    assert raw["seed"] == str(2**64 - 1) and from_dict(raw).knobs["seed"] == 2**64 - 1


def test_missing_values_have_their_defaults_and_strangers_are_ignored():
    assert from_dict({"prompt": " a sun ", "unknown": object()}) == Settings(prompt="a sun")


@pytest.mark.parametrize(("name", "value"), [
    ("seed", "x"), ("seed", -2), ("seed", 2**64), ("seed", True), ("seed", "9" * 30),
    ("pictures", 0), ("pictures", 65), ("pictures", 1.5), ("method", "lightning"),
    ("method", None), ("k_h", 0), ("k_h", None), ("rounds", -2), ("acceptance", "never"),
    ("draft_choice", 3), ("draft_temperature", 0), ("temperature", float("nan")),
    ("temperature", "hot"), ("top_p", 0), ("top_k", -1), ("cfg", 0.5), ("size", "big"),
    ("size", "1x" + "1" * 99), ("fused_commit", "yes"), ("prompt", 7), ("prompt", "x" * 5000),
    ("window", -3), ("fused_commit", 1)])
def test_a_value_that_is_wrong_is_named_in_one_line(name, value):
    method = "exact" if name == "window" else "ssd"
    with pytest.raises(SSDError, match=name) as caught:
        from_dict({"method": method, name: value})
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_minus_one_leaves_a_number_to_its_method_or_backbone():
    raw = {"k_h": -1, "rounds": -1, "window": -1, "cfg": -1}
    settings = from_dict({"method": "rows", **raw})
    assert [settings.knobs[name] for name in raw] == [None] * 4
    assert raw.items() <= to_dict(settings).items()
    assert settings.chosen_method().resolve(Preset(rounds=4)).rounds == 4
    assert settings.sampling().cfg is None


def test_every_knob_is_a_setting_and_has_its_label_in_both_languages():
    assert set(KNOBS) <= set(NAMES)
    assert [knob_label("window", "", language) for language in ("en", "zh")] == [
        "Window: cells checked in a pass", "窗口：每次前向检查的单元格数"]
    for name, knob in KNOBS.items():
        assert knob_label(name, knob.help, "en") != knob_label(name, knob.help, "zh"), name


def test_fused_commit_without_rounds_is_refused():
    with pytest.raises(SSDError, match="fused_commit"):
        from_dict({"method": "ssd", "fused_commit": True, "rounds": 0})


# Methods


def test_a_method_takes_the_knobs_it_has(loaded):
    wish = Settings.of(method="ssd", k_h=3, k_v=2, rounds=4, incremental=1, acceptance="coupled")
    assert requested(wish, loaded).method == methods.SSD(
        3, 2, 4, 1, "coupled").resolve(Preset())
    exact = requested(wish.changed(method="exact", window=9), loaded).method
    assert exact == methods.Exact(9)


def test_without_heads_ssd_is_the_same_schedule_by_rows(loaded):
    wish = Settings.of(method="ssd", rounds=3, acceptance="coupled", fused_commit=True)
    requests = [wish.request(loaded.backbone, heads) for heads in (loaded.heads, None)]
    with_heads, without = (request.method for request in requests)
    assert requests[0].note is None and "no draft heads" in requests[1].note
    assert without.name == "rows"
    schedule = {f.name for f in fields(without)} - {"draft"}
    assert all(getattr(without, name) == getattr(with_heads, name) for name in schedule)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_no_stop_needs_heads(loaded, stop):
    wish = Settings.of(**stop.knobs)
    with_heads, without = (wish.request(loaded.backbone, h) for h in (loaded.heads, None))
    assert without.method == with_heads.method and without.note is None


@pytest.mark.parametrize("method", ["mtp", "strict"])
def test_methods_that_need_heads_say_so_before_anything_runs(loaded, method):
    with pytest.raises(SSDError, match="rows or exact"):
        Settings(method=method).request(loaded.backbone, None)


def test_knobs_beyond_the_heads_reach_are_refused_in_the_plan(loaded):
    with pytest.raises(SSDError, match="k_v 9"):
        requested(Settings.of(method="ssd", k_v=9), loaded)


def test_a_backbones_own_schedule():
    own = with_preset(Settings.of(prompt="a", cfg=3.0), Preset(4, 2, 5, 4, 4.0))
    assert [own.knobs[name] for name in ("k_h", "k_v", "rounds", "incremental", "cfg")] == [
        4, 2, 5, 4, None]
    assert own.prompt == "a"


# Speed against fidelity


def test_every_stop_is_found_again_from_its_own_knobs():
    at = [Settings.of(prompt="a", seed=3).changed(**stop.knobs) for stop in STOPS]
    assert [stop_of(settings) for settings in at] == list(range(len(at)))
    assert stop_of(Settings()) == 1
    assert stop_of(Settings.of(method="ssd", rounds=4)) is None
    assert stop_of(at[1].changed(window=5)) is None


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_a_restored_picture_has_the_name_of_its_speed_and_its_own_window(loaded, stop):
    request = requested(Settings.of(**stop.knobs), loaded)
    recipe = {**RECIPE, "method": request.recorded.name, "knobs": vars(request.recorded)}
    restored = from_dict(to_dict(from_recipe(recipe)))
    assert stop_of(restored) == STOPS.index(stop)
    assert restored.knobs.get("window") == recipe["knobs"].get("window")
    assert stop_of(restored.changed(window=7)) in (None, 0), "one's own"


def test_every_stop_differs_visibly_in_passes(loaded):
    requests = [requested(Settings.of(**stop.knobs), loaded) for stop in STOPS]
    assert [request.method.guarantee for request in requests] == [
        "identical", "identical", "approximate", "approximate"]
    plans = [request.plan for request in requests]
    assert plans[1].passes is None and plans[1].prior_passes is None, "nobody knows this backbone"
    exact = bundled()["passes"]["exact/48/heads"]
    taken = [SIDE**2, exact, *(plan.passes_max for plan in plans[2:])]
    assert all(slow > 1.1 * fast for slow, fast in pairwise(taken)), taken
    assert {plan.ar_passes for plan in plans} == {SIDE**2}


def test_a_plan_below_a_line_counts_only_what_is_drawn(loaded):
    wish = Settings(method="ssd")
    whole, part = (requested(wish, loaded, keep_rows=rows).plan for rows in (0, SIDE // 2))
    assert part.ar_passes == SIDE**2 / 2 and part.passes < whole.passes


# Recipes

RECIPE = {"prompt": "a sun", "negative": None, "method": "ssd", "seed": 3, "cfg": 2.0,
          "temperature": 1.0, "top_k": 0, "top_p": 1.0, "size": [384, 384],
          "knobs": {"k_h": 4, "k_v": 2, "rounds": 1, "incremental": 0, "acceptance": "coupled",
                    "draft_choice": "sample", "draft_temperature": 1.0, "fused_commit": True}}


def test_a_recipe_gives_its_settings_back():
    settings = from_recipe(RECIPE)
    assert settings == Settings.of(
        prompt="a sun", seed=3, method="ssd", k_h=4, k_v=2, rounds=1, acceptance="coupled",
        fused_commit=True, cfg=2.0, temperature=1.0, top_p=1.0, size="384x384",
        fixed=Words("a sun"))


@pytest.mark.parametrize("change", [
    {"method": "lightning"}, {"knobs": {"k_h": "many"}}, {"knobs": {"rounds": [1]}},
    {"knobs": {"acceptance": {}}}, {"size": [10**9, 1]}, {"prompt": "x" * 10_000}])
def test_a_hostile_recipe_is_refused(change):
    with pytest.raises(SSDError):
        from_recipe({**RECIPE, **change})


def test_a_recipe_cannot_set_what_is_no_knob_of_its_method():
    knobs = {**RECIPE["knobs"], "pictures": 64, "draft": "copy"}
    settings = from_recipe({**RECIPE, "knobs": knobs})
    assert settings.pictures == 1 and settings.knobs["draft"] == "distribution"
