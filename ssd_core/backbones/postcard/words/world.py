"""The closed world of the postcards: contents, positions and palettes of scenes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CELL = 16  # side of a token's cell, px; things move by whole cells
PLACES = ("left", "middle", "right")


@dataclass(frozen=True)
class Frame:
    """A shape. Places are tuples in the order of PLACES; everything is in cells except `horizon`.

    horizon: the row where the ground starts, px; never on the border of cells. centres: the columns
    of the places. feet: the rows on which things stand. roam: how far a thing may stand from its
    place. light, balloon: the rows of a light's centre and of a balloon's top. clouds: the upper
    edges of clouds, px. scale: the px painted along a side of each of these px.
    """

    name: str
    columns: int
    rows: int
    horizon: int
    centres: tuple[int, int, int]
    feet: tuple[int, int, int]
    roam: int
    light: int
    balloon: int
    clouds: tuple[int, int, int]
    scale: int = 1

    @property
    def width(self) -> int:
        """In px."""
        return self.columns * CELL

    @property
    def height(self) -> int:
        """In px."""
        return self.rows * CELL

    @property
    def light_y(self) -> int:
        """The row of a light's centre, px."""
        return self.light * CELL

    @property
    def lift(self) -> float:
        """How high ridges are, compared with those of the square."""
        return min(1.0, self.horizon / 212)

    def x_of(self, place: str) -> int:
        """The column of a place's centre, px."""
        return self.centres[PLACES.index(place)] * CELL

    def feet_of(self, place: str) -> int:
        """The row on which a thing at a place stands, px."""
        return self.feet[PLACES.index(place)] * CELL


SQUARE = Frame("square", 24, 24, 212, (4, 12, 20), (19, 19, 19), 1, 4, 1, (0, 24, 46))
WIDE = Frame("wide", 32, 18, 148, (5, 16, 27), (14, 14, 14), 1, 3, 1, (-8, 8, 24))
TALL = Frame("tall", 18, 32, 260, (4, 9, 14), (22, 26, 22), 0, 5, 2, (-4, 86, 108))
FRAMES = (SQUARE, WIDE, TALL)


def frame_of(height: float, width: float) -> Frame | None:
    """The shape of pictures of so many px; None if there is none."""
    return next((frame for frame in FRAMES if (frame.height, frame.width) == (height, width)), None)


SIZE = SQUARE.width  # side of a square picture, px
CELLS = SQUARE.columns

TIMES = ("dawn", "day", "dusk", "night")
SKIES = ("clear", "cloudy", "starry", "rain", "fog")
LIGHTS = ("none", "sun", "moon")
RIDGES = ("none", "hills", "mountains", "snowy", "forest")
GROUNDS = ("meadow", "field", "sand", "snow", "lake", "sea")
PATHS = ("none", "road", "river", "flowers")
KINDS = ("house", "houses", "church", "castle", "tower", "lighthouse", "windmill", "tent", "tree",
         "trees", "pine", "boat", "boats", "bridge", "balloon")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white")
WATER = ("lake", "sea")

LIGHT_RADIUS = 26  # px

RGB = tuple[int, int, int]

# Sky colours at the top, the middle and the horizon.
SKY: dict[str, tuple[RGB, RGB, RGB]] = {
    "dawn": ((126, 158, 214), (244, 190, 186), (255, 226, 168)),
    "day": ((46, 116, 204), (112, 180, 232), (214, 234, 238)),
    "dusk": ((72, 58, 128), (224, 106, 108), (255, 184, 92)),
    "night": ((10, 16, 50), (26, 46, 106), (84, 114, 172)),
}
# Rain and fog shift every colour of the sky towards one of these.
VEIL: dict[str, dict[str, RGB]] = {
    "rain": {"dawn": (150, 140, 152), "day": (112, 126, 144), "dusk": (96, 74, 92),
             "night": (24, 30, 46)},
    "fog": {"dawn": (240, 222, 210), "day": (214, 222, 226), "dusk": (206, 158, 152),
            "night": (74, 86, 116)},
}
VEIL_SHARE = {"rain": 0.62, "fog": 0.6}
# Colours towards which light and dark strokes shift.
GLEAM: dict[str, RGB] = {
    "dawn": (255, 238, 206), "day": (255, 252, 232), "dusk": (255, 206, 132),
    "night": (132, 162, 226)}
SHADOW: dict[str, RGB] = {
    "dawn": (112, 96, 160), "day": (24, 66, 128), "dusk": (74, 30, 92), "night": (4, 6, 30)}
# Cloud colours: lit top, shaded belly.
CLOUD: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((255, 244, 232), (232, 188, 196)),
    "day": ((254, 254, 252), (188, 208, 232)),
    "dusk": ((255, 202, 158), (186, 104, 132)),
    "night": ((112, 126, 172), (56, 68, 116)),
}
LIGHT: dict[str, RGB] = {
    "dawn": (255, 236, 150), "day": (255, 226, 84), "dusk": (255, 148, 58),
    "night": (248, 244, 218)}
