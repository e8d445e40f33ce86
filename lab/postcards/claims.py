"""Read the claims of a caption about a picture, word by word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ssd_core.backbones.postcard.words.captions import _MEANING

COUNTS = ("one", "two", "three", "four", "five")
_TOKEN = re.compile(r"snowy mountains|snowy peaks|autumn forest|autumn woods|[a-z]+|[.,]")
_BREAKS = (",", ".", "and")


@dataclass(frozen=True)
class Claim:
    """A statement of a caption.

    `attribute` is one of time, sky, light, light_place, ridge, ground, path, count, kind, colour
    and place; the last three are about the caption's thing number `thing`, the others about the
    scene.
    """

    attribute: str
    value: str
    thing: int | None = None


@dataclass
class _Reader:
    """Reads a caption word by word; a place belongs to the noun before it, else after it.

    meaning: the claim (attribute, value) of each word that has one.
    """

    meaning: Mapping[str, tuple[str, str]]
    scene: dict[tuple[str, str], None] = field(default_factory=dict)
    things: list[dict[str, str]] = field(default_factory=list)
    noun: str | int | None = None  # subject of the current part: "light" or a thing's number
    colour: str | None = None
    place: str | None = None

    def take(self, word: str) -> None:
        """Take in the next word or punctuation mark of a caption."""
        attribute, value = self.meaning.get(word, ("", ""))
        if word in _BREAKS:
            self.noun = self.colour = self.place = None
        elif attribute == "colour":
            self.colour = value
        elif attribute == "place":
            self._locate(value)
        elif attribute == "kind":
            self._name(value)
        elif attribute:
            self._state(attribute, value)

    def _locate(self, place: str) -> None:
        if self.noun is None:
            self.place = place
        elif self.noun == "light":
            self.scene["light_place", place] = None
        else:
            self.things[int(self.noun)].setdefault("place", place)

    def _name(self, kind: str) -> None:
        said = {"kind": kind, "colour": self.colour, "place": self.place}
        self.things.append({name: value for name, value in said.items() if value})
        self.noun, self.colour, self.place = len(self.things) - 1, None, None

    def _state(self, attribute: str, value: str) -> None:
        self.scene[attribute, value] = None
        if attribute == "light":
            self.noun, place, self.place = "light", self.place, None
            if place:
                self.scene["light_place", place] = None


def claims_by(meaning: Mapping[str, tuple[str, str]], caption: str) -> tuple[Claim, ...]:
    """The claims of a caption by a table of meanings: first those about the scene as a whole, then
    those about each of its things.
    """
    reader = _Reader(meaning)
    for word in _TOKEN.findall(caption.lower()):
        reader.take(word)
    on_things = [
        Claim(attribute, value, index)
        for index, thing in enumerate(reader.things)
        for attribute, value in thing.items()
    ]
    return (*(Claim(*pair) for pair in reader.scene), *on_things)


def claims(caption: str) -> tuple[Claim, ...]:
    """The claims of a caption: first those on the scene, then those on its things, in order.

    Unknown words are ignored. Things are numbered as they are mentioned.
    """
    return claims_by(_MEANING, caption)
