"""Prompts as captions say them: nothing that captions say is lost, and people's words are read."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssd_core.backbones.postcard.words.canonical import canonical
from ssd_core.backbones.postcard.words.captions import MAX_TOKENS, WORDS, fresh_caption
from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.backbones.postcard.words.phrases import limits
from ssd_core.backbones.postcard.words.world import scene_of
from ssd_core.weights.load import load_backbone
from ssd_lab.postcards import check, paint
from ssd_lab.postcards.claims import claims


@pytest.fixture(scope="module")
def postcard():
    return load_backbone("postcard")


SEEDS = st.integers(0, 1 << 30)


def said(caption: str) -> Counter:
    """What a caption claims, but for the number of things."""
    return Counter((claim.attribute, claim.value) for claim in claims(caption)
                   if claim.attribute != "count")


@given(SEEDS, st.integers(0, 50))
def test_it_claims_what_the_caption_claims(seed, draw):
    caption = fresh_caption(seed, draw)
    words = canonical(caption)
    assert said(" ".join(words)) == said(caption)
    assert len(words) <= MAX_TOKENS and set(words) <= set(WORDS)


def test_it_holds_in_the_painted_picture():
    held = [held for seed in range(24) for held in check(
        paint(scene_of(seed)), claims(" ".join(canonical(fresh_caption(seed, 0)))))]
    assert np.mean(held) > 0.97  # the checker is wrong about one in a hundred


@pytest.mark.parametrize(("prompt", "caption"), [
    ("castle, snow, mountains, starry night",
     "a castle , in the snow , bare mountains behind , under a starry sky , at night"),
    ("My grandma's house was blue", "a blue house"),
    ("a tower of red stone by the road", "a red tower , by a road"),
    ("castle red left, tower white right",
     "a red castle on the left and a white tower on the right"),
    ("a lighthouse, red as a poppy", "a red lighthouse"),
    ("a balloon, a purple one", "a lone purple balloon"),
    ("a house with a red roof next to a tree", "a house and a tree"),
    ("a house in green grass", "a house , on a meadow"),
    ("two towers, one red and one blue", "two things , a red tower and a blue tower"),
    ("a tower and a house, both white", "a white tower and a white house"),
    ("house by a stream, blue house", "a blue house , by a river"),
    ("a brick-red village church", "a red church"),
    ("tower, middle of the picture, forest", "a tower in the middle , a forest behind"),
    ("麦田里的红色风车", "a red windmill , in a field"),
    ("a red, a blue and a white boat", "three things , a red boat , a blue boat and a white boat"),
    ("two towers, a red and a blue one", "two things , a red tower and a blue tower"),
    ("three red and white boats", "three things , a red boat , a white boat and a white boat"),
    ("3 boats, red white and green", "three things , a red boat , a white boat and a green boat"),
    ("my white and red lighthouse by the sea", "a red lighthouse , on the sea"),
])
def test_people_are_understood(prompt, caption):
    assert " ".join(canonical(prompt)) == caption


@pytest.mark.parametrize(("prompt", "caption", "never"), [
    ("a bridge over a brook in a meadow", "a bridge , on a lake",
     ["“brook” in such a scene", "“meadow” in such a scene"]),
    ("a red boat on the beach", "a red boat , on the sea", ["“beach” in such a scene"]),
    ("a castle in the evening, the moon above", "a castle , under the moon , at night",
     ["“evening” in such a scene"]),
    ("a windmill in a field of flowers", "a windmill , on a meadow , among flowers",
     ["“field” in such a scene"]),
    ("a house in the rain under the sun", "a house , in the rain", ["“sun” in such a scene"]),
])
def test_a_scene_that_no_postcard_has_is_mended_and_told(prompt, caption, never):
    assert " ".join(canonical(prompt)) == caption
    assert limits(prompt) == never


@pytest.mark.parametrize("prompt", ["red", "mountains at dusk", "", "?"])
def test_a_prompt_without_things_keeps_its_words(postcard, prompt):
    assert not canonical(prompt)
    assert postcard.tokenize(prompt) == postcard.ids_of(postcard.known_words(prompt))


@given(SEEDS)
def test_nothing_in_a_caption_is_told_as_never_drawn(seed):
    assert limits(fresh_caption(seed, 0)) == []


@given(SEEDS)
def test_expanded_prompts_fit(seed):
    prompt = expand("two red towers and a boat by the sea at night, full moon", None, seed).prompt
    assert 0 < len(canonical(prompt)) <= MAX_TOKENS


def test_a_backbone_gets_the_caption_and_one_with_fewer_words_the_prompt(postcard, monkeypatch):
    typed = "castle, snow, mountains"
    assert postcard.tokenize(typed) == postcard.ids_of(canonical(typed))
    fewer = {word: n for word, n in postcard.word_ids.items() if word != "bare"}
    monkeypatch.setattr(postcard, "word_ids", fewer)
    assert postcard.tokenize(typed) == postcard.ids_of(postcard.known_words(typed))