# Ridge colours: far layer, near layer.
HILL: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((186, 176, 172), (134, 152, 126)),
    "day": ((112, 168, 156), (76, 136, 104)),
    "dusk": ((166, 96, 114), (108, 72, 98)),
    "night": ((40, 64, 104), (18, 40, 62)),
}
ROCK: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((206, 170, 186), (130, 112, 158)),
    "day": ((168, 178, 196), (92, 108, 152)),
    "dusk": ((208, 124, 122), (98, 60, 104)),
    "night": ((84, 96, 148), (36, 44, 88)),
}
WOOD: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((112, 130, 112), (72, 96, 88)),
    "day": ((58, 112, 70), (34, 80, 56)),
    "dusk": ((94, 72, 74), (58, 44, 62)),
    "night": ((18, 42, 50), (10, 26, 38)),
}
CAP: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((255, 244, 236), (226, 204, 224)),
    "day": ((252, 253, 255), (196, 212, 238)),
    "dusk": ((255, 220, 188), (214, 150, 172)),
    "night": ((198, 208, 236), (128, 142, 192)),
}
# Ground colours: at the horizon, at the bottom edge. For water, its own colour.
GROUND: dict[str, dict[str, tuple[RGB, RGB]]] = {
    "meadow": {
        "dawn": ((190, 200, 128), (104, 148, 80)),
        "day": ((158, 202, 92), (66, 142, 58)),
        "dusk": ((148, 132, 78), (78, 88, 56)),
        "night": ((38, 80, 76), (16, 46, 46)),
    },
    "field": {
        "dawn": ((244, 206, 112), (206, 152, 58)),
        "day": ((246, 208, 84), (216, 156, 30)),
        "dusk": ((228, 140, 52), (158, 84, 36)),
        "night": ((126, 104, 66), (76, 58, 42)),
    },
    "sand": {
        "dawn": ((246, 218, 188), (226, 184, 150)),
        "day": ((248, 228, 182), (232, 200, 146)),
        "dusk": ((240, 178, 140), (198, 132, 112)),
        "night": ((122, 116, 138), (88, 82, 108)),
    },
    "snow": {
        "dawn": ((252, 238, 236), (226, 222, 242)),
        "day": ((250, 252, 255), (214, 228, 246)),
        "dusk": ((250, 214, 208), (202, 172, 210)),
        "night": ((150, 164, 208), (112, 128, 182)),
    },
    "lake": {
        "dawn": ((206, 200, 216), (112, 146, 196)),
        "day": ((140, 196, 232), (30, 104, 182)),
        "dusk": ((204, 122, 138), (84, 62, 128)),
        "night": ((48, 68, 128), (14, 26, 76)),
    },
    "sea": {
        "dawn": ((150, 196, 190), (62, 132, 142)),
        "day": ((88, 190, 190), (10, 114, 128)),
        "dusk": ((150, 132, 132), (48, 72, 92)),
        "night": ((30, 84, 100), (6, 40, 56)),
    },
}
ROAD: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((214, 184, 168), (168, 128, 116)),
    "day": ((222, 190, 150), (170, 122, 86)),
    "dusk": ((178, 118, 104), (112, 66, 70)),
    "night": ((84, 78, 96), (52, 46, 64)),
}
PAINT: dict[str, RGB] = {
    "red": (204, 30, 38),
    "orange": (246, 122, 20),
    "yellow": (254, 212, 40),
    "green": (26, 134, 66),
    "blue": (30, 82, 204),
    "purple": (122, 44, 164),
    "pink": (246, 138, 180),
    "white": (252, 249, 240),
}
NIGHT_PAINT = 0.82  # factor on a thing's colour at night
LAND_KINDS = ("house", "houses", "houses", "church", "church", "castle", "tower", "lighthouse",
              "windmill", "tent", "tree", "trees", "trees", "pine", "balloon")
LAKE_KINDS = ("boat", "boat", "boat", "boats", "boats", "boats", "bridge", "bridge", "bridge",
              "house", "castle", "tower", "lighthouse", "lighthouse", "tree", "balloon")
ON_WATER = frozenset(LAKE_KINDS) - frozenset(LAND_KINDS)  # kinds that stand nowhere else
ALIKE = 0.2  # chance that a thing looks like the one before it


@dataclass(frozen=True)
class SceneObject:
    """An object of a scene."""

    kind: str
    colour: str
    place: str


@dataclass(frozen=True)
class Scene:
    """A postcard: its attributes, its things from left to right, and a seed for the strokes."""

    time: str
    sky: str
    light: str
    light_place: str
    ridge: str
    ground: str
    path: str
    things: tuple[SceneObject, ...]
    jitter: int = 0


