"""Things that no postcard shows are found, left out with what belongs to them, and said."""

import pytest

from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.backbones.postcard.words.phrases import limits
from ssd_core.backbones.postcard.words.unknown_objects import (
    names_nothing_known,
    unknown_objects,
    without_unknown_objects,
)
from ssd_core.output.chinese import in_chinese


@pytest.mark.parametrize("prompt, things, rest", [
    ("a dog on the beach", ["a dog"], "on the beach"),
    ("a dog running on the beach at sunset", ["a dog"], "on the beach at sunset"),
    ("two dogs and a house", ["two dogs"], "a house"),
    ("a house with a dog and two cats", ["a dog", "two cats"], "a house"),
    ("a train in a green valley", ["a train"], "in a green valley"),
    ("a dog next to a tree", ["a dog"], "a tree"),
    ("snowman in front of a house", ["snowman"], "a house"),
    ("the cabin my dad built next to the lake", ["my dad"], "the cabin next to the lake"),
    ("sunflowers, a windmill", ["sunflowers"], "a windmill"),
    ("一只可爱的小狗坐在沙滩上", ["一只可爱的小狗"], "在沙滩上"),
    ("老人和灯塔", ["老人"], "灯塔"),
    ("有彩虹的草地", ["彩虹"], "草地"),
    ("a house, no people", [], "a house, no people"),
    ("my grandma's little wooden cottage, highly detailed, 4k", [], None),
    ("a sunflower field in autumn", [], None), ("five red boats", [], None),
    ("古老的城堡", [], None), ("a stone bridge in the style of Monet", [], None)])
def test_an_unknown_thing_is_found_and_can_be_left_out(prompt, things, rest):
    assert [thing.typed for thing in unknown_objects(prompt)] == things
    assert without_unknown_objects(prompt) in (rest, prompt if rest is None else rest)
    assert expand(prompt, None, 3).left_out == tuple(things)


@pytest.mark.parametrize("prompt, nothing", [
    ("a dog", True), ("cat", True), ("asdf qwer", True), ("一只狗", True), ("hello", True),
    ("a dog at night", False), ("a beautiful landscape", False), ("something calm", False),
    ("a house", False), ("no trees", False), ("", False), ("a picture of a dog", True)])
def test_a_prompt_of_unknown_words_alone_is_known(prompt, nothing):
    assert names_nothing_known(prompt) == nothing


@pytest.mark.parametrize("prompt, said", [
    ("four houses", ["more than three things"]), ("500 trees", ["more than three things"]),
    ("hot air balloons", ["more than one balloon"]),
    ("a boat under the bridge", ["one thing “under” another"]),
    ("a snowman behind a house", []), ("a balloon over a castle", []),
    ("two trees to the left of the house", ["more than one thing in one place"]),
    ("at dawn and at night", ["both “dawn” and “night”"]),
    ("a snowy beach", ["both “snowy” and “beach”"]),
    ("two houses with a tree between them", []),
    ("a house by a hill", ["anything on a hill; hills are drawn behind it"])])
def test_what_no_postcard_shows_is_said_in_both_languages(prompt, said):
    assert limits(prompt) == said
    for limit in said:
        line = in_chinese(f"postcard never draws {limit}")
        assert line.startswith("postcard 从不画") and "more than" not in line
        assert "another" not in line and "both" not in line
