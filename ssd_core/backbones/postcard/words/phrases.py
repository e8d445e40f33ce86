"""Phrases of a prompt: those that name a thing, and those that contradict typed words."""

from __future__ import annotations

import re

from .spelling import _BEFORE_A_PLACE, Named, Reading, read

_VERBS = ("stands", "stand", "floats", "sails", "sail")
_SINGLE = ("time", "sky", "ridge", "ground", "light")  # a picture shows one value of each


def phrases_of(prompt: str) -> list[str]:
    """Each thing's words as typed, with its colour and place: "a red house on the left"."""
    reading = read(prompt)
    return [prompt[min(thing.front, thing.start) : _end(reading, thing)]
            for thing in reading.things]


def _end(reading: Reading, thing: Named) -> int:
    """Where the phrase ends: behind its noun, or behind the place after it."""
    for word in reading.words:
        if word.start < thing.end:
            continue
        if word.meaning[0] == "place":
            return word.end
        if word.word not in (*_BEFORE_A_PLACE, *_VERBS):
            break
    return thing.end


def without_contradictions(prompt: str, typed: str) -> str:
    """The prompt without parts between marks that name another time, sky, ... than typed words."""
    said = read(typed).scene
    return ", ".join(part for part in map(str.strip, re.split("[,.，。]", prompt))
                     if part and (part in typed or not _contradicts(read(part), said)))


def _contradicts(part: Reading, said: dict[str, list[str]]) -> bool:
    other = any(set(said[name]) != set(part.scene[name]) for name in _SINGLE
                if name in said and name in part.scene)
    return other and not part.things