def skies_of(time: str) -> tuple[str, ...]:
    """The skies that a time of day may have."""
    return ("starry", "cloudy", "rain", "fog") if time == "night" else (
        "clear", "cloudy", "rain", "fog")


def has_light(sky: str) -> bool:
    """Whether the sun or the moon can be seen under a sky."""
    return sky not in VEIL


def kinds_of(ground: str) -> tuple[str, ...]:
    """The kinds that may stand on a ground; a repeated kind is likelier."""
    return LAKE_KINDS if ground in WATER else LAND_KINDS


def paths_of(ground: str) -> tuple[str, ...]:
    """The paths that a ground may have; flowers grow on meadows only."""
    if ground in WATER:
        return ("none",)
    return PATHS if ground == "meadow" else ("none", "road", "river")


def colours_of(kind: str, ground: str) -> tuple[str, ...]:
    """The colours that are visible: white vanishes on snow and among clouds."""
    lost = {"white"} if kind == "balloon" or ground == "snow" else set()
    return tuple(c for c in COLOURS if c not in lost)


def light_places_of(things: tuple[SceneObject, ...]) -> tuple[str, ...]:
    """The places of the sky that no balloon takes."""
    taken = {thing.place for thing in things if thing.kind == "balloon"}
    return tuple(place for place in PLACES if place not in taken)


def is_valid(scene: Scene) -> bool:
    """Whether the world allows the scene."""
    lamp = "moon" if scene.time == "night" else "sun"
    lamps = ("none", lamp) if has_light(scene.sky) else ("none",)
    places = light_places_of(scene.things) if scene.light != "none" else ("none",)
    order = [PLACES.index(thing.place) for thing in scene.things]
    return (
        scene.sky in skies_of(scene.time)
        and scene.light in lamps
        and scene.light_place in places
        and scene.ridge in RIDGES
        and scene.path in paths_of(scene.ground)
        and 1 <= len(order) == len(set(order))
        and order == sorted(order)
        and sum(thing.kind == "balloon" for thing in scene.things) <= 1
        and all(t.kind in kinds_of(scene.ground) for t in scene.things)
        and all(t.colour in colours_of(t.kind, scene.ground) for t in scene.things)
    )


def _pick(rng: np.random.Generator, values: tuple[str, ...]) -> str:
    return values[int(rng.integers(len(values)))]


def _colour(rng: np.random.Generator, kind: str, ground: str) -> str:
    """A colour: for trees mostly green, for everything else any visible one."""
    natural = kind in ("tree", "trees", "pine") and rng.random() < 0.4
    return "green" if natural else _pick(rng, colours_of(kind, ground))


def _sample_things(rng: np.random.Generator, ground: str) -> tuple[SceneObject, ...]:
    count = int(rng.choice(3, p=(0.4, 0.35, 0.25))) + 1
    places = sorted(int(i) for i in rng.permutation(3)[:count])
    things: list[SceneObject] = []
    for place in places:
        flying = any(thing.kind == "balloon" for thing in things)
        kind = _pick(rng, tuple(k for k in kinds_of(ground) if not (flying and k == "balloon")))
        colour = _colour(rng, kind, ground)
        if things and things[-1].kind != "balloon" and rng.random() < ALIKE:
            kind, colour = things[-1].kind, things[-1].colour
        things.append(SceneObject(kind, colour, PLACES[place]))
    return tuple(things)


def _likely_paths(sky: str, ground: str, things: tuple[SceneObject, ...]) -> tuple[str, ...]:
    """The paths to choose from; a repeated path is likelier.

    Roads lead into fog and flowers grow around churches more often than chance would have it.
    """
    paths = paths_of(ground)
    church = any(thing.kind == "church" for thing in things)
    more = ["road"] * 2 * (sky == "fog") + ["flowers"] * 2 * church
    return ("none", *paths, *(path for path in more if path in paths))


def sample_scene(rng: np.random.Generator) -> Scene:
    """Draw a random scene; values of an attribute are about equally likely, rain and fog less."""
    time = _pick(rng, TIMES)
    skies = skies_of(time)
    sky = skies[int(rng.choice(4, p=(0.35, 0.35, 0.15, 0.15)))]
    ridge, ground = _pick(rng, RIDGES), _pick(rng, GROUNDS)
    things = _sample_things(rng, ground)
    path = _pick(rng, _likely_paths(sky, ground, things))
    light, light_place = "none", "none"
    if has_light(sky) and rng.random() < 0.75:
        light = "moon" if time == "night" else "sun"
        light_place = _pick(rng, light_places_of(things))
    return Scene(time, sky, light, light_place, ridge, ground, path, things,
                 int(rng.integers(1 << 31)))


def scene_of(seed: int) -> Scene:
    """The scene of postcard `seed`, unpainted."""
    return sample_scene(np.random.default_rng(seed))
