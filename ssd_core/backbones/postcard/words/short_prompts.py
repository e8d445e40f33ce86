"""Prompts as people type them: one or two things, perhaps a colour and a word about the scene.

They leave the rest of the scene open, for expansion to fill in.
"""

from __future__ import annotations

import numpy as np

from .captions import _COLOUR_WORDS, _NOUNS, _PARTS, PLURAL
from .chinese import CHINESE, COMMA, SEVERAL
from .world import Scene, SceneObject, sample_scene

NAMED = ("ground", "time", "sky")  # a prompt names at most one of them


def short_prompt(rng: np.random.Generator, chinese: bool = False) -> str:
    """A short prompt for a new scene."""
    scene, coloured, also = sample_scene(rng), rng.random() < 0.8, rng.random()
    name = chinese_name if chinese else english_name
    things = [name(thing, coloured) for thing in scene.things[: 2 if also < 0.25 else 1]]
    link = "和" if chinese else " and "
    part = scene_part(scene, NAMED[rng.integers(len(NAMED))], chinese) if also > 0.5 else ""
    return link.join(things) + part


def english_name(thing: SceneObject, coloured: bool) -> str:
    words = [_COLOUR_WORDS[thing.colour][0]] * coloured + [_NOUNS[thing.kind][0]]
    vowel = words[0][0] in "aeiou"
    return " ".join(["some" if thing.kind in PLURAL else "an" if vowel else "a", *words])


def chinese_name(thing: SceneObject, coloured: bool) -> str:
    colour = f"{CHINESE[thing.colour][0]}的" if coloured else ""
    return colour + SEVERAL.get(thing.kind, CHINESE[thing.kind][0])


def scene_part(scene: Scene, attribute: str, chinese: bool) -> str:
    """A prompt's phrase for an attribute of the scene, with its separator."""
    value = getattr(scene, attribute)
    return COMMA + CHINESE[value][0] if chinese else " " + _PARTS[attribute, value][0]
