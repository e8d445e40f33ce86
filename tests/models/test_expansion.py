"""Expansion says what a prompt leaves open, and nothing that contradicts what was typed."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssd_core.backbones.postcard.words.aliases import without_repeats
from ssd_core.backbones.postcard.words.canonical import canonical
from ssd_core.backbones.postcard.words.captions import (
    _COLOUR_WORDS,
    _NOUNS,
    _PARTS,
    _PLACE_WORDS,
    PLURAL,
)
from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.backbones.postcard.words.negations import negations
from ssd_core.backbones.postcard.words.short_prompts import fresh_chinese_prompt
from ssd_core.backbones.postcard.words.spelling import length_of, read, words_of
from ssd_core.backbones.prompts.expanded import edited, pinned
from ssd_lab.postcards import (
    MAX_TOKENS,
    WORDS,
    Scene,
    SceneObject,
    describe,
    is_valid,
    sample_scene,
)
from ssd_lab.postcards.claims import Claim, claims

SEEDS = st.integers(0, 2**64 - 1)
NAMES = ("time", "sky", "light", "ridge", "ground", "path")
ENDLESS = 200
MANY = settings(max_examples=3 * settings().max_examples)


def in_words(prompt: str) -> str:
    """The prompt in the captions' own words."""
    return " ".join(without_repeats(word.word for word in words_of(prompt) if word.word))


def phrase(rng, thing: SceneObject, alone: bool) -> str:
    """A thing as people type it: perhaps with its colour and its place.

    alone: whether it is the only one of its kind; "house, blue house" would be one house.
    """
    article = "some" if thing.kind in PLURAL else rng.choice(["a", ""]) if alone else "a"
    colour = rng.choice(_COLOUR_WORDS[thing.colour]) if rng.random() < 0.5 else ""
    place = rng.choice(_PLACE_WORDS[thing.place]) if rng.random() < 0.3 else ""
    return " ".join(f"{article} {colour} {rng.choice(_NOUNS[thing.kind])} {place}".split())


def phrases(prompt: str) -> list[str]:
    """The prompt's phrases, whatever their order."""
    return sorted(re.split(r" *[,.] *", in_words(prompt).strip(" ,.")))


def partial_prompt(seed: int) -> str:
    """Some of a scene: none to all of its things, and any of its parts."""
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng)
    kinds = [thing.kind for thing in scene.things]
    things = [phrase(rng, thing, kinds.count(thing.kind) == 1) for thing in scene.things
              if rng.random() < 0.8]
    parts = [rng.choice(_PARTS[name, getattr(scene, name)])
             for name in ("time", "sky", "ridge", "ground", "path")
             if getattr(scene, name) != "none" and rng.random() < 0.4]
    pieces = [*things, *parts] if rng.random() < 0.7 else [*parts, *things]
    if things and parts and rng.random() < 0.4:  # "a house by the ocean, hills behind"
        return ", ".join(things) + " " + ", ".join(parts)
    return rng.choice([", ", " and "]).join(pieces) or "a picture"


def caption(seed: int) -> str:
    rng = np.random.default_rng(seed)
    return describe(sample_scene(rng), rng)


def chinese(seed: int) -> str:
    return fresh_chinese_prompt(np.random.default_rng(seed))


PROMPTS = st.builds(lambda write, seed: write(seed),
                    st.sampled_from([partial_prompt, caption, chinese]), st.integers(0, 10**6))


def contradictions(typed: str, drawn: str, negative: str = "") -> list[Claim]:
    """Claims of the drawn words that speak against those typed, or against the negative."""
    own, all_, denied = (claims(in_words(text)) for text in (typed, drawn, negative))
    named = {(claim.attribute, claim.thing) for claim in own}
    ruled_out = {(claim.attribute, claim.value) for claim in denied}
    return [claim for claim in all_ if claim not in own and (
        (claim.attribute, claim.thing) in named
        or (claim.attribute, claim.value) in ruled_out)]


