"""The closed world of the postcards: what a scene may hold, its palettes, and how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIZE = 192  # side of a picture, px
LATTICE = 8  # all jitter moves by whole token cells of 8 px, so that patches repeat exactly
HORIZON = 112  # row where the ground starts, px
BASELINE = 150  # row on which things stand, px

TIMES = ("dawn", "day", "dusk", "night")
SKIES = ("clear", "cloudy", "starry")
LIGHTS = ("none", "sun", "moon")
RIDGES = ("none", "hills", "mountains", "snowy")
GROUNDS = ("meadow", "sand", "snow", "lake")
KINDS = ("house", "tree", "tower", "tent", "windmill", "boat", "balloon")
COLOURS = ("red", "yellow", "white", "blue", "purple")
PLACES = ("left", "middle", "right")

PLACE_X = {"left": 32, "middle": 96, "right": 160}  # column centres, px
LIGHT_Y = 32  # centre row of the sun or moon, px
LIGHT_RADIUS = 12  # px

RGB = tuple[int, int, int]

# Sky colours at the top, the middle and the horizon.
SKY: dict[str, tuple[RGB, RGB, RGB]] = {
    "dawn": ((146, 168, 222), (240, 196, 204), (255, 214, 160)),
    "day": ((62, 134, 218), (128, 188, 238), (190, 224, 244)),
    "dusk": ((98, 74, 142), (226, 122, 122), (255, 188, 112)),
    "night": ((14, 20, 54), (32, 44, 92), (70, 86, 142)),
}
# Cloud colours: lit top, shaded belly.
CLOUD: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((255, 246, 238), (246, 222, 220)),
    "day": ((252, 253, 255), (216, 230, 244)),
    "dusk": ((255, 206, 178), (240, 164, 156)),
    "night": ((98, 110, 154), (68, 80, 124)),
}
LIGHT: dict[str, RGB] = {
    "dawn": (255, 230, 134),
    "day": (255, 226, 92),
    "dusk": (255, 214, 104),
    "night": (246, 243, 222),
}
# Ridge colours: far layer, near layer.
HILL: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((184, 178, 168), (142, 158, 130)),
    "day": ((128, 178, 158), (84, 146, 112)),
    "dusk": ((170, 112, 118), (122, 88, 102)),
    "night": ((44, 66, 92), (28, 48, 68)),
}
ROCK: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((176, 150, 190), (140, 124, 168)),
    "day": ((134, 152, 190), (98, 116, 160)),
    "dusk": ((158, 98, 126), (108, 72, 108)),
    "night": ((92, 102, 152), (42, 50, 92)),
}
CAP: dict[str, RGB] = {
    "dawn": (255, 242, 236),
    "day": (246, 250, 255),
    "dusk": (255, 216, 200),
    "night": (186, 196, 228),
}
# Ground colours: at the horizon, at the bottom edge. For a lake, the water's own colour.
GROUND: dict[str, dict[str, tuple[RGB, RGB]]] = {
    "meadow": {
        "dawn": ((186, 200, 134), (112, 152, 92)),
        "day": ((164, 206, 108), (84, 158, 72)),
        "dusk": ((146, 138, 84), (84, 96, 66)),
        "night": ((46, 86, 80), (26, 56, 58)),
    },
    "sand": {
        "dawn": ((238, 196, 144), (216, 164, 116)),
        "day": ((244, 212, 142), (224, 178, 106)),
        "dusk": ((232, 168, 116), (186, 122, 92)),
        "night": ((118, 108, 122), (84, 76, 96)),
    },
    "snow": {
        "dawn": ((250, 232, 230), (226, 222, 240)),
        "day": ((246, 250, 255), (222, 234, 248)),
        "dusk": ((246, 208, 204), (204, 176, 208)),
        "night": ((138, 152, 196), (112, 126, 176)),
    },
    "lake": {
        "dawn": ((176, 188, 214), (104, 142, 190)),
        "day": ((120, 184, 226), (34, 112, 184)),
        "dusk": ((188, 112, 138), (84, 66, 128)),
        "night": ((44, 62, 116), (14, 26, 70)),
    },
}
PAINT: dict[str, RGB] = {
    "red": (214, 36, 40),
    "yellow": (252, 206, 36),
    "white": (252, 248, 240),
    "blue": (28, 74, 206),
    "purple": (142, 32, 178),
}
LAND_KINDS = ("house", "tree", "tower", "tent", "windmill", "balloon")
LAKE_KINDS = ("boat", "boat", "boat", "house", "tree", "tower", "balloon")


@dataclass(frozen=True)
class Thing:
    """One object of a scene."""

    kind: str
    colour: str
    place: str


@dataclass(frozen=True)
class Scene:
    """One postcard: its attributes, its things from left to right, and a seed for small jitter."""

    time: str
    sky: str
    light: str
    light_place: str
    ridge: str
    ground: str
    things: tuple[Thing, ...]
    jitter: int = 0


def skies_of(time: str) -> tuple[str, ...]:
    """The weathers a time of day may have."""
    return ("starry", "cloudy") if time == "night" else ("clear", "cloudy")


def kinds_of(ground: str) -> tuple[str, ...]:
    """The kinds that may stand on a ground; a repeated kind is likelier."""
    return LAKE_KINDS if ground == "lake" else LAND_KINDS


def colours_of(kind: str, ground: str) -> tuple[str, ...]:
    """The colours that stand out: white would be lost on snow and among clouds."""
    lost = kind == "balloon" or ground == "snow"
    return tuple(c for c in COLOURS if not (lost and c == "white"))


def light_places_of(things: tuple[Thing, ...]) -> tuple[str, ...]:
    """The places of the sky that no balloon takes."""
    taken = {thing.place for thing in things if thing.kind == "balloon"}
    return tuple(place for place in PLACES if place not in taken)


def is_valid(scene: Scene) -> bool:
    """Whether the world allows the scene."""
    lamp = "moon" if scene.time == "night" else "sun"
    places = light_places_of(scene.things) if scene.light != "none" else ("none",)
    order = [PLACES.index(thing.place) for thing in scene.things]
    return (
        scene.sky in skies_of(scene.time)
        and scene.light in ("none", lamp)
        and scene.light_place in places
        and 1 <= len(order) == len(set(order))
        and order == sorted(order)
        and sum(thing.kind == "balloon" for thing in scene.things) <= 1
        and all(t.kind in kinds_of(scene.ground) for t in scene.things)
        and all(t.colour in colours_of(t.kind, scene.ground) for t in scene.things)
    )


def _pick(rng: np.random.Generator, values: tuple[str, ...]) -> str:
    return values[int(rng.integers(len(values)))]


def _sample_things(rng: np.random.Generator, ground: str) -> tuple[Thing, ...]:
    count = int(rng.integers(1, 4))
    places = sorted(int(i) for i in rng.permutation(3)[:count])
    things: list[Thing] = []
    for place in places:
        flying = any(thing.kind == "balloon" for thing in things)
        kinds = tuple(k for k in kinds_of(ground) if not (flying and k == "balloon"))
        kind = _pick(rng, kinds)
        things.append(Thing(kind, _pick(rng, colours_of(kind, ground)), PLACES[place]))
    return tuple(things)


def sample_scene(rng: np.random.Generator) -> Scene:
    """Draws a scene; values of an attribute are about equally likely."""
    time = _pick(rng, TIMES)
    sky = _pick(rng, skies_of(time))
    ridge, ground = _pick(rng, RIDGES), _pick(rng, GROUNDS)
    things = _sample_things(rng, ground)
    light, light_place = "none", "none"
    if rng.random() < 0.75:
        light = "moon" if time == "night" else "sun"
        light_place = _pick(rng, light_places_of(things))
    jitter = int(rng.integers(1 << 31))
    return Scene(time, sky, light, light_place, ridge, ground, things, jitter)
