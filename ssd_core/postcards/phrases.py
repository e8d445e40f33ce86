"""The phrases of a prompt that name a thing: "a red house on the left"."""

from __future__ import annotations

from .spelling import _BEFORE_A_PLACE, Named, Reading, read

_VERBS = ("stands", "stand", "floats", "sails", "sail")


def phrases_of(prompt: str) -> list[str]:
    """Each thing's words as typed, with its colour and place."""
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
