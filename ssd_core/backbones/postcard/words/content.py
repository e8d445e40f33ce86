"""What a prompt says of a postcard, to compare prompts by; and what in it no postcard has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .captions import PLURAL
from .filling import MOST, wanted_of
from .spelling import Reading, single
from .world import GROUNDS, PLACES, colours_of, has_light, kinds_of, paths_of, skies_of


@dataclass(frozen=True)
class Member:
    """A thing, or so many that look the same. colour, place: None if they are left open."""

    kind: str
    colour: str | None
    place: str | None
    count: int = 1


@dataclass(frozen=True, eq=False)
class Content:
    """The first value of each attribute that a prompt names, and its things in order.

    lamp_at: the place of the sun or the moon. Contents in another order are equal.
    """

    scene: Mapping[str, str]
    things: tuple[Member, ...]
    lamp_at: str | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Content) and self._key == other._key

    __hash__ = None  # type: ignore[assignment]

    @property
    def _key(self) -> tuple:
        return dict(self.scene), Counter(self.things), self.lamp_at

    @property
    def number(self) -> tuple[int, bool]:
        """The number of things, and whether there is a group among them."""
        return (sum(thing.count for thing in self.things),
                any(thing.kind in PLURAL for thing in self.things))

    def with_thing(self, n: int, thing: Member | None) -> Content:
        """With another thing of this number, or without it."""
        new = () if thing is None else (thing,)
        return replace(self, things=(*self.things[:n], *new, *self.things[n + 1 :]))

    def with_more(self, thing: Member) -> Content:
        return replace(self, things=(*self.things, thing))

    def with_scene(self, changes: Mapping[str, str | None]) -> Content:
        """With other values; None leaves an attribute out."""
        scene = {name: value for name, value in {**self.scene, **changes}.items()
                 if value is not None}
        return replace(self, scene=scene, lamp_at=self.lamp_at if "light" in scene else None)


def content_of(reading: Reading) -> Content:
    members = wanted_of(reading.things)
    things = tuple(Member(single(thing.kind) if count > 1 else thing.kind, thing.colour,
                          thing.place, count)
                   for thing, count in zip(reading.things, members, strict=True))
    scene = {name: values[0] for name, values in reading.scene.items() if name != "count"}
    return Content(scene, things, reading.light_place if "light" in scene else None)


def faults(reading: Reading) -> set[str]:
    """What no postcard has of what a prompt says; see `world.is_valid`."""
    content = content_of(reading)
    return {*_crowding(content), *_ground_faults(content), *_sky_faults(content),
            *(f"{name} twice" for name, values in reading.scene.items()
              if name != "count" and len(values) > 1)}


def _crowding(content: Content) -> Iterator[str]:
    places = [thing.place for thing in content.things if thing.place]
    if sum(thing.count for thing in content.things) > MOST:
        yield "too many things"
    if sum(thing.count for thing in content.things if thing.kind == "balloon") > 1:
        yield "two balloons"
    yield from (f"two things at {place}" for place in PLACES if places.count(place) > 1)
    yield from (f"many at {thing.place}" for thing in content.things
                if thing.place and thing.count > 1)
    if any(thing.kind == "balloon" and thing.place and thing.place == content.lamp_at
           for thing in content.things):
        yield "a balloon before a light"


def _ground_faults(content: Content) -> Iterator[str]:
    """Where no ground is named, the one counts on which the fewest are wrong."""
    grounds = (content.scene["ground"],) if "ground" in content.scene else GROUNDS
    yield from min((list(_wrong_on(ground, content)) for ground in grounds), key=len)


def _wrong_on(ground: str, content: Content) -> Iterator[str]:
    if content.scene.get("path", "none") not in paths_of(ground):
        yield f"{content.scene['path']} on {ground}"
    for thing in content.things:
        if thing.kind not in kinds_of(ground):
            yield f"{thing.kind} on {ground}"
        if thing.colour and thing.colour not in colours_of(thing.kind, ground):
            yield f"{thing.colour} {thing.kind} on {ground}"


def _sky_faults(content: Content) -> Iterator[str]:
    time, sky, light = (content.scene.get(name) for name in ("time", "sky", "light"))
    if time and sky and sky not in skies_of(time):
        yield f"{sky} {time}"
    if sky and light and not has_light(sky):
        yield f"{light} in {sky}"
    if time and light and light != ("moon" if time == "night" else "sun"):
        yield f"{light} at {time}"
