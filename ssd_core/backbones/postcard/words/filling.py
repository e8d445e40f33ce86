"""Fill in a scene: the values that a prompt names, and likely ones for the rest.

Every chosen value is compatible with the typed ones and is not ruled out by the negative prompt.
The odds favour fair weather by day; rain, fog and night are rare.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import TypeVar

from .captions import PLURAL
from .everyday import AUTUMN, ON_TOP, SNOWING
from .spelling import Named, Reading, Word, single
from .world import (
    COLOURS,
    GROUNDS,
    ON_WATER,
    PLACES,
    WATER,
    colours_of,
    has_light,
    kinds_of,
    paths_of,
    skies_of,
)

Value = TypeVar("Value", bound=Hashable)
Odds = Mapping[Value, float]

TIME = {"day": 0.58, "dusk": 0.28, "dawn": 0.09, "night": 0.05}
SKY = {"day": {"clear": 0.55, "cloudy": 0.41, "rain": 0.02, "fog": 0.02},
       "night": {"starry": 0.7, "cloudy": 0.26, "rain": 0.02, "fog": 0.02}}
LIT = {"clear": 0.8, "starry": 0.8, "cloudy": 0.2}  # if the sun or the moon is visible
GROUND = {"meadow": 0.6, "field": 0.18, "sand": 0.12, "snow": 0.1}  # in water only if asked for
RIVERSIDE = {"meadow": 0.9, "field": 0.1}
AFLOAT = {"lake": 0.5, "sea": 0.5}
# For things that stand by the water as often as on land.
ASHORE = {"sea": 0.4, "lake": 0.25, "meadow": 0.2, "sand": 0.15}
RIDGE = {"hills": 0.35, "mountains": 0.2, "snowy": 0.15, "forest": 0.2, "none": 0.1}
OPEN_RIDGE = {"none": 0.3, "hills": 0.3, "mountains": 0.25, "snowy": 0.15}  # by water and on sand
# Ridges that hardly stand out: rock from an evening's sky, roofs from a forest, peaks from clouds.
FAINT = {("time", "dusk"): ("mountains", "forest"), ("time", "night"): ("mountains",),
         ("sky", "cloudy"): ("snowy",)}
LIGHT = {"none": 0.6, "sun": 0.4, "moon": 0.4}
KIND = {"house": 0.2, "tree": 0.12, "boat": 0.2, "lighthouse": 0.12, "castle": 0.08,
        "windmill": 0.1, "church": 0.08, "tower": 0.04, "tent": 0.06, "pine": 0.06,
        "balloon": 0.06, "bridge": 0.04}
COLOUR = {"red": 0.4, "blue": 0.3, "yellow": 0.2, "purple": 0.06, "pink": 0.04}
# The colours that kinds have in the world; the others have any.
USUAL: dict[str, Odds[str]] = {
    **{kind: {"red": 0.5, "white": 0.4, "yellow": 0.1} for kind in ("house", "houses")},
    **{kind: {"white": 0.7, "red": 0.3} for kind in ("church", "lighthouse")},
    **{kind: {"white": 0.75, "red": 0.25} for kind in ("castle", "tower", "windmill", "bridge")},
    **{kind: {"white": 0.35, "red": 0.35, "blue": 0.3} for kind in ("boat", "boats")},
    "tent": {"orange": 0.4, "green": 0.2, "blue": 0.2, "red": 0.2},
    **{kind: {"green": 1.0} for kind in ("tree", "trees", "pine")}}
FALL = {"orange": 0.6, "yellow": 0.4}  # of leaves in autumn
PALE = {"field": ("yellow",), "sand": ("yellow", "white"), "snow": ("white",)}  # hardly visible
_BETWEEN = ("between", "之间", "中间")
# Relations that no postcard shows, as typed. A balloon floats above everything else.
_UNSEEN = ("behind", "front", "under", "below", "beneath", "underneath", "inside", "atop", "top",
           "over", "above", "后面", "背后", "前面", "下面", "上面", "里面")
_OVER = ("over", "above", "under", "below", "beneath", "上面", "下面")
_CHINESE_UNSEEN = re.compile("(?:下|上|里|后|後|前)(?=有)")  # 桥下有一条船
_MARKS = re.compile("[,.;，。；、]")
MOST = 3  # things that have a place
# Words that no caption has, or not as a claim, and that rule values out.
_GREEN = ("spring", "springtime", "summer", "summertime", "summery", "autumn", "hot", "tropical",
          "palm", "flowers", "poppies", "wildflowers", "春天", "夏天", "秋天", "春", "夏", "秋")
_SUNNY = ("sunny", "sunshine", "sunlit", "sunlight", "阳光")
_CALM = ("calm", "peaceful", "serene", "tranquil", "still", "quiet", "平静", "宁静")
_GREY = ("grey sky", "gray sky", "grey skies", "overcast", "gloomy")
_FAR = ("behind", "far", "away", "before", "rolling")  # of a ridge as captions name it
_LIKE = ({"house", "houses"}, {"boat", "boats"}, {"tree", "trees", "pine"})
Pair = tuple[str, str]  # attribute and value
Scene = dict[str, str | None]


def ground_odds(kinds: tuple[str, ...], path: str = "none") -> Odds[str]:
    """Odds of the ground under these things: boats and bridges are on water."""
    if ON_WATER & set(kinds):
        return {"lake": 1.0} if path == "river" else AFLOAT
    if path == "river":
        return RIVERSIDE
    return ASHORE if "lighthouse" in kinds else GROUND


def ridge_odds(scene: Scene) -> Odds[str]:
    odds = OPEN_RIDGE if scene["ground"] in (*WATER, "sand") else RIDGE
    return rare(odds, lambda ridge: any(is_faint(ridge, name, scene[name])
                                        for name in ("time", "sky")))


def is_faint(ridge: str | None, name: str, value: str | None) -> bool:
    """Whether a ridge hardly stands out at a time or under a sky."""
    return ridge in FAINT.get((name, value or ""), ())


def rare(odds: Odds[str], hardly: Callable[[str], bool]) -> Odds[str]:
    """Odds that are low for values which hardly fit."""
    return {value: weight * (0.01 if hardly(value) else 1) for value, weight in odds.items()}


def sky_odds(time: str, lit: bool) -> Odds[str]:
    return LIT if lit else SKY["night" if time == "night" else "day"]


def colour_odds(kind: str, ground: str, autumn: bool = False) -> Odds[str]:
    """Odds of the usual colours of a kind, low if they hardly show on the ground.

    All others are left for prompts that rule the usual ones out.
    """
    leaves = autumn and kind in ("tree", "trees")
    odds = FALL if leaves else USUAL.get(kind, COLOUR)
    return {**dict.fromkeys(COLOURS, 1e-9),
            **rare(odds, lambda colour: colour in PALE.get(ground, ()))}


@dataclass(frozen=True)
class Die:
    """Throws that depend only on the seed, the salt and their name.

    Every value has its own random number, so that ruling out others does not change the result.
    """

    seed: int
    salt: str = ""

    def throw(self, name: str, odds: Odds[Value], allowed: Callable[[Value], bool]) -> Value | None:
        """An allowed value, None if there is none."""
        left = {value: self._delay(name, value) / weight for value, weight in odds.items()
                if allowed(value)}
        return min(left, key=left.__getitem__, default=None)

    def _delay(self, name: str, value: Hashable) -> float:
        """An exponential random number."""
        text = f"{self.seed}/{self.salt}/{name}/{value}".encode()
        number = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
        return -math.log((number + 1) / ((1 << 64) + 1))


def relate(reading: Reading, total: int) -> list[str]:
    """Apply the relations between a reading's things; returns the words of those not shown.

    total: the number of single things in the picture.
    """
    things, unseen = reading.things, []
    middle = _thing_between(reading)
    if middle is not None and total == 3 and not middle.place:
        middle.place_hint = "middle"
    elif middle is not None and len(things) > 1:
        unseen.append("between")
        for thing in things:
            thing.free = True
    for first, second in pairwise(things):
        if word := _unseen(reading, first, second):
            unseen.append(word)
            first.free = second.free = True
    return unseen


def _thing_between(reading: Reading) -> Named | None:
    """The thing that stands between the others."""
    things = reading.things
    at = next((word.start for word in reading.words if word.typed.lower() in _BETWEEN), None)
    if at is None or not things:
        return None
    before = [thing for thing in things if thing.end <= at]
    after = [thing for thing in things if thing.start >= at]
    if any(mark in reading.prompt for mark in ("中间", "之间")):  # 两棵树中间有一座房子
        return after[0] if before and after else None
    return before[-1] if before else None


def _unseen(reading: Reading, first: Named, second: Named) -> str:
    """The word of a relation between two neighbours that no postcard shows, else ""."""
    words = list(_between(reading, first, second))
    typed = [word.typed.lower() for word in words]
    if _MARKS.search(reading.prompt[first.end : second.start]) or "and" in typed:
        return ""
    if "balloon" in (first.kind, second.kind) and set(_OVER) & set(typed):
        return ""
    if typed[:1] and typed[0] in ("on", *ON_TOP) and not any(word.meaning[0] for word in words):
        return "on"
    chinese = _CHINESE_UNSEEN.match(reading.prompt[first.end : second.start])
    return chinese[0] if chinese else next((word for word in typed if word in _UNSEEN), "")


def _between(reading: Reading, first: Named, second: Named) -> Iterator[Word]:
    return (word for word in reading.words if first.end <= word.start < second.noun)


@dataclass
class Filled:
    """A filled-in scene.

    scene: a value for every attribute, None if nothing fits. members: the number of things of each
    thing in the prompt. kinds, places, colours: of all things in order; places is () if there are
    too many (`crowded`). invented: whether the prompt names no thing and the only one was chosen.
    """

    scene: dict[str, str | None]
    members: tuple[int, ...]
    kinds: tuple[str, ...]
    places: tuple[str, ...]
    colours: tuple[str | None, ...]
    invented: bool = False
    crowded: bool = False


def ruled_out(negative: Reading) -> set[Pair]:
    """The values that a negative prompt rules out, and those that people call by the same word."""
    pairs = {word.meaning for word in negative.words if word.word}
    pairs |= {(name, value) for name, values in negative.scene.items() for value in values}
    for like in _LIKE:
        if any(("kind", kind) in pairs for kind in like):
            pairs |= {("kind", kind) for kind in like}
    pairs |= {("ridge", "forest")} if {("kind", "tree"), ("kind", "trees")} & pairs else set()
    pairs |= {("ridge", "snowy")} if {("ridge", "mountains"), ("ground", "snow")} & pairs else set()
    return pairs


def implied(reading: Reading) -> set[Pair]:
    """The values that words rule out which are no claims themselves: "summer", "a green hill"."""
    typed = {word.typed.lower() for word in reading.words}
    pairs: set[Pair] = set()
    if typed & set(_GREEN) or _green_land(reading):
        pairs |= {("ground", "snow"), ("ridge", "snowy")}
    if typed & set(_SUNNY):
        pairs |= {("sky", "cloudy")}
    if "blue sky" in typed:
        pairs |= {("time", "dawn"), ("time", "dusk"), ("time", "night")}
    if typed & set(_CALM):
        pairs |= {("sky", "rain")}
    if typed & set(SNOWING):
        pairs |= {*(("sky", sky) for sky in ("clear", "starry", "rain", "fog")),
                  ("light", "sun"), ("light", "moon")}
    if "starry" in reading.scene.get("sky", ()):
        pairs |= {("light", "sun")}
    if typed & set(_GREY):
        pairs |= {("light", "sun")}
    afloat = {thing.kind for thing in reading.things} & ON_WATER
    if set(reading.scene.get("ridge", ["none"])) - {"none"} and not (
            typed & set(_FAR) or reading.chinese or afloat):
        pairs |= {("ground", ground) for ground in (*WATER, "sand")}
    return pairs


def _green_land(reading: Reading) -> bool:
    """Whether the colour green belongs to no thing: "a green valley"."""
    coloured = {thing.colour for thing in reading.things}
    return any(word.word == "green" for word in reading.words) and "green" not in coloured


def members_of(things: Sequence[Named]) -> tuple[int, ...]:
    """The number of things of each: "two houses" are two, "houses" one group.

    More than MOST in all count as one each: a picture has no place for them.
    """
    members = wanted_of(things)
    return members if sum(members) <= MOST else (1,) * len(members)


def wanted_of(things: Sequence[Named]) -> tuple[int, ...]:
    """As many of each as the prompt asks for, even if they are more than MOST in all."""
    members = tuple(_members(thing) for thing in things)
    if len(things) == 1 and things[0].many and things[0].kind not in (*PLURAL, "balloon"):
        return (MOST,)
    return members


def _members(thing: Named) -> int:
    if thing.place or thing.kind == "balloon":
        return 1
    if thing.number is None:
        return 2 if thing.plural and thing.kind not in PLURAL else 1
    if thing.number > MOST:  # as many as there can be
        return 1 if thing.kind in PLURAL else MOST
    return thing.number


def shades_of(thing: Named, count: int) -> list[str | None]:
    """The typed colours of a thing's members: "two towers, one red and one blue"."""
    if thing.colour or not thing.shades:
        return [thing.colour] * count
    return [thing.shades[min(n, len(thing.shades) - 1)] for n in range(count)]