def scene_of(drawn: str) -> Scene:
    """The scene that complete words describe."""
    told: dict = dict.fromkeys((*NAMES, "light_place"), "none")
    things: dict = {}
    for claim in claims(in_words(drawn)):
        about = told if claim.thing is None else things.setdefault(claim.thing, {})
        about[claim.attribute] = claim.value
    count = told.pop("count", None)
    if told["light"] != "none" and told["light_place"] == "none":
        taken = [one["place"] for one in things.values() if one["kind"] == "balloon"]
        told["light_place"] = next(place for place in _PLACE_WORDS if place not in taken)
    things = things or {0: {"kind": "house", "colour": "red", "place": "middle"}}  # needs one
    placed = sorted((SceneObject(**one) for one in things.values()),
                    key=lambda thing: list(_PLACE_WORDS).index(thing.place))
    assert count in (None, ("one", "two", "three")[len(placed) - 1])
    return Scene(**told, things=tuple(placed))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("prompt", ["a balloon , the sun in the middle", "in the middle the sun , "
                                    "a balloon", "a balloon by a road with the sun in the center"])
def test_a_balloon_does_not_float_before_the_sun(prompt: str, seed: int) -> None:
    made = set(claims(expand(prompt, None, seed).prompt))
    assert {Claim("light_place", "middle"), Claim("kind", "balloon", 0)} <= made
    assert made & {Claim("place", place, 0) for place in ("left", "right")}


@given(PROMPTS, SEEDS)
@MANY
def test_what_is_drawn_is_a_scene_of_the_world_that_has_all_that_was_typed(prompt, seed):
    drawn = expand(prompt, None, seed, limit=ENDLESS)
    assert drawn == expand(prompt, None, seed, limit=ENDLESS)
    assert set(claims(in_words(prompt))) <= set(claims(in_words(drawn.prompt)))
    assert not contradictions(prompt, drawn.prompt)
    assert is_valid(scene_of(drawn.prompt)), drawn.prompt
    assert drawn.negative is None


@pytest.mark.parametrize("typed, drawn, negative", [
    ("a house at noon", "a house at noon, at dusk", ""),
    ("a red house", "a red blue house", ""),
    ("a house on the left", "in the middle a house on the left", ""),
    ("a house", "a lone house, at sunset", "sunset"),
])
def test_a_contradiction_is_seen(typed, drawn, negative):
    """The control of the property above: words that it must refuse."""
    assert contradictions(typed, drawn, negative)


def test_an_impossible_scene_is_seen():
    assert not is_valid(scene_of("a lone red house in the middle, on a meadow, hills behind, "
                                 "under a starry sky, at noon"))


@given(PROMPTS, SEEDS, st.sampled_from([
    "sunset", "clouds", "trees", "no sun", "a red house", "snow", "a forest behind", "night, rain",
    "太阳", "houses and boats", "white, red", "clear sky"]))
@MANY
def test_nothing_that_was_ruled_out_is_added(prompt, seed, negative):
    drawn = expand(prompt, negative, seed)
    assert drawn.negative == negative
    assert not contradictions(prompt, drawn.prompt, negative)


@given(PROMPTS, SEEDS, st.sampled_from(["", ", no clouds", " without flowers"]))
@MANY
def test_unfilled_words_stay_byte_for_byte_but_for_their_negations(prompt, seed, denied):
    unfilled, filled = (expand(prompt + denied, "rain", seed, fill=fill) for fill in (False, True))
    assert unfilled.added == () and unfilled.prompt == (prompt.strip(" ,，") if denied else prompt)
    assert (unfilled.negative, unfilled.moved) == (filled.negative, filled.moved)
    assert bool(unfilled.moved) == bool(denied)


@given(PROMPTS, SEEDS)
@MANY
def test_words_that_leave_nothing_open_stay_byte_for_byte(prompt, seed):
    drawn = expand(prompt, None, seed, limit=ENDLESS)
    again = expand(drawn.prompt, None, seed, limit=ENDLESS)
    assert again.prompt == drawn.prompt and again.added == ()


@given(PROMPTS, SEEDS, st.data())
@MANY
def test_an_addition_that_is_left_away_or_written_in_leaves_the_others(prompt, seed, data):
    drawn = expand(prompt, None, seed, limit=ENDLESS)
    if not drawn.added:
        return
    assert len({one.name for one in drawn.added}) == len(drawn.added)
    chosen = data.draw(st.sampled_from(drawn.added))
    less = expand(prompt, None, seed, (chosen.name,), limit=ENDLESS)
    assert less.added == tuple(one for one in drawn.added if one != chosen)
    written = expand(pinned(prompt, chosen), None, seed, limit=ENDLESS)
    if chosen.name in ("ground", "ridge", "path") and names_of(drawn) & {"kind"}:
        assert not names_of(written) & {"kind"}  # a scene that names its land needs no thing
        return
    assert phrases(written.prompt) == phrases(drawn.prompt)
    assert len(written.added) == len(drawn.added) - 1


