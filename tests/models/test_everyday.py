"""Everyday words: what a person means by them is drawn, or what is drawn instead is said."""

from __future__ import annotations

import pytest

from ssd_core.backbones.postcard.words.aliases import nearest, said
from ssd_core.backbones.postcard.words.canonical import canonical
from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.backbones.postcard.words.phrases import limits
from ssd_core.output.chinese import in_chinese

SEEDS = range(40)


def drawn(prompt: str, seed: int = 0) -> str:
    return " ".join(canonical(expand(prompt, None, seed).prompt))


@pytest.mark.parametrize("prompt", [
    "a red house by a lake", "a tent beside the calm blue pond", "a cabin at the lake, at night",
    "two trees next to a lake", "a house on the shore of a lake", "a lake house", "湖边的房子",
    "a church by the sea", "a tent on the beach", "海滩上的帐篷"])
def test_by_the_water_is_its_shore(prompt):
    assert any(limit.startswith("the shore of a") for limit in limits(prompt))
    for seed in SEEDS:
        words = drawn(prompt, seed)
        assert "by a river" in words and "lake" not in words and "sea" not in words


@pytest.mark.parametrize(("prompt", "water"), [
    ("a house on a lake", "on a lake"), ("a boat by the lake", "on a lake"),
    ("a boat at sea", "on the sea"), ("a lighthouse at sea", "on the sea"),
    ("a red house on the left, a lake, at sunset", "on a lake")])
def test_on_the_water_stays_there(prompt, water):
    assert water in drawn(prompt) and not limits(prompt)


@pytest.mark.parametrize("prompt", ["a house, snow falling", "a house in a blizzard"])
def test_falling_snow_is_weather(prompt):
    assert limits(prompt) == ["falling snow; snow on the ground is drawn instead"]
    assert all("in the snow" in drawn(prompt, seed) and "cloudy sky" in drawn(prompt, seed)
               for seed in SEEDS)


@pytest.mark.parametrize(("prompt", "colours"), [
    ("a tree", {"green"}), ("three pines under a full moon", {"green"}),
    ("a big oak tree in autumn", {"orange", "yellow"}), ("秋天的一棵大树", {"orange", "yellow"}),
    ("a wooden cabin", {"red"}), ("a cabin", {"red"}), ("a brick house", {"red"}),
    ("a stone bridge", {"white"}), ("a house", {"red", "white", "yellow"}),
    ("a church", {"white", "red"}), ("a lighthouse", {"white", "red"}), ("a pink tree", {"pink"})])
def test_a_colour_is_one_that_the_thing_has_in_the_world(prompt, colours):
    every = {"red", "orange", "yellow", "green", "blue", "purple", "pink", "white"}
    assert {word for seed in SEEDS for word in drawn(prompt, seed).split() if word in every} == (
        colours)


def test_materials_and_autumn_are_known_where_they_colour_a_thing():
    def unknown(prompt: str) -> list[str]:
        return [piece.typed for piece in said(prompt) if piece.words is None]
    assert not unknown("a wooden house and a stone church beside some autumn trees")
    assert unknown("a stone in autumn") == ["stone", "autumn"]


@pytest.mark.parametrize("prompt, colours", [
    ("a row of colourful houses", "red yellow blue"), ("two colourful boats", "red yellow"),
    ("colorful trees", "red orange yellow")])
def test_colourful_things_have_a_colour_each(prompt, colours):
    words = drawn(prompt).split()
    assert [word for word in words if word in "red orange yellow blue".split()] == colours.split()


@pytest.mark.parametrize(("prompt", "said"), [
    ("a lighthouse on a cliff", "cliffs; rocky mountains are drawn instead"),
    ("a castle on top of a hill", "anything on a hill; hills are drawn behind it"),
    ("a house in a valley", "a valley; hills are drawn behind"),
    ("a tree on top of a house", "one thing “on” another")])
def test_what_is_drawn_instead_is_said(prompt, said):
    assert limits(prompt) == [said]
    assert in_chinese(f"postcard never draws {said}").isascii() is False


@pytest.mark.parametrize(("word", "near"), [
    ("falling", None), ("during", None), ("own", None), ("words", None), ("goat", None),
    ("mountin", "mountain"), ("skyy", "sky"), ("castel", "castle"), ("hosue", "house")])
def test_only_for_a_slip_of_the_hand_a_near_word_is_offered(word, near):
    assert nearest(word) == near
