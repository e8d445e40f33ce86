"""Hosts tell the words that were added from those that were typed."""

import pytest

from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.output.pieces import pieces, shown, word_lines
from ssd_core.output.words import Words

TYPED = ["a red house", "a house by a lake at night.", "An old windmill", "红色的房子", "house",
         "a lighthouse and a boat"]


@pytest.mark.parametrize("prompt", TYPED)
def test_what_was_typed_stays_unmarked_and_all_else_is_marked(prompt):
    drawn = expand(prompt, None, 3).prompt
    parts = pieces(prompt, drawn)
    assert "".join(text for text, _ in parts) == drawn
    typed = "".join(text for text, added in parts if not added)
    assert typed.split() == [word for word in prompt.split() if word in drawn.split()] or (
        typed == prompt)


def test_neighbours_are_joined():
    assert pieces("a red house", "a lone red house on the left") == [
        ("a", False), (" lone", True), (" red house", False), (" on the left", True)]


def test_a_batch_that_is_drawn_as_typed_has_nothing_to_show():
    typed = Words("a tent")
    assert shown(typed, [typed, typed]) == word_lines(typed, [typed, typed], [1, 2]) == []
    assert len(shown(typed, [typed, Words("a lone tent")])) == 2


def test_lines_name_the_seeds_where_the_words_differ_and_the_negative_where_it_changed():
    typed = Words("a tent, no trees")
    same = [Words("a lone tent", "trees")] * 2
    assert word_lines(typed, same, [1, 2]) == ["drawn from: a lone tent", "negative prompt: trees"]
    assert word_lines(typed, [Words("a tent"), Words("a lone tent")], [1, 2]) == [
        "seed 1 is drawn from: a tent", "seed 2 is drawn from: a lone tent"]