def names_of(expanded):
    return {one.name for one in expanded.added}


def test_a_land_that_is_named_needs_no_thing():
    assert "kind" in names_of(expand("at sunset", None, 0))
    assert "kind" not in names_of(expand("at sunset, on a meadow", None, 0))


@given(PROMPTS, SEEDS, st.integers(1, 40))
@MANY
def test_additions_give_way_where_there_is_no_room(prompt, seed, limit):
    drawn = expand(prompt, None, seed, limit=limit)
    assert length_of(drawn.prompt) <= max(limit, length_of(prompt))
    full = expand(prompt, None, seed, limit=ENDLESS)
    assert set(drawn.added) <= set(full.added)


@given(PROMPTS, SEEDS)
@MANY
def test_the_prompt_is_what_its_additions_make_of_it(prompt, seed):
    drawn = expand(prompt, None, seed)
    edits = [(one.start, one.end, one.written) for one in drawn.added]
    assert edited(prompt, edits) == drawn.prompt
    assert all(one.text and one.chinese for one in drawn.added)
    assert set(in_words(drawn.prompt).split()) <= set(WORDS)
    assert length_of(drawn.prompt) <= MAX_TOKENS + 2  # a caption has so many at most


@given(PROMPTS)
@MANY
def test_a_prompt_is_read_as_its_claims_are(prompt):
    reading = read(prompt)
    own = [claim for claim in claims(in_words(prompt)) if claim.thing is None]
    assert {(claim.attribute, claim.value) for claim in own if claim.attribute != "light_place"} \
        == {(name, value) for name, values in reading.scene.items() for value in values}
    for n, thing in enumerate(reading.things):
        said = {c.attribute: c.value for c in claims(in_words(prompt)) if c.thing == n}
        assert said == {name: value for name in ("kind", "colour", "place")
                        if (value := getattr(thing, name))}


def test_the_seed_decides():
    assert len({expand("a red house", None, seed).prompt for seed in range(20)}) > 10


def test_weather_is_mostly_fair_and_mostly_by_day():
    drawn = [expand(prompt, None, seed).prompt for seed in range(300)
             for prompt in ("a red house", "a boat")]
    for phrase, most in ((" rain", 0.04), (" fog", 0.04), ("at night", 0.1)):
        assert 0 < sum(phrase in one for one in drawn) <= most * len(drawn), phrase


@pytest.mark.parametrize("prompt, faint", [
    ("a red house at dusk", "bare mountains"), ("a church at dusk", "a forest"),
    ("a boat at night", "bare mountains"), ("a castle, cloudy", "snowy mountains")])
def test_a_ridge_that_hardly_stands_out_is_rarely_filled_in(prompt, faint):
    drawn = [expand(prompt, None, seed).prompt for seed in range(200)]
    assert sum(faint in one for one in drawn) <= 4
    assert sum("hills" in one for one in drawn) >= 40
    assert faint in expand(f"{prompt}, {faint} behind", None, 0).prompt


@pytest.mark.parametrize("prompt, faint", [
    ("a tower, rocky mountains", "at dusk"), ("a tower, a forest behind", "at dusk"),
    ("a tower, snowy mountains behind", "cloudy")])
def test_light_and_clouds_leave_the_ridge_that_was_typed(prompt, faint):
    drawn = [expand(prompt, None, seed).prompt for seed in range(200)]
    assert sum(faint in one for one in drawn) <= 6


@pytest.mark.parametrize("prompt, kinds, count", [
    ("two houses", ["house"] * 2, "two"), ("2 red boats", ["boat"] * 2, "two"),
    ("three trees", ["tree"] * 3, "three"), ("a pair of windmills", ["windmill"] * 2, "two"),
    ("two towers by the sea", ["tower"] * 2, "two"), ("两座房子", ["house"] * 2, "two"),
    ("one house and two trees", ["house", "tree", "tree"], "three"),
    ("two houses and a tree", ["house", "house", "tree"], "three"),
    ("churches", ["church"] * 2, "two"), ("a pine tree", ["pine"], "one"),
    ("a big oak tree", ["tree"], "one"), ("houses", ["houses"], None),
    ("a fleet of white ships", ["boats"], None), ("3 balloons", ["balloon"], "three"),
    ("a rainy day", ["any"], "one"), ("sunset over the sea", [], None),
    ("a house and a tree", ["house", "tree"], "two")])
