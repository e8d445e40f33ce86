"""What a click on a postcard may choose: prompts in which one thing, or the scene, is another.

Each is written into the prompt and read again. It is offered if it then says what was meant, and
if the world has such a postcard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...prompts.choices import ANOTHER, REMOVE, Choices, Option
from ...prompts.choices import PLACES as PLACE_LABELS
from .captions import _COLOUR_WORDS, _NOUNS, PLURAL
from .content import Content, Member, content_of, faults
from .phrases import phrases_of
from .rewriting import (
    added,
    coloured,
    counted,
    doubled,
    is_complete,
    placed,
    renamed,
    shortened,
    stated,
    swapped_places,
    with_lamp,
    without_thing,
)
from .short_prompts import CHINESE
from .spelling import Reading, length_of, read
from .world import (
    COLOURS,
    GROUNDS,
    KINDS,
    PLACES,
    RIDGES,
    SKIES,
    TIMES,
    has_light,
    paths_of,
    skies_of,
)

_SCENE = {"ground": ("ground", GROUNDS), "behind": ("ridge", RIDGES), "weather": ("sky", SKIES),
          "time": ("time", TIMES)}
_RIDGE_LABELS = {"none": "flat horizon", "snowy": "snowy mountains"}
Change = tuple[Callable[[Reading], str | None], Content]  # what writes it, what it should say


@dataclass(frozen=True)
class Chooser:
    """Writes changes into a prompt.

    limit: the most words and marks of a result. complete: whether it says how many things it has.
    """

    reading: Reading
    content: Content
    limit: int
    complete: bool

    @classmethod
    def of(cls, prompt: str, limit: int) -> Chooser:
        reading = read(prompt)
        return cls(reading, content_of(reading), max(limit, length_of(prompt)),
                   is_complete(prompt))

    @property
    def chinese(self) -> bool:
        return self.reading.chinese

    def option(self, label: str, change: Change, at: float | None = None) -> Iterator[Option]:
        """The option, if the prompt can say it."""
        write, meant = change
        prompt = self.reading.prompt
        if meant == self.content:
            yield Option(label, prompt, True, at)
            return
        written = write(self.reading)
        if written is None or not (meant.things or meant.scene):
            return
        same = meant.number == self.content.number
        new = written if same else counted(written, self.complete)
        if length_of(new) > self.limit:
            new = shortened(new)
        found = read(new)
        if content_of(found) == meant and length_of(new) <= self.limit and (
                faults(found) <= faults(self.reading)):
            yield Option(label, new, False, at)

    # A thing

    def of_thing(self, n: int) -> Iterator[Choices]:
        """What the thing of this number may be."""
        yield Choices("colour", tuple(
            option for colour in COLOURS
            for option in self.option(self._say(_COLOUR_WORDS[colour][0], colour),
                                      self._changed(n, coloured, colour=colour))))
        yield Choices("kind", tuple(
            option for kind in KINDS
            for option in self.option(self._say(_NOUNS[kind][0], kind),
                                      self._changed(n, renamed, kind=kind))))
        yield Choices("place", tuple(
            option for place, (label, chinese, at) in zip(PLACES, PLACE_LABELS, strict=True)
            for option in self.option((label, chinese)[self.chinese], self._moved(n, place), at)))
        yield Choices("remove", tuple(self.option(REMOVE[self.chinese], self._removed(n))))
        another = (option for place in self._free(n)
                   for option in self.option(ANOTHER[self.chinese], self._doubled(n, place)))
        yield Choices("another", tuple(option for option in [next(another, None)] if option))

    def _say(self, english: str, value: str) -> str:
        return CHINESE[value][0] if self.chinese else english

    def _changed(self, n: int, write: Callable[[Reading, int, str], str | None],
                 **change: Any) -> Change:
        """A thing with another value, which `write` writes into a reading's prompt."""
        (value,) = change.values()
        return (lambda reading: write(reading, n, value),
                self.content.with_thing(n, replace(self.content.things[n], **change)))

    def _moved(self, n: int, place: str) -> Change:
        """A thing at another place; what stands there takes the old one."""
        things = self.content.things
        taken = [k for k, other in enumerate(things) if other.place == place and k != n]
        change = self._changed(n, placed, place=place)
        if not taken or things[n].place is None:
            return change
        k = taken[0]
        other = replace(things[k], place=things[n].place)
        return (lambda reading: swapped_places(reading, n, k),
                change[1].with_thing(k, other))

    def _removed(self, n: int) -> Change:
        return lambda reading: without_thing(reading, n), self.content.with_thing(n, None)

    def _free(self, n: int) -> list[str | None]:
        """Places for another thing like this one, the nearest first; None: none is named."""
        things = self.content.things
        own = things[n].place
        if own is None:
            return [None]
        taken = {thing.place for thing in things}
        free = [place for place in PLACES if place not in taken]
        near = sorted(free, key=lambda place: abs(PLACES.index(place) - PLACES.index(own)))
        return [*near, None]  # which takes fewer words

    def _doubled(self, n: int, place: str | None) -> Change:
        thing = self.content.things[n]
        if thing.count > 1:
            meant = self.content.with_thing(n, replace(thing, count=thing.count + 1))
        else:
            meant = self.content.with_more(replace(thing, place=place))
        return lambda reading: doubled(reading, n, place), meant

    # The scene

    def of_scene(self) -> Iterator[Choices]:
        taken = {thing.place for thing in self.content.things}
        free = [(place, at) for place, (*_, at) in zip(PLACES, PLACE_LABELS, strict=True)
                if place not in taken]
        yield Choices("add", tuple(
            option for kind in KINDS if kind not in PLURAL for place, at in free
            for option in self.option(self._say(_NOUNS[kind][0], kind),
                                      self._added(kind, place), at)))
        for kind, (attribute, values) in _SCENE.items():
            yield Choices(kind, tuple(
                option for value in values
                for option in self.option(self._say(self._label(attribute, value), value),
                                          self._restated(attribute, value))))

    def _added(self, kind: str, place: str) -> Change:
        return (lambda reading: added(reading, kind, place),
                self.content.with_more(Member(kind, None, place)))

    def _label(self, attribute: str, value: str) -> str:
        return _RIDGE_LABELS.get(value, value) if attribute == "ridge" else value

    def _restated(self, attribute: str, value: str) -> Change:
        """Another value of the scene, with what it brings: at night the moon shines."""
        changes = {attribute: value, **self._brought(attribute, value)}
        if self.content.scene.get(attribute) == value:
            changes = {}

        def write(reading: Reading) -> str | None:
            for name, new in changes.items():
                written = stated(reading, name, new) if name != "light" or new is None else (
                    with_lamp(reading, new))
                if written is None:
                    return None
                reading = read(written)
            return reading.prompt

        return write, self.content.with_scene(changes)

    def _brought(self, attribute: str, value: str) -> dict[str, str | None]:
        """What else changes with a value of the scene; None is left out."""
        scene = self.content.scene
        brought: dict[str, str | None] = {}
        if attribute == "time":
            if scene.get("sky", skies_of(value)[0]) not in skies_of(value):
                brought["sky"] = skies_of(value)[0]
            if scene.get("light") is not None:
                brought["light"] = "moon" if value == "night" else "sun"
        if attribute == "sky" and "light" in scene and not has_light(value):
            brought["light"] = None
        if attribute == "ground" and scene.get("path", "none") not in paths_of(value):
            brought["path"] = None
        return {name: new for name, new in brought.items() if scene.get(name) != new}


def choices(prompt: str, phrase: str | None, limit: int) -> list[Choices]:
    """See `PromptGuide.choices`. limit: the most words and marks of a prompt."""
    chooser = Chooser.of(prompt, limit)
    if phrase is None:
        return several(chooser.of_scene())
    phrases = [each.casefold() for each in phrases_of(prompt)]
    if phrase.casefold() not in phrases:
        return []
    return several(chooser.of_thing(phrases.index(phrase.casefold())))


def several(offered: Iterable[Choices]) -> list[Choices]:
    """Those in which there is something else than what the prompt says."""
    return [each for each in offered if not all(option.now for option in each.options)]
