"""What a click may choose: prompts that differ in what was chosen, and in nothing else."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, tiny_postcard

from ssd_core import Grid
from ssd_core.backbones.postcard.words.captions import (
    MAX_TOKENS,
    PLURAL,
    WORDS,
    fresh_caption,
)
from ssd_core.backbones.postcard.words.captions import fresh_prompt as fresh_english
from ssd_core.backbones.postcard.words.choices import choices
from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.backbones.postcard.words.filling import MANY, MOST, all_alike, wanted_of
from ssd_core.backbones.postcard.words.phrases import phrases_of
from ssd_core.backbones.postcard.words.rewriting import coloured
from ssd_core.backbones.postcard.words.short_prompts import fresh_chinese_prompt, short_prompt
from ssd_core.backbones.postcard.words.spelling import length_of, read
from ssd_core.backbones.postcard.words.world import (
    GROUNDS,
    PLACES,
    RIDGES,
    TIMES,
    colours_of,
    kinds_of,
    may_be_many,
    skies_of,
)

SCENE = {"ground": "ground", "behind": "ridge", "weather": "sky", "time": "time"}
UNTIDY = re.compile(r"\ba (?=[aeiou])|\ban (?![aeiou])|  |,\s*,|，，")
COUNTS = {"one": 1, "two": 2, "three": 3}
SOURCES = {
    "expanded": lambda seed: expand(short_prompt(rng(seed)), None, seed).prompt,
    "expanded Chinese": lambda seed: expand(short_prompt(rng(seed), True), None, seed).prompt,
    "short": lambda seed: short_prompt(rng(seed)),
    "short Chinese": lambda seed: short_prompt(rng(seed), True),
    "fresh": lambda seed: fresh_english(rng(seed)),
    "fresh Chinese": lambda seed: fresh_chinese_prompt(rng(seed)),
    "caption": lambda seed: fresh_caption(seed, 0),
}


def rng(seed):
    return np.random.default_rng(seed)


def offered(prompt, phrase=None):
    """The prompts by kind and label."""
    return {each.kind: {option.label: option.prompt for option in each.options}
            for each in choices(prompt, phrase, MAX_TOKENS)}


def said(prompt):
    """The scene of a prompt without numbers, and its things."""
    reading = read(prompt)
    scene = {name: tuple(values) for name, values in reading.scene.items() if name != "count"}
    if reading.light_place:
        scene["light at"] = (reading.light_place,)
    things = Counter((thing.kind, thing.colour, thing.place, count) for thing, count
                     in zip(reading.things, wanted_of(reading.things), strict=True))
    return scene, things


def check_numbers(prompt):
    """Words such as "two things" and "a lone" say as many things as there are."""
    reading = read(prompt)
    total = sum(wanted_of(reading.things))
    singles = [word for word in reading.words if word.meaning[0] == "count"]
    own = {thing.start + n for thing in reading.things for n in range(thing.end - thing.start)}
    for word in singles:
        if word.start not in own:
            assert COUNTS[word.meaning[1]] == total, prompt
            assert not any(thing.kind in PLURAL for thing in reading.things), prompt
        elif word.word in ("lone", "single"):
            assert total == 1, prompt


def check_scene(kind, before, after):
    """Only this attribute differs, and what the world allows no longer with it."""
    (old, things), (new, same) = before, after
    if kind == "add":
        assert old == new and not things - same
        ((_, colour, place, count),) = (same - things).elements()
        assert (colour, count) == (None, 1) and place in PLACES
        return
    assert things == same
    changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    allowed = {"time": {"sky", "light"}, "weather": {"light", "light at"}, "ground": {"path"},
               "behind": set()}[kind]
    assert SCENE[kind] in changed and changed <= {SCENE[kind], *allowed}


def check_thing(kind, phrase, before, after):
    """Only one thing differs, and only in this; two may have exchanged their places."""
    (old, things), (new, other) = before, after
    assert old == new
    lost, gained = list((things - other).elements()), list((other - things).elements())
    if kind == "remove":
        assert len(lost) == 1 and not gained
    elif kind == "another" and not lost:
        (more,) = gained
        assert any(more[:2] == thing[:2] for thing in things)
    elif kind == "place" and len(lost) == 2:
        assert Counter(t[:2] for t in lost) == Counter(t[:2] for t in gained)
        assert Counter(t[2] for t in lost) == Counter(t[2] for t in gained)
    else:
        (was,), (becomes,) = lost, gained
        at = {"kind": 0, "colour": 1, "place": 2, "another": 3}[kind]
        assert was[:at] + was[at + 1 :] == becomes[:at] + becomes[at + 1 :]
    assert sum(count for *_, count in other.elements()) <= MANY


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(SOURCES)), st.integers(0, 10_000))
def test_each_option_says_what_was_chosen_and_nothing_else(source, seed):
    prompt = SOURCES[source](seed)
    for kind, options in offered(prompt).items():
        for label, new in options.items():
            if new != prompt:
                check_scene(kind, said(prompt), said(new))
                assert length_of(new) <= MAX_TOKENS, label
                assert kind != "add" or not UNTIDY.search(new), new
    for phrase in phrases_of(prompt):
        for kind, options in offered(prompt, phrase).items():
            for new in options.values():
                if new != prompt:
                    check_thing(kind, phrase, said(prompt), said(new))
                    check_numbers(new)
                    assert length_of(new) <= MAX_TOKENS
                    assert not UNTIDY.search(new), new
                    assert " ," in prompt or " ," not in new


@settings(max_examples=10, deadline=None)
@given(st.booleans(), st.integers(0, 10_000))
def test_an_expanded_prompt_offers_all_that_the_world_has(chinese, seed):
    prompt = SOURCES["expanded Chinese" if chinese else "expanded"](seed)
    reading = read(prompt)
    ground, time = reading.scene["ground"][0], reading.scene["time"][0]
    scene = offered(prompt)
    kinds = {thing.kind for thing in reading.things}
    white = any(thing.colour == "white" for thing in reading.things)
    assert len(scene["ground"]) == sum(
        kinds <= set(kinds_of(each)) and not (white and each == "snow") for each in GROUNDS)
    assert len(scene["weather"]) == len(skies_of(time))
    assert (len(scene["behind"]), len(scene["time"])) == (len(RIDGES), len(TIMES))
    for thing, phrase in zip(reading.things, phrases_of(prompt), strict=True):
        found = offered(prompt, phrase)
        alike = all_alike([thing])
        assert len(found["colour"]) == len(colours_of(thing.kind, ground))
        fits = {kind for kind in kinds_of(ground) if thing.colour in colours_of(kind, ground)
                and (may_be_many(kind) or not alike)}
        assert len(found["kind"]) == len(fits)
        assert (len(found.get("place", ())) == len(PLACES)) != alike and "remove" in found
        assert ("another" in found) == (_has_room(reading, thing))


def _has_room(reading, thing) -> bool:
    """Whether one more thing like this fits into the picture."""
    return thing.number < MANY if all_alike([thing]) else len(reading.things) < MOST


@pytest.mark.parametrize(("prompt", "phrase", "kind", "label", "new"), [
    ("a lone red house on the left, on a lake", "a lone red house on the left", "another",
     "another one like it",
     "two things, a red house on the left and a red house in the middle, on a lake"),
    ("two things, a red house on the left and a tree on the right", "a tree on the right",
     "remove", "remove", "a lone red house on the left"),
    ("a hut, an oak tree and a tent", "a hut", "remove", "remove",
     "two things, an oak tree and a tent"),
    ("two houses and a tree", "two houses", "kind", "church", "two churches and a tree"),
    ("two houses, at night", "two houses", "another", "another one like it",
     "three houses, at night"),
    ("a boat sails on the left, on the sea", "a boat sails on the left", "kind", "lighthouse",
     "a lighthouse stands on the left, on the sea"),
    ("a red house on the left", "a red house on the left", "colour", "orange",
     "an orange house on the left"),
    ("a house and a tree", "a house", "kind", "trees", "some trees and a tree"),
    ("a painting of a house, on a meadow", "a house", "remove", "remove", "on a meadow"),
    ("a red house on the left and a tree on the right", "a tree on the right", "place", "left",
     "a red house on the right and a tree on the left"),
    ("a house, under a clear sky, under the sun, at noon", None, "time", "night",
     "a house, under a starry sky, under the moon, at night"),
    ("a house in a wheat field, by a road", None, "ground", "sea", "a house on the sea"),
    ("a tree on a rainy evening", None, "weather", "fog", "a tree on a foggy evening"),
    ("a house", None, "behind", "snowy mountains", "a house, snowy mountains behind"),
    ("左边有一座红房子，夜晚", "左边有一座红房子", "kind", "松树", "左边有一棵红松树，夜晚"),
    ("孤独的粉色的教堂在右边，草地", "孤独的粉色的教堂在右边", "another", "再来一个",
     "两样东西，粉色的教堂在右边，粉色的教堂在中间，草地"),
    ("粉色的孤独的教堂在右边，草地", "粉色的孤独的教堂在右边", "colour", "红色",
     "红色的孤独的教堂在右边，草地"),
    ("房子在左边，湖上，中午", None, "weather", "雨中", "房子在左边，湖上，雨中，中午"),
])
def test_a_prompt_is_changed_as_a_person_would_change_it(prompt, phrase, kind, label, new):
    assert offered(prompt, phrase)[kind][label] == new


def test_what_the_prompt_says_now_is_marked():
    colour, kind, place, *_ = choices("a red house on the left", "A red house on the left", 36)
    assert [option.label for each in (colour, kind, place) for option in each.options
            if option.now] == ["red", "house", "left"]
    assert [option.at for option in place.options] == [0.0, 0.5, 1.0]
    assert choices("a red house", "a dog", 36) == []


def test_a_postcard_of_fewer_words_offers_nothing():
    backbone = tiny_postcard(0, Grid(4, 4))
    backbone.word_ids = dict.fromkeys(WORDS, 3)
    assert backbone.choices("a red house") and backbone.choices("a red house", "a red house")
    del backbone.word_ids["mill"]
    assert backbone.choices("a red house") == backbone.choices("a red house", "a red house") == []


@pytest.mark.parametrize(("prompt", "phrase", "kind", "label", "new"), [
    ("a red car on a street, at night", "a red car on a street", "colour", "orange",
     "an orange car on a street, at night"),
    ("an old car on a street", "an old car on a street", "colour", "blue",
     "an old blue car on a street"),
    ("a fox, oil painting", "a fox", "remove", "remove", "oil painting"),
    ("a cat on the left, a dog", "a cat on the left", "place", "right",
     "a cat on the right, a dog"),
    ("a cat on the left", "a cat on the left", "another", "another one like it",
     "a cat on the left, another cat on the right"),
    ("a fox in the rain", None, "weather", "fog", "a fox in the fog"),
    ("a rainy street at sunset", None, "time", "night", "a rainy street at night"),
    ("a fox", None, "time", "dusk", "a fox, at dusk"),
    ("一只猫，夜晚", "一只猫", "colour", "红色", "一只红色的猫，夜晚"),
    ("一只白猫", "一只白猫", "another", "再来一个", "一只白猫，另一只白猫"),
    ("一只猫", None, "weather", "下雪", "一只猫，下雪"),
])
def test_models_for_any_words_are_offered_common_ones(prompt, phrase, kind, label, new):
    found = {each.kind: {option.label: option.prompt for option in each.options}
             for each in MockBackbone(Grid(4, 4)).choices(prompt, phrase)}
    assert found[kind][label] == new


def test_no_colour_is_offered_for_what_names_no_thing():
    backbone = MockBackbone(Grid(4, 4))
    for phrase in ("at night", "oil painting", "golden"):
        kinds = {each.kind for each in backbone.choices(f"a fox, {phrase}", phrase)}
        assert kinds - {"colour"} == {"remove"}
    assert backbone.choices("a fox", "a dog") == []


@pytest.mark.parametrize(("typed", "blue"), [
    ("the house is red", "the house is blue"),
    ("a house, red, by a road", "a house, blue, by a road"),
    ("a house, a red one", "a house, a blue one"),
    ("a red house", "a blue house")])
def test_a_colour_behind_its_thing_is_changed_where_it_stands(typed, blue):
    assert coloured(read(typed), 0, "blue") == blue
