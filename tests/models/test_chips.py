"""Words that are offered as chips: all are known, and mean the same in both languages."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ssd_core.backbones.postcard.words.aliases import said, without_repeats
from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.backbones.postcard.words.short_prompts import (
    KINDS,
    fresh_chinese_prompt,
    scene_values,
    short_prompt,
)
from ssd_core.backbones.postcard.words.world import COLOURS, GROUNDS, PLACES, SKIES, TIMES
from ssd_core.backbones.postcard.words.world import KINDS as THINGS
from ssd_lab.postcards import WORDS, fresh_prompt, sample_scene
from ssd_lab.postcards.claims import claims

OFFERED = [(kind, chip) for kind in KINDS for chip in kind.chips]


def understood(phrase):
    pieces = said(phrase)
    assert all(piece.words is not None for piece in pieces), phrase
    return " ".join(without_repeats(word for piece in pieces for word in piece.words))


def told(kind, phrase):
    """What a phrase claims, beside a thing if it needs one."""
    return claims({"colour": f"a {phrase} house", "place": f"a house {phrase}"}.get(
        kind.role, phrase))


def test_every_phrase_is_known_and_its_chinese_claims_the_same():
    for kind, chip in OFFERED:
        for phrase in chip.english:
            assert set(phrase.split()) <= set(WORDS)
        meant = told(kind, chip.english[0])
        assert chip.attribute in {claim.attribute for claim in meant}
        assert {told(kind, understood(one)) for one in chip.chinese} == {meant}, chip.chinese


def test_the_whole_world_can_be_clicked():
    offered = {(claim.attribute, claim.value) for kind, chip in OFFERED
               for claim in told(kind, chip.english[0])}
    for attribute, values in (("kind", THINGS), ("colour", COLOURS), ("place", PLACES),
                              ("ground", GROUNDS), ("sky", SKIES), ("time", TIMES)):
        assert {value for name, value in offered if name == attribute} == set(values)


def test_a_prompt_of_chinese_chips_is_understood_in_their_order():
    prompt = understood("红色的房子在左边，黄色的小船在右边，湖上，日落")
    assert prompt == "red house on the left , yellow boat on the right , on a lake , at sunset ,"


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_short_prompt_says_a_few_words_of_a_scene_and_leaves_the_rest_open(seed, chinese):
    prompt = short_prompt(np.random.default_rng(seed), chinese)
    scene = sample_scene(np.random.default_rng(seed))
    meant = claims(understood(prompt))
    assert all(mark.isascii() is not chinese for mark in prompt if mark != " ")
    assert {claim.value for claim in meant if claim.thing is None} <= set(scene_values(scene))
    of_things = {value for thing in scene.things for value in (thing.kind, thing.colour)}
    assert {claim.value for claim in meant if claim.thing is not None} <= of_things
    assert 1 <= len(meant) <= 5 and not any(claim.attribute == "place" for claim in meant)
    assert len(expand(prompt, None, 0).added) >= 3


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_fresh_prompt_is_understood_and_says_only_what_a_scene_has(seed, chinese):
    write = fresh_chinese_prompt if chinese else fresh_prompt
    prompt = write(np.random.default_rng(seed))
    scene = sample_scene(np.random.default_rng(seed))
    meant = claims(understood(prompt))
    assert all(mark.isascii() is not chinese for mark in prompt)
    assert {claim.value for claim in meant if claim.thing is None} <= set(scene_values(scene))
    things = [tuple(claim.value for claim in meant if claim.thing == n)
              for n in range(len(scene.things))]
    assert [set(one) for one in things] == [{thing.kind, thing.colour, thing.place}
                                            for thing in scene.things]
    assert 2 <= len(meant) - 3 * len(scene.things) <= 4
