"""The edits that edit.py measures: a caption of a fresh postcard, and one change to it.

The two captions differ in nothing else. Cases are numbered from 0 and always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ssd_core.backbones.postcard.words.captions import MAX_TOKENS, PLURAL, plain_parts
from ssd_core.backbones.postcard.words.spelling import length_of
from ssd_core.backbones.postcard.words.world import (
    COLOURS,
    GROUNDS,
    KINDS,
    PLACES,
    TIMES,
    WATER,
    has_light,
    paths_of,
    skies_of,
)
from ssd_lab.postcards import (
    SQUARE,
    Reading,
    Scene,
    SceneObject,
    is_valid,
    plain_caption,
    sample_scene,
)
from ssd_lab.postcards.objects import cells_of
from ssd_lab.train.data import HELD_OUT

CASES = HELD_OUT + 700_000  # the seed of all cases
MENTIONED = (2, 5)  # other parts of the scene that a caption names, at least and fewer than
STANDS = 16  # scenes that show where a thing may stand
REFLECTED = 5  # rows below a thing in which water shows it
T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """An edit of the scene `before` to the scene `after`, and both captions."""

    kind: str
    number: int
    old: str
    new: str
    before: Scene
    after: Scene

    @property
    def seed(self) -> int:
        """Of the picture before, and of the edit."""
        return 1000 + self.number

    @property
    def places(self) -> tuple[str, ...]:
        """The places whose thing changes."""
        changed = set(self.before.things) ^ set(self.after.things)
        return tuple(place for place in PLACES if any(t.place == place for t in changed))

    def done(self, reading: Reading) -> bool:
        """Whether a picture shows the change."""
        if self.kind in SCENES:
            return getattr(reading, SCENES[self.kind]) == getattr(self.after, SCENES[self.kind])
        wanted = {thing.place: (thing.kind, thing.colour) for thing in self.after.things}
        return all(reading.things.get(place) == wanted.get(place) for place in self.places)

    def stay(self, before: Reading, reading: Reading) -> float | None:
        """The share of the things beside the change that are still in place; None: there are none.

        before: of the picture as it was.
        """
        things = {place: thing for place, thing in before.things.items()
                  if place not in self.places}
        stand = [reading.things.get(place) == thing for place, thing in things.items()]
        return sum(stand) / len(stand) if stand else None

    def box(self) -> np.ndarray | None:
        """bool [rows, columns]: a rectangle around each changed thing, wherever it may stand, with
        a cell around it; in water also its reflection. None for a change of the scene.
        """
        if self.kind in SCENES:
            return None
        box = np.zeros((SQUARE.rows, SQUARE.columns), dtype=bool)
        for place in self.places:
            y, x = np.nonzero(self._covered(place))
            below = REFLECTED if self.before.ground in WATER else 1
            box[max(y.min() - 1, 0) : y.max() + 1 + below, max(x.min() - 1, 0) : x.max() + 2] = True
        return box

    def _covered(self, place: str) -> np.ndarray:
        """The cells that the things at a place, before and after, may cover."""
        covered = np.zeros((SQUARE.rows, SQUARE.columns), dtype=bool)
        for scene in (self.before, self.after):
            numbers = [n for n, thing in enumerate(scene.things) if thing.place == place]
            for jitter in range(STANDS):
                covered |= np.isin(cells_of(replace(scene, jitter=jitter)), numbers)
        return covered


def pick(rng: np.random.Generator, values: Sequence[T]) -> T:
    return values[int(rng.integers(len(values)))]


# Changes: a scene with one change, which may be impossible; None if there is nothing to change.


def with_things(scene: Scene, things: Sequence[SceneObject | None]) -> Scene:
    standing = [thing for thing in things if thing is not None]
    return replace(scene, things=tuple(sorted(standing, key=lambda t: PLACES.index(t.place))))


def replaced(scene: Scene, old: SceneObject, new: SceneObject | None) -> Scene:
    return with_things(scene, [new if thing == old else thing for thing in scene.things])


def one_thing(scene: Scene, rng: np.random.Generator) -> SceneObject:
    return pick(rng, scene.things)


def free_place(scene: Scene, rng: np.random.Generator) -> str | None:
    free = [p for p in PLACES if all(thing.place != p for thing in scene.things)]
    return pick(rng, free) if free else None


def recoloured(scene: Scene, rng: np.random.Generator) -> Scene:
    thing = one_thing(scene, rng)
    colour = pick(rng, COLOURS)
    return replaced(scene, thing, replace(thing, colour=colour))


def renamed(scene: Scene, rng: np.random.Generator) -> Scene | None:
    """Another kind of thing; a group instead of one of its kind would be no clear change."""
    thing, kind = one_thing(scene, rng), pick(rng, KINDS)
    if kind.rstrip("s") == thing.kind.rstrip("s") and {kind, thing.kind} & set(PLURAL):
        return None
    return replaced(scene, thing, replace(thing, kind=kind))


def added(scene: Scene, rng: np.random.Generator) -> Scene | None:
    place = free_place(scene, rng)
    if place is None:
        return None
    kind, colour = (pick(rng, values) for values in (KINDS, COLOURS))
    return with_things(scene, [*scene.things, SceneObject(kind, colour, place)])


def removed(scene: Scene, rng: np.random.Generator) -> Scene | None:
    return replaced(scene, one_thing(scene, rng), None) if len(scene.things) > 1 else None


def moved(scene: Scene, rng: np.random.Generator) -> Scene | None:
    thing, place = one_thing(scene, rng), free_place(scene, rng)
    return None if place is None else replaced(scene, thing, replace(thing, place=place))


def lit(scene: Scene, time: str, sky: str) -> Scene:
    """The scene at another time or in another weather, with the light that belongs to it."""
    shines = scene.light != "none" and has_light(sky)
    light = ("moon" if time == "night" else "sun") if shines else "none"
    return replace(scene, time=time, sky=sky, light=light,
                   light_place=scene.light_place if shines else "none")


def at_another_time(scene: Scene, rng: np.random.Generator) -> Scene:
    time = pick(rng, TIMES)
    skies = skies_of(time)
    return lit(scene, time, scene.sky if scene.sky in skies else skies[0])


def in_other_weather(scene: Scene, rng: np.random.Generator) -> Scene:
    skies = skies_of(scene.time)
    return lit(scene, scene.time, pick(rng, skies))


def on_other_ground(scene: Scene, rng: np.random.Generator) -> Scene:
    ground = pick(rng, GROUNDS)
    path = scene.path if scene.path in paths_of(ground) else "none"
    return replace(scene, ground=ground, path=path)


CHANGES: dict[str, Callable[[Scene, np.random.Generator], Scene | None]] = {
    "colour": recoloured, "kind": renamed, "add": added, "remove": removed, "move": moved,
    "weather": in_other_weather, "time": at_another_time, "ground": on_other_ground}
SCENES = {"weather": "sky", "time": "time", "ground": "ground"}  # attributes by kind of edit


def case_of(kind: str, number: int) -> Case:
    """Case `number` of a kind of edits; its captions are no longer than those of training."""
    rng = np.random.default_rng((CASES, list(CHANGES).index(kind), number))
    while True:
        before = sample_scene(rng)
        after = CHANGES[kind](before, rng)
        if after is None or after == before or not is_valid(after):
            continue
        names = named_parts(kind, before, after, rng)
        old, new = plain_caption(before, names), plain_caption(after, names)
        if max(map(length_of, (old, new))) <= MAX_TOKENS:
            return Case(kind, number, old, new, before, after)


def named_parts(kind: str, before: Scene, after: Scene, rng: np.random.Generator) -> list[str]:
    """The parts of the scene that both captions name."""
    old, new = plain_parts(before), plain_parts(after)
    same = [name for name, text in old.items() if new.get(name) == text]
    named = {same[int(n)] for n in rng.permutation(len(same))[: int(rng.integers(*MENTIONED))]}
    named |= {SCENES[kind]} if kind in SCENES else set()
    return [name for name in old if name in named]
