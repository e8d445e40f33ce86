"""A prompt as captions say it: its things, then the parts of the scene, in the plainest words.

A backbone learns from captions, and follows a prompt in their form more often than the same wishes
joined as people type them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .captions import (
    _COLOUR_WORDS,
    _LIGHT_ALONE,
    _LIGHT_PARTS,
    _MANY,
    _NOUNS,
    _OMITTED_FIRST,
    _ORDER,
    _PARTS,
    _PLACE_WORDS,
    _SKY_ADJECTIVES,
    _TIME_NOUNS,
    MAX_TOKENS,
    PLURAL,
)
from .filling import members_of, shades_of
from .spelling import Reading, read, single
from .world import ON_WATER, WATER, has_light, kinds_of, paths_of

Parts = Mapping[str, str]
SHORT = -1  # of the words for a place: "at left"


def canonical(prompt: str) -> list[str]:
    """The words of the caption that says the same, at most MAX_TOKENS; none without a thing."""
    reading = read(prompt)
    captions = (written(reading, *form) for form in forms(reading)) if reading.things else ()
    return next((words for words in captions if len(words) <= MAX_TOKENS), [])


def forms(reading: Reading) -> Iterator[tuple[int, bool, Parts]]:
    """Ever shorter forms: number of the words for places, whether things are counted, and parts."""
    yield 0, True, parts_of(reading, 0)
    left: Parts = parts_of(reading, SHORT)
    yield SHORT, True, left
    yield SHORT, False, left
    left = with_sky_and_time(left, reading)
    yield SHORT, False, left
    for name in _OMITTED_FIRST:
        left = {other: text for other, text in left.items() if other != name}
        yield SHORT, False, left


def written(reading: Reading, place: int, counted: bool, parts: Parts) -> list[str]:
    """The words of a caption; see `forms`."""
    things = list(things_of(reading, place))
    counted = counted and has_number(reading) and len(things) in _MANY
    if counted and not any(text.startswith("some") for text in things):
        things[0] = f"{_MANY[len(things)][0]} {things[0]}"
    joint = " , ".join(things[:-1])
    together = f"{joint} and {things[-1]}" if joint else things[-1]
    return " , ".join((together, *parts.values())).split()


def things_of(reading: Reading, place: int) -> Iterator[str]:
    """Each single thing, or group: "an orange tent on the left"."""
    members = members_of(reading.things)
    alone = sum(members) == 1 and has_number(reading)
    for thing, count in zip(reading.things, members, strict=True):
        kind = single(thing.kind) if count > 1 else thing.kind
        at = thing.place or thing.place_hint
        for colour in shades_of(thing, count):
            noun = f"{_COLOUR_WORDS[colour][0]} {_NOUNS[kind][0]}" if colour else _NOUNS[kind][0]
            article = ("some" if kind in PLURAL else "a lone" if alone
                       else "an" if noun[0] in "aeiou" else "a")
            yield f"{article} {noun} {_PLACE_WORDS[at][place] if at else ''}"


def has_number(reading: Reading) -> bool:
    """Whether it says how many things there are: "a lone house", "two things"."""
    return "count" in reading.scene or any(thing.number for thing in reading.things)


def parts_of(reading: Reading, place: int) -> dict[str, str]:
    """The words for each attribute of the scene that is named or hinted at, in their order."""
    lamp_at = reading.light_place and _PLACE_WORDS[reading.light_place][place]
    scene = shown_scene(reading)
    return {name: _part(name, scene[name], lamp_at) for name in _ORDER if name in scene}


def _part(name: str, value: str, lamp_at: str | None) -> str:
    if name != "light":
        return _PARTS[name, value][0]
    return (_LIGHT_PARTS[0] if lamp_at else _LIGHT_ALONE[0]).format(light=value, place=lamp_at)


def with_sky_and_time(parts: Parts, reading: Reading) -> Parts:
    """With "a clear dawn" for the sky and the time of day, if both are named."""
    if not {"sky", "time"} <= set(parts):
        return parts
    scene = shown_scene(reading)
    both = f"a {_SKY_ADJECTIVES.get(scene['sky'], scene['sky'])} {_TIME_NOUNS[scene['time']]}"
    return {name: both if name == "sky" else text for name, text in parts.items()
            if name != "time"}


# What a postcard can show


def shown_scene(reading: Reading) -> dict[str, str]:
    """The values that are named or hinted at, one for each attribute, as one postcard has them.

    Things stay: a bridge brings water along, and a river leaves. The moon brings the night along.
    """
    scene = {**reading.hints, **{name: values[0] for name, values in reading.scene.items()}}
    if ground := _ground(reading, scene.get("path")):
        scene["ground"] = ground
    if scene.get("path", "none") not in paths_of(scene.get("ground", "meadow")):
        del scene["path"]
    if "time" in scene and (scene.get("light") == "moon" or scene.get("sky") == "starry"):
        scene["time"] = "night"
    if (scene.get("time"), scene.get("sky")) == ("night", "clear"):
        scene["sky"] = "starry"
    if not has_light(scene.get("sky", "clear")) or (
            (scene.get("time"), scene.get("light")) == ("night", "sun")):
        scene.pop("light", None)
    return scene


def _ground(reading: Reading, path: str | None) -> str | None:
    """The first ground named that carries all things, or any named; water for boats and bridges."""
    kinds = {thing.kind for thing in reading.things}
    hinted = [value for name, value in reading.hints.items() if name == "ground"]
    named = reading.scene.get("ground") or hinted
    if ON_WATER & kinds and not set(WATER) & set(named):
        return "sea" if named == ["sand"] else "lake" if named or path else None
    if named == ["field"] and path == "flowers":
        return "meadow"
    carrying = [ground for ground in named if kinds <= {*kinds_of(ground)}]
    return next(iter(carrying or named), None)