class Filler:
    """Chooses one attribute after the other; each depends on the values chosen or typed before.

    invents: whether a prompt without a thing gets one.
    """

    def __init__(self, reading: Reading, out: set[Pair], seed: int, invents: bool = True) -> None:
        self.out, self.things = out | implied(reading), reading.things
        self.typed = {name: values[0] for name, values in reading.scene.items()}
        self.hints, self.light_place = reading.hints, reading.light_place
        self.autumn = any(word.typed.lower() in AUTUMN for word in reading.words)
        self.members = members_of(self.things)
        self.crowded = sum(wanted_of(self.things)) > MOST
        relate(reading, sum(self.members))
        self.kinds = tuple(single(thing.kind) if count > 1 else thing.kind for thing, count
                           in zip(self.things, self.members, strict=False) for _ in range(count))
        named = {"ground", "ridge", "path"} & set(reading.scene)  # such a scene needs no thing
        self.invented = not self.kinds and invents and not named
        if self.invented:
            self.members = (1,)
            kind = Die(seed).throw("kind", KIND, self._may_stand)
            self.kinds = (kind or "house",)
        self.die = Die(seed, " ".join(sorted(self.kinds)))

    def filled(self) -> Filled:
        scene: dict[str, str | None] = dict(self.typed)
        for name, choose in (("time", self._time), ("light", self._light), ("sky", self._sky),
                             ("ground", self._ground), ("ridge", self._ridge)):
            scene[name] = self.typed.get(name) or self._hinted(name) or choose(scene)
        return Filled(scene, self.members, self.kinds, self._places(), self._colours(scene),
                      self.invented, self.crowded)

    def _hinted(self, name: str) -> str | None:
        """The hinted value of an attribute, if it is compatible with the typed ones."""
        value = self.hints.get(name)
        fits = name != "ground" or (value in self._allowed_grounds() and all(
            kind in kinds_of(value or "") for kind in self.kinds))
        return value if value and fits and self._allowed(name, value) else None

    def _allowed(self, attribute: str, value: str) -> bool:
        return (attribute, value) not in self.out

    def _may_stand(self, kind: str) -> bool:
        ground = self.typed.get("ground")
        grounds = [ground] if ground else self._allowed_grounds()
        return (self._allowed("kind", kind) and (kind != "boat" or ground in (None, *WATER))
                and any(kind in kinds_of(choice) for choice in grounds))

    def _allowed_grounds(self, follow_path: bool = True) -> list[str]:
        path = self.typed.get("path", "none") if follow_path else "none"
        return [ground for ground in GROUNDS if path in paths_of(ground)
                and self._allowed("ground", ground)]

    def _time(self, scene: Scene) -> str | None:
        def fits(time: str) -> bool:
            lamp = {"sun": time != "night", "moon": time == "night"}
            return (self._allowed("time", time) and lamp.get(self.typed.get("light", ""), True)
                    and self.typed.get("sky", skies_of(time)[0]) in skies_of(time))

        odds = rare(TIME, lambda time: is_faint(scene.get("ridge"), "time", time))
        return self.die.throw("time", odds, fits)

    def _sky(self, scene: Scene) -> str | None:
        time, lit = scene["time"] or "day", scene["light"] not in (None, "none")
        snowy = scene.get("ground") == "snow"
        odds = rare(sky_odds(time, lit), lambda sky: (
            is_faint(scene.get("ridge"), "sky", sky) or (snowy and sky == "rain")))
        return self.die.throw("sky", odds, lambda sky: self._allowed("sky", sky)
                              and sky in skies_of(time) and (has_light(sky) or not lit))

    def _ground(self, scene: Scene) -> str | None:
        """A ground on which as many of the things as possible may stand."""
        on_land = not ON_WATER & set(self.kinds)  # for a bridge the river leaves
        grounds, odds = self._allowed_grounds(follow_path=on_land), ground_odds(
            self.kinds, self.typed.get("path", "none"))
        white = any("white" in (thing.colour, thing.colour_hint) for thing in self.things)

        def carried(ground: str) -> int:
            return sum(kind in kinds_of(ground) for kind in self.kinds)

        most = max(map(carried, grounds), default=0)
        return self.die.throw("ground", odds, lambda ground: ground in grounds and not (
            white and ground == "snow") and carried(ground) == most) or self.die.throw(
                "ground", dict.fromkeys(GROUNDS, 1.0),
                lambda ground: ground in grounds and carried(ground) == most)

    def _ridge(self, scene: Scene) -> str | None:
        return self.die.throw("ridge", ridge_odds(scene),
                              lambda ridge: self._allowed("ridge", ridge))

    def _light(self, scene: Scene) -> str | None:
        lamp = "moon" if scene["time"] == "night" else "sun"
        seen = has_light(self.typed.get("sky", "clear"))
        return self.die.throw("light", LIGHT, lambda light: light == "none" or (
            seen and light == lamp and self._allowed("light", light)))

    def _said(self, name: str) -> list[str | None]:
        """The typed value of an attribute for every thing, in order."""
        said = [getattr(thing, name) for thing, count
                in zip(self.things, self.members, strict=False) for _ in range(count)]
        return said or [None] * self.invented

    def _places(self) -> tuple[str, ...]:
        """The places of all things in order; the members of a thing stand from left to right."""
        total = len(self.kinds)
        if self.crowded or not total:
            return ()
        wanted = [place or hint for place, hint in zip(self._said("place"),
                                                       self._said("place_hint"), strict=True)]
        odds = {order: 1e-9 if total == 2 and "middle" in order else 1.0
                for order in permutations(PLACES, total) if _rising(order, self.members)}

        def fits(order: tuple[str, ...]) -> bool:
            return all(want == place or (want is None and self._may_float(kind, place)
                                         and self._allowed("place", place))
                       for want, place, kind in zip(wanted, order, self.kinds, strict=True))

        return self.die.throw("places", odds, fits) or ()

    def _may_float(self, kind: str, place: str) -> bool:
        """Whether a thing at a place leaves the typed place of the sun or the moon free."""
        return kind != "balloon" or place != self.light_place

    def _colours(self, scene: Scene) -> tuple[str | None, ...]:
        """The colours of all things; members of a thing look alike unless typed otherwise."""
        colours: list[str | None] = []
        for n, colour in enumerate(self._shades()):
            twin = n not in firsts(self.members)
            colours.append(colour or (colours[-1] if twin else self._colour(n, scene)))
        return tuple(colours)

    def _shades(self) -> list[str | None]:
        """The typed colour of every thing, in order."""
        return [shade for thing, count in zip(self.things, self.members, strict=False)
                for shade in shades_of(thing, count)] or [None] * self.invented

    def _colour(self, n: int, scene: Scene) -> str | None:
        kind, ground = self.kinds[n], scene["ground"] or "meadow"
        hint = self._said("colour_hint")[n]
        if hint and self._allowed("colour", hint) and hint in colours_of(kind, ground):
            return hint
        odds = colour_odds(kind, ground, self.autumn)
        return self.die.throw(f"colour {n}", odds, lambda colour: (
            self._allowed("colour", colour) and colour in colours_of(kind, ground)))


def firsts(members: Sequence[int]) -> list[int]:
    """The index of the first member of each thing."""
    return [sum(members[:n]) for n in range(len(members))]


def _rising(order: Sequence[str], members: Sequence[int]) -> bool:
    first = 0
    for count in members:
        columns = [PLACES.index(place) for place in order[first : first + count]]
        if columns != sorted(columns):
            return False
        first += count
    return True
