"""lab/benchmarks/everyday.py: what prompts demand, judged on painted pictures; runs go on."""

import argparse
import importlib
import importlib.util
import json
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import Grid, SSDError
from ssd_core.backbones.postcard.words.aliases import said
from ssd_core.backbones.postcard.words.unknown_objects import names_nothing_known, unknown_objects
from ssd_core.backbones.postcard.words.world import COLOURS, KINDS, sample_scene
from ssd_lab.postcards import Reading, Scene, SceneObject, fresh_prompt, is_valid, paint, read
from studio.prompts import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]


def module(name: str):
    """One of the scripts; its neighbours in benchmarks/ are found only while it is imported."""
    sys.path.insert(0, str(ROOT / "lab" / "benchmarks"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def rule():
    return module("everyday_rule")


@pytest.fixture(scope="module")
def script():
    """The command, by its path: a checkout may lie in a folder of the same name."""
    for name in ("everyday_tables", "script"):  # with these, all that the command imports
        module(name)
    spec = importlib.util.spec_from_file_location("everyday_command",
                                                  ROOT / "lab" / "benchmarks" / "everyday.py")
    sys.modules[spec.name] = found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


# ---- the prompts -------------------------------------------------------------------------------


def test_the_prompts_are_as_many_as_promised_and_all_different(rule):
    prompts = rule.read_prompts()
    assert len(prompts) == len({one.text for one in prompts}) == 200
    assert min(Counter(one.category for one in prompts).values()) >= 15
    assert {*EXAMPLES} <= {one.text for one in prompts}


def test_every_prompt_demands_something_and_is_read_to_its_end(rule):
    for one in rule.read_prompts():
        demand = rule.Demand.of(one.means)
        assert demand.scene or demand.mentions, one
        assert (one.category == "negation") == bool(demand.denied), one
        read_so = [piece for piece in said(one.means) if piece.words is not None]
        assert len(read_so) >= len(demand.mentions), one


def test_what_is_said_of_a_stranger_s_prompts_is_what_the_program_says(rule):
    prompts = rule.read_prompts(rule.STRANGER)
    assert len(prompts) == len({one.text for one in prompts}) == 100
    for one in prompts:
        assert names_nothing_known(one.text) == (one.category == rule.NONE), one
        assert not unknown_objects(one.text) or one.category in (rule.PART, rule.NONE), one


# ---- the rule, on painted pictures -------------------------------------------------------------

PLAIN = Scene("day", "clear", "none", "none", "none", "meadow", "none", ())
PLACES_OF = {1: ("middle",), 2: ("left", "right"), 3: ("left", "middle", "right")}


def scene(things: str, **changes: str) -> Scene:
    """A scene of things such as "red house, blue boat"; they stand from left to right."""
    named = [one.split() for one in things.split(", ")]
    return replace(PLAIN, **changes, things=tuple(
        SceneObject(kind, colour, place) for (colour, kind), place
        in zip(named, PLACES_OF[len(named)], strict=True)))


LAKE, SEA, NIGHT = {"ground": "lake"}, {"ground": "sea"}, {"time": "night", "sky": "cloudy"}
# By category: prompt, scenes that obey it, scenes that do not.
CASES = [
    ("a red house", [scene("red house"), scene("red house", ridge="hills", **NIGHT)],
     [scene("blue house"), scene("red tower"), scene("red houses"),
      scene("red house, green tree"), scene("red house, red house")]),
    ("lighthouse at night", [scene("white lighthouse", **NIGHT)],
     [scene("white lighthouse"), scene("white tower", **NIGHT)]),
    ("a red house and a blue boat", [scene("red house, blue boat", **LAKE),
                                     scene("blue boat, red house", **SEA)],
     [scene("blue house, red boat", **LAKE), scene("red house", **LAKE),
      scene("red house, blue boat, blue boat", **LAKE)]),
    ("a church next to a big oak tree", [scene("red church, green tree")],
     [scene("red church"), scene("red church, green tree, green tree")]),
    ("a house, a tree and a tower", [scene("red tower, blue house, green tree")],
     [scene("red tower, blue house, green pine"), scene("blue house, green tree")]),
    ("a boat on a lake at sunset", [scene("red boat", **LAKE, time="dusk")],
     [scene("red boat", **SEA, time="dusk"), scene("red boat", **LAKE)]),
    ("two boats", [scene("red boats", **LAKE), scene("red boat, blue boat", **LAKE)],
     [scene("red boat", **LAKE), scene("red boats, blue boat", **LAKE),
      scene("red boat, blue boat, red boat", **LAKE), scene("red boat, red tree", **LAKE)]),
    ("three trees", [scene("green trees"), scene("green tree, red tree, green tree")],
     [scene("green tree, green tree"), scene("green trees, green tree"), scene("green tree")]),
    ("2 red houses and a tower", [scene("red house, red house, blue tower")],
     [scene("red houses, blue tower"), scene("red house, pink house, blue tower")]),
    ("two things, a tower and a tent", [scene("red tent, blue tower")],
     [scene("red tent, blue tower, red tree"), scene("red tent, blue tent")]),
    ("a single tree", [scene("green tree")], [scene("green trees"), scene("green tree, red tree")]),
    ("some yellow houses", [scene("yellow houses"), scene("yellow house, yellow house")],
     [scene("yellow house"), scene("red houses"), scene("yellow houses, red tree")]),
    ("a church in thick fog", [scene("red church", sky="fog")], [scene("red church", sky="rain")]),
    ("rain", [scene("red church", sky="rain"), scene("red tent, blue tower", sky="rain")],
     [scene("red church")]),
    ("a house, no clouds", [scene("red house")], [scene("red house", sky="cloudy")]),
    ("a red house without trees", [scene("red house", ridge="hills")],
     [scene("red house", ridge="forest"), scene("red house, green pine")]),
    ("a tent, not red", [scene("blue tent")], [scene("red tent")]),
    ("a church but not at night, no hills or road", [scene("red church", path="river")],
     [scene("red church", **NIGHT), scene("red church", ridge="hills"),
      scene("red church", path="road")]),
    ("hot air baloon over a castel", [scene("red balloon, blue castle")], [scene("red castle")]),
    ("a hut at nihgt", [scene("red house", **NIGHT)], [scene("red house")]),
    ("湖上的红色小船", [scene("red boat", **LAKE)], [scene("red boat", **SEA)]),
    ("one red house in the middle, on a meadow, by a road, hills behind, under a clear sky, the "
     "sun on the left, at noon",
     [scene("red house", path="road", ridge="hills", light="sun", light_place="left")],
     [scene("red house", path="road", ridge="hills", light="sun", light_place="right"),
      scene("red house", path="river", ridge="hills", light="sun", light_place="left")]),
]


@pytest.mark.parametrize(("prompt", "right", "wrong"), CASES, ids=[case[0] for case in CASES])
def test_painted_pictures_are_judged_as_a_person_would(rule, prompt, right, wrong):
    demand = rule.Demand.of(prompt)
    for expected, scenes in ((True, right), (False, wrong)):
        for one in scenes:
            assert demand.obeyed(read(paint(one))) is expected, one


def reading_of(one: Scene) -> Reading:
    """What a perfect reader says of a scene."""
    things = {thing.place: (thing.kind, thing.colour) for thing in one.things}
    return Reading(one.time, one.sky, one.light, one.light_place, one.ridge, one.ground, one.path,
                   things)


@pytest.mark.parametrize("seed", range(40))
def test_a_full_description_is_obeyed_by_its_scene_and_by_no_other_number_of_things(rule, seed):
    rng = np.random.default_rng(seed)
    one = sample_scene(np.random.default_rng(seed))
    demand = rule.Demand.of(fresh_prompt(rng))
    reading = reading_of(one)
    assert all(demand.fulfilled(reading)) and demand.obeyed(reading)
    fewer = dict(list(reading.things.items())[1:])
    assert not demand.obeyed(replace(reading, things=fewer))
    for place in set(PLACES_OF[3]) - set(reading.things):
        more = {**reading.things, place: ("tower", "white")}
        assert not demand.obeyed(replace(reading, things=more))


@pytest.mark.parametrize("seed", range(20))
def test_a_thing_that_is_denied_may_not_stand_anywhere(rule, seed):
    die = random.Random(seed)
    kind, place = die.choice(KINDS), die.choice(PLACES_OF[3])
    reading = replace(reading_of(PLAIN), things={place: (kind, die.choice(COLOURS))})
    assert not rule.Demand.of(f"at noon, no {kind}").obeyed(reading)
    assert rule.Demand.of("at noon, no people, no text").obeyed(reading)


def test_cases_can_be_painted():
    for prompt, right, _ in CASES:
        assert all(map(is_valid, right)), prompt


# ---- the command -------------------------------------------------------------------------------


@pytest.fixture
def run(script, tmp_path, monkeypatch):
    """Runs the command on a tiny backbone and four prompts; returns (text, rows)."""
    backbone, tables, sheets = tiny_postcard(), module("everyday_tables"), module("everyday_sheets")
    heads = random_heads(backbone)
    few = [one for one in module("everyday_rule").read_prompts()
           if one.category in ("negation", "long")][10:19:2]
    monkeypatch.setattr(script, "load_backbone", lambda *_: backbone)
    monkeypatch.setattr(script, "load_heads", lambda *_: heads)
    monkeypatch.setattr(script, "read_prompts", lambda path: few)
    for one in (tables, sheets):
        monkeypatch.setattr(one, "RESULTS", tmp_path)

    def runs(methods=("ar", "exact", "fast"), **changes):
        text = script.run(argparse.Namespace(**{
            "methods": list(methods), "expansion": list(script.EXPANSIONS), "seeds": [5],
            "prompts": None, "runs": tmp_path / "runs", "name": "everyday", "sheets": None,
            "size": None,
            "backbone": "postcard", **changes}))
        return text, json.loads((tmp_path / "everyday.json").read_text(encoding="utf-8"))

    return runs


def test_a_table_has_a_row_for_each_method_and_expansion(run, tmp_path):
    text, rows = run(sheets="exact")
    assert [(row["spec"], row["expansion"]) for row in rows] == [
        (spec, expansion) for expansion in ("as typed", "expanded")
        for spec in ("ar", "exact", "fast")]
    by = {(row["spec"], row["expansion"]): row for row in rows}
    assert by["ar", "expanded"]["passes"] == 576 > by["fast", "expanded"]["passes"]
    assert text.count("`exact` drew AR's tokens in 5 of 5 pictures") == 2
    assert text.count("drew the same tokens as typed and expanded in 2 of 2 pictures") == 3
    assert (tmp_path / "everyday.md").read_text(encoding="utf-8") == text
    assert Image.open(tmp_path / "everyday-1.webp").width > 300
    assert "Kept by eye" not in text


def test_what_is_there_is_not_drawn_again_and_what_is_lost_is(run, script, tmp_path, monkeypatch):
    few = ("ar", "fast")
    first = run(methods=few)
    drawn, honest = [], script.generate
    monkeypatch.setattr(script, "generate", lambda *given, **known: (
        drawn.extend(given[1]), honest(*given, **known))[1])
    assert run(methods=few)[1] == first[1] and drawn == []
    kept = {path: json.loads(path.read_text(encoding="utf-8"))["drawn"]
            for path in sorted((tmp_path / "runs" / "ar").rglob("*.json"))}
    lost = next(path for path, words in kept.items() if words == script.read_prompts(None)[0].text)
    lost.unlink()  # the first of its batch, which the batch is named by
    assert run(methods=few)[1] == first[1] and drawn == [kept[lost]]


def test_another_size_is_drawn_and_its_grid_is_measured(run, script, monkeypatch):
    backbone = tiny_postcard(grid=Grid(18, 32))
    monkeypatch.setattr(script, "load_backbone", lambda *_: backbone)
    text, (row,) = run(methods=("ssd:rounds=0",), expansion=["as typed"], size="512x288",
                       sheets="ssd:rounds=0")
    assert "512x288" in text and "| grid ratio |" in text and row["grid_ratio"] > 1
    with pytest.raises(SSDError, match="384x384"):
        run(size="384x384")


def test_judgements_by_eye_are_counted_once_they_are_there(run, tmp_path):
    kept = {"as typed": {"a": True, "b": False}, "expanded": {"a": True, "b": True}}
    (tmp_path / "everyday_eyes.json").write_text(json.dumps(kept))
    text, _ = run(methods=("fast",), expansion=["as typed"])
    assert "| as typed | 1 of 2 |" in text and "| expanded | 2 of 2 |" in text
