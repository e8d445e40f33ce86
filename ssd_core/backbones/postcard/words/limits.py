"""What a prompt asks for that no postcard shows, such as four things or one behind another."""

from __future__ import annotations

from itertools import pairwise

from .captions import _MEANING
from .filling import MOST, members_of
from .relations import relate
from .spelling import END, HINTS, Named, Reading, read
from .unknown_objects import known_part

_SINGLE = ("time", "sky", "ridge", "ground")  # a picture shows one value of each


def limits(prompt: str) -> list[str]:
    """Phrases for what a prompt asks for and no postcard shows, to follow "never draws"."""
    reading = read(known_part(prompt))
    return [*_numbers(reading), *(f"one thing “{word}” another"
                                  for word in relate(reading, sum(members_of(reading.things)))),
            *(f"both “{'” and “'.join(_typed(reading, name))}”" for name in _SINGLE
              if len(_typed(reading, name)) > 1)]


def _numbers(reading: Reading) -> list[str]:
    things = reading.things
    several = [thing for thing in things if thing.plural or thing.number not in (None, 1)]
    too_many = [thing for thing in things if (thing.number or 0) > MOST]
    asked = []
    if too_many or sum(members_of(things)) > MOST:
        asked.append("more than three things")
    if any(thing.kind == "balloon" for thing in several):
        asked.append("more than one balloon")
    if any(thing.place and _counted(thing) for thing in several):
        asked.append("more than one thing in one place")
    return asked


def _counted(thing: Named) -> bool:
    return thing.number not in (None, 1)


def _typed(reading: Reading, name: str) -> list[str]:
    """The words that name the values of an attribute, one for each."""
    typed: dict[str, str] = {}
    for word, after in pairwise([*reading.words, END]):
        attribute, value = _MEANING.get(f"{word.word} {after.word}") or word.meaning
        if not attribute and word.word in HINTS and after.word not in ("mountains", "peaks"):
            attribute, value = HINTS[word.word]
        if attribute == name:
            typed.setdefault(value, word.typed)
    return list(typed.values())