def test_as_many_things_are_drawn_as_were_typed(prompt, kinds, count):
    said = claims(in_words(expand(prompt, None, 3).prompt))
    drawn = [claim.value for claim in said if claim.attribute == "kind"]
    assert drawn == kinds or (kinds == ["any"] and len(drawn) == 1)
    stated = [claim.value for claim in said if claim.attribute == "count"]
    assert stated == ([count] if count else [])
    places = [claim.value for claim in said if claim.attribute == "place"]
    assert len(set(places)) == len(places) == len(drawn) * (drawn != ["balloon"])
    if len(drawn) == 2:
        assert set(places) == {"left", "right"}


@pytest.mark.parametrize("prompt, left, negative", [
    ("a house, no trees", "a house", "trees"),
    ("a red house without trees or clouds", "a red house", "trees, clouds"),
    ("a castle with no trees and no people", "a castle", "trees, people"),
    ("a boat on a lake, not red", "a boat on a lake", "red"),
    ("a house but no sun, at noon", "a house, at noon", "sun"),
    ("a house without any trees and a boat", "a house and a boat", "trees"),
    ("a house, zero trees, 0 clouds", "a house", "trees, clouds"),
    ("a church but not at night", "a church", "night"),
    ("一座房子，没有树", "一座房子", "树"),
    ("没有云，一艘小船", "，一艘小船", "云"),
    ("无云的海边，灯塔", "海边，灯塔", "云"),
    ("a house, not far away", "a house, not far away", ""),
    ("a cloudless sky", "a cloudless sky", "")])
def test_negations_move_to_the_negative_prompt(prompt, left, negative):
    found = negations(prompt)
    assert edited(prompt, [(one.start, one.end, "") for one in found]) == left
    assert ", ".join(one.denied for one in found) == negative
    drawn = expand(prompt, "rain", 5)
    assert drawn.negative == ", ".join(filter(None, ["rain", negative]))
    assert [f"'{one.typed}' was moved to the negative prompt" for one in found] == drawn.notes
    assert not contradictions(left, drawn.prompt, negative)


def test_only_a_negation_still_draws_something():
    drawn = expand("no trees", None, 1)
    assert drawn.negative == "trees" and drawn.prompt.startswith(("a lone", "the lone"))


@pytest.mark.parametrize("typed, drawn", [
    ("a red hosue", "hosue"), ("a wooden house", "wooden"), ("A tree...", "...")])
def test_the_words_that_were_typed_stay_as_they_are(typed, drawn):
    assert drawn in expand(typed, None, 0).prompt


def test_a_colour_or_a_place_said_in_another_way_is_kept():
    assert "a lone red house" in " ".join(canonical(expand("the house is red", None, 2).prompt))
    towers = claims(in_words(expand("two towers, one red and one blue", None, 2).prompt))
    assert [one.value for one in towers if one.attribute == "colour"] == ["red", "blue"]
    assert [one.value for one in towers if one.attribute == "count"] == ["two"]
    both = expand("a red and a white lighthouse", None, 2).prompt
    assert "a red lighthouse on the left and a white lighthouse on the right" in both
    assert "a lone red and white tent" in expand("a red and white tent", None, 2).prompt
    for seed in range(8):
        built = expand("an old stone castle and a brick house", None, seed).prompt
        assert "old white stone castle" in built and "red brick house" in built
        assert "red wooden cabin" in expand("a wooden cabin", None, seed).prompt
        assert "house on the left" in expand("on the left, a house", None, seed).prompt


@pytest.mark.parametrize("text", ["not ", "no ", "not very nice ", "没有"])
def test_reading_negations_takes_no_more_steps_than_there_are_words(text, monkeypatch):
    """A thousand times "not" took a second a plan: each one looked at all that follow."""
    from ssd_core.backbones.postcard.words import negations as reading

    looked, plain = [], reading._stops
    monkeypatch.setattr(reading, "_stops", lambda piece: looked.append(piece) or plain(piece))
    reading.negations(text * 300)
    assert len(looked) <= 4 * len(text.split() or text) * 300
