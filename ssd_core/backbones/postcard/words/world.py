"""The closed world of the postcards: contents, positions and palettes of scenes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CELL = 16  # side of a token's cell, px; things move by whole cells
PLACES = ("left", "middle", "right")
# Between the places and farther away, for four or five things; captions do not name them.
FAR_PLACES = ("far left", "far right")
SLOTS = ("left", "far left", "middle", "far right", "right")  # all, from left to right


@dataclass(frozen=True)
class Frame:
    """A shape. Places are tuples in the order of PLACES; everything is in cells except `horizon`.

    horizon: the row where the ground starts, px; never on the border of cells. centres: the columns
    of the places. feet: the rows on which things stand; far_feet: those of the far places. roam:
    how far a thing may stand from its place. light: the row of a high light's centre; low: that of
    a low one over a flat horizon, over hills or a forest, and over mountains. balloon: the row of
    a balloon's top. clouds: the upper edges of clouds, px. sizes: the px of a unit of a drawing
    that stands alone, beside one or two others, beside more, and far away.
    scale: the px of a painted picture for each of these px, along a side.
    """

    name: str
    columns: int
    rows: int
    horizon: int
    centres: tuple[int, int, int]
    feet: tuple[int, int, int]
    far_feet: int
    roam: int
    light: int
    low: tuple[int, int, int]
    balloon: int
    clouds: tuple[int, int, int]
    sizes: tuple[float, float, float, float]
    scale: int = 1

    @property
    def width(self) -> int:
        """In px."""
        return self.columns * CELL

    @property
    def height(self) -> int:
        """In px."""
        return self.rows * CELL

    def light_y(self, time: str, ridge: str) -> int:
        """The row of a light's centre, px: the sun is low at dawn and at dusk."""
        if time not in LOW_SUN:
            return self.light * CELL
        flat, rolling, steep = self.low
        return CELL * {"none": flat, "mountains": steep, "snowy": steep,
                       "cliffs": steep}.get(ridge, rolling)

    @property
    def lift(self) -> float:
        """How high ridges are, compared with those of the square."""
        return min(1.0, self.horizon / 212)

    def x_of(self, place: str) -> int:
        """The column of a place's centre, px."""
        left, middle, right = self.centres
        if place in FAR_PLACES:
            return (middle + (left if place == "far left" else right)) * CELL // 2
        return self.centres[PLACES.index(place)] * CELL

    def feet_of(self, place: str, kind: str = "") -> int:
        """The row on which a thing at a place stands, px."""
        if kind in BACKDROPS:
            return CELL * (self.far_feet - 1)
        return CELL * (self.far_feet if place in FAR_PLACES else self.feet[PLACES.index(place)])


SQUARE = Frame("square", 24, 24, 212, (4, 12, 20), (19, 19, 19), 16, 1, 4, (8, 7, 4), 1,
               (0, 24, 46), (1.125, 1.0, 0.75, 0.5625))
WIDE = Frame("wide", 32, 18, 148, (5, 16, 27), (14, 14, 14), 11, 1, 3, (5, 4, 3), 1, (-8, 8, 24),
             (1.25, 1.0, 0.75, 0.5625))
TALL = Frame("tall", 18, 32, 260, (4, 9, 14), (22, 26, 22), 19, 0, 5, (11, 9, 6), 2, (-4, 86, 108),
             (1.0, 0.75, 0.5625, 0.4375))
FRAMES = (SQUARE, WIDE, TALL)


def bow_of(frame: Frame) -> tuple[float, float]:
    """The radius of a rainbow around a point of the horizon, and its width, px."""
    radius = min(0.44 * frame.width, 0.84 * frame.horizon)
    return radius, 0.2 * radius


def frame_of(height: float, width: float) -> Frame | None:
    """The shape of pictures of so many px; None if there is none."""
    return next((frame for frame in FRAMES if (frame.height, frame.width) == (height, width)), None)


SIZE = SQUARE.width  # side of a square picture, px
CELLS = SQUARE.columns

TIMES = ("dawn", "day", "dusk", "night")
SKIES = ("clear", "cloudy", "starry", "rain", "fog", "snowfall", "rainbow")
LIGHTS = ("none", "sun", "moon")
RIDGES = ("none", "hills", "mountains", "snowy", "forest", "autumn", "cliffs")
GROUNDS = ("meadow", "field", "sand", "snow", "shore", "beach", "lake", "sea")
PATHS = ("none", "road", "river", "flowers")
KINDS = ("house", "houses", "church", "castle", "tower", "lighthouse", "windmill", "tent", "tree",
         "trees", "pine", "palm", "boat", "boats", "bridge", "balloon", "bird", "birds", "dog",
         "cat", "horse", "sheep", "car", "train", "bicycle", "rocket", "sunflower", "tulip",
         "rosebush", "bench", "fence", "snowman", "waterfall")
FLYING = ("balloon", "bird", "birds")  # kinds that are in the sky
FLOATING = frozenset(("boat", "boats", "bridge"))  # kinds that need no islet in water
GROUPS = ("houses", "trees", "boats", "birds")  # kinds of several things
BACKDROPS = ("waterfall",)  # kinds that stand far away, below the ridge
FLOWERS = ("sunflower", "tulip", "rosebush")
# Kinds that are small beside the others.
SMALL = ("dog", "cat", "sheep", "bicycle", "sunflower", "tulip", "rosebush", "bench", "fence",
         "snowman", "horse", "car")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "brown", "black",
           "grey")
WATER = ("lake", "sea")
# Grounds with water behind: what is in front, and which water.
SHORES = {"shore": ("meadow", "lake"), "beach": ("sand", "sea")}
SHORE = 0.34  # how far down from the horizon the water of a shore reaches, of the land's rows

LIGHT_RADIUS = 26  # px
LOW_SUN = ("dawn", "dusk")
# How much paler than its edge the middle of the disc is.
DISC_PALE = {"dawn": 0.2, "day": 0.45, "dusk": 0.25, "night": 0.45}

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
             "night": (52, 60, 84)},
    "snowfall": {"dawn": (204, 194, 208), "day": (186, 196, 212), "dusk": (142, 114, 146),
                 "night": (98, 108, 144)},
    "fog": {"dawn": (240, 222, 210), "day": (214, 222, 226), "dusk": (206, 158, 152),
            "night": (74, 86, 116)},
}
VEIL_SHARE = {"rain": 0.62, "snowfall": 0.7, "fog": 0.6}
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
    "dawn": (255, 206, 104), "day": (255, 226, 84), "dusk": (255, 148, 58),
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
    "dusk": ((140, 82, 112), (66, 42, 88)),
    "night": ((38, 44, 78), (18, 22, 46)),
}
WOOD: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((112, 130, 112), (72, 96, 88)),
    "day": ((58, 112, 70), (34, 80, 56)),
    "dusk": ((94, 72, 74), (58, 44, 62)),
    "night": ((18, 42, 50), (10, 26, 38)),
}
AUTUMN: dict[str, tuple[RGB, RGB, RGB]] = {  # and the colour of single golden trees
    "dawn": ((206, 140, 92), (150, 86, 70), (226, 176, 96)),
    "day": ((220, 128, 42), (166, 68, 32), (240, 184, 56)),
    "dusk": ((178, 88, 36), (108, 48, 34), (208, 126, 42)),
    "night": ((86, 54, 36), (54, 34, 32), (104, 76, 42)),
}
CLIFF: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((214, 172, 146), (150, 112, 108)),
    "day": ((228, 208, 172), (164, 136, 108)),
    "dusk": ((192, 124, 96), (112, 66, 64)),
    "night": ((92, 84, 96), (52, 46, 58)),
}
CAP: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((255, 244, 236), (226, 204, 224)),
    "day": ((252, 253, 255), (196, 212, 238)),
    "dusk": ((255, 220, 188), (214, 150, 172)),
    "night": ((158, 172, 214), (92, 106, 158)),
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
GROUND |= {shore: GROUND[land] for shore, (land, _) in SHORES.items()}
ROAD: dict[str, tuple[RGB, RGB]] = {
    "dawn": ((214, 184, 168), (168, 128, 116)),
    "day": ((222, 190, 150), (170, 122, 86)),
    "dusk": ((178, 118, 104), (112, 66, 70)),
    "night": ((84, 78, 96), (52, 46, 64)),
}
# A rainbow from its outer to its inner edge, and how far it may be from the middle, px.
BOW: tuple[RGB, ...] = ((236, 66, 60), (250, 146, 50), (252, 226, 84), (104, 196, 96),
                        (70, 156, 226), (92, 92, 208), (158, 84, 196))
BOW_MOVE = 32
PAINT: dict[str, RGB] = {
    "red": (204, 30, 38),
    "orange": (246, 122, 20),
    "yellow": (254, 212, 40),
    "green": (26, 134, 66),
    "blue": (30, 82, 204),
    "purple": (122, 44, 164),
    "pink": (246, 138, 180),
    "white": (252, 249, 240),
    "brown": (128, 80, 48),
    "black": (50, 46, 56),
    "grey": (150, 153, 162),
}
# What the hour does to the colours of things: a factor on all, the colour that lit sides shift to,
# and a factor on sides in the shade.
TONE: dict[str, tuple[tuple[float, float, float], RGB, tuple[float, float, float]]] = {
    "dawn": ((1.0, 0.95, 0.95), (255, 236, 208), (0.68, 0.6, 0.76)),
    "day": ((1.0, 1.0, 1.0), (255, 251, 232), (0.58, 0.57, 0.76)),
    "dusk": ((0.94, 0.84, 0.84), (255, 190, 112), (0.54, 0.44, 0.62)),
    "night": ((0.66, 0.7, 0.88), (168, 190, 240), (0.5, 0.54, 0.76)),
}
LAND_KINDS = ("house", "house", "houses", "church", "castle", "tower", "lighthouse", "windmill",
              "tent", "tree", "trees", "pine", "palm", "balloon", "bird", "birds", "dog", "dog",
              "cat", "cat", "horse", "sheep", "car", "train", "bicycle", "rocket", "sunflower",
              "tulip", "rosebush", "bench", "fence", "snowman", "waterfall")
LAKE_KINDS = ("boat", "boat", "boat", "boat", "boats", "boats", "boats", "bridge", "bridge",
              "bridge", "house", "castle", "tower", "lighthouse", "lighthouse", "tree", "pine",
              "palm", "tent", "balloon", "bird", "birds", "dog", "cat", "horse", "bench")
SHORE_KINDS = tuple(kind for kind in LAND_KINDS if kind not in BACKDROPS)
# The usual colours of kinds; the other kinds have any.
USUAL = {
    **dict.fromkeys(("tree", "trees", "pine", "palm"), ("green",)),
    "house": ("white", "brown", "red", "yellow"), "houses": ("white", "brown", "red", "yellow"),
    "church": ("white", "grey"), "castle": ("grey", "white"), "tower": ("grey", "brown"),
    "lighthouse": ("red", "white"), "windmill": ("white", "brown"), "bridge": ("grey", "brown"),
    "tent": ("orange", "green", "blue", "red"), "boat": ("white", "red", "blue"),
    "boats": ("white", "red", "blue"), "rocket": ("red", "white", "blue"),
    "dog": ("brown", "white", "black", "grey", "orange"),
    "cat": ("black", "orange", "grey", "white"),
    "horse": ("brown", "black", "white", "grey"), "sheep": ("white", "white", "black", "brown"),
    "bird": ("blue", "red", "yellow", "brown"), "birds": ("black", "grey", "brown"),
    "sunflower": ("yellow", "yellow", "orange"), "tulip": ("red", "pink", "yellow", "purple"),
    "rosebush": ("red", "pink", "yellow", "white"), "bench": ("brown", "green", "red"),
    "fence": ("brown", "white"), "train": ("red", "green", "black", "blue"),
    "waterfall": ("white", "blue")}
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
    return ("starry", "cloudy", "rain", "fog", "snowfall") if time == "night" else (
        "clear", "cloudy", "rain", "fog", "snowfall", "rainbow")


def has_light(sky: str) -> bool:
    """Whether the sun or the moon can be seen under a sky; a rainbow is opposite to the sun."""
    return sky not in VEIL and sky != "rainbow"


def kinds_of(ground: str) -> tuple[str, ...]:
    """The kinds that may stand on a ground; a repeated kind is likelier."""
    return SHORE_KINDS if ground in SHORES else LAKE_KINDS if ground in WATER else LAND_KINDS


def paths_of(ground: str) -> tuple[str, ...]:
    """The paths that a ground may have; flowers grow on meadows only."""
    if ground in WATER or ground in SHORES:
        return ("none",)
    return PATHS if ground == "meadow" else ("none", "road", "river")


def colours_of(kind: str, ground: str) -> tuple[str, ...]:
    """The colours that are visible: white vanishes on snow, among clouds and on a snowman, whose
    colour is that of his scarf.
    """
    lost = {"white"} if kind in (*FLYING, "snowman") or ground == "snow" else set()
    if kind in FLOWERS:
        lost |= {"green", "brown", "black", "grey"}
    wanted = USUAL[kind] if kind == "waterfall" else COLOURS
    return tuple(c for c in wanted if c not in lost)


def light_places_of(things: tuple[SceneObject, ...]) -> tuple[str, ...]:
    """The places of the sky that nothing flying takes."""
    taken = {thing.place for thing in things if thing.kind in FLYING}
    return tuple(place for place in PLACES if place not in taken)


def is_many(things: tuple[SceneObject, ...]) -> bool:
    """Whether there are more things than places, all of which are alike then."""
    return len(things) > len(PLACES)


def may_be_many(kind: str) -> bool:
    """Whether four or five of a kind fit into a picture."""
    return kind not in (*FLYING, *GROUPS, "bridge", "waterfall", "train")


def _many_is_valid(things: tuple[SceneObject, ...]) -> bool:
    alike = len({(thing.kind, thing.colour) for thing in things}) == 1
    full = {thing.place for thing in things} >= set(PLACES)
    return alike and full and may_be_many(things[0].kind)


def is_valid(scene: Scene) -> bool:
    """Whether the world allows the scene."""
    lamp = "moon" if scene.time == "night" else "sun"
    lamps = ("none", lamp) if has_light(scene.sky) else ("none",)
    places = light_places_of(scene.things) if scene.light != "none" else ("none",)
    order = [SLOTS.index(thing.place) for thing in scene.things]
    near = all(thing.place in PLACES for thing in scene.things)
    return (
        scene.sky in skies_of(scene.time)
        and scene.light in lamps
        and scene.light_place in places
        and scene.ridge in RIDGES
        and scene.path in paths_of(scene.ground)
        and 1 <= len(order) == len(set(order))
        and order == sorted(order)
        and (near if scene.ground in SHORES or not is_many(scene.things)
             else _many_is_valid(scene.things))
        and all(t.kind in kinds_of(scene.ground) for t in scene.things)
        and all(t.colour in colours_of(t.kind, scene.ground) for t in scene.things)
    )


def _pick(rng: np.random.Generator, values: tuple[str, ...]) -> str:
    return values[int(rng.integers(len(values)))]


def _colour(rng: np.random.Generator, kind: str, ground: str) -> str:
    """A colour: mostly a usual one of the kind."""
    visible = colours_of(kind, ground)
    usual = tuple(c for c in USUAL.get(kind, ()) if c in visible)
    return _pick(rng, usual if usual and rng.random() < 0.65 else visible)


def _sample_things(rng: np.random.Generator, ground: str) -> tuple[SceneObject, ...]:
    count = int(rng.choice(5, p=(0.38, 0.27, 0.19, 0.08, 0.08))) + 1
    if ground in SHORES:
        count = min(count, len(PLACES))  # those far away would stand in the water
    if count > len(PLACES):
        kind = _pick(rng, tuple(k for k in kinds_of(ground) if may_be_many(k)))
        colour, gap = _colour(rng, kind, ground), _pick(rng, FAR_PLACES)
        return tuple(SceneObject(kind, colour, place) for place in SLOTS
                     if count == len(SLOTS) or place != gap)
    places = sorted(int(i) for i in rng.permutation(3)[:count])
    things: list[SceneObject] = []
    for place in places:
        kind = _pick(rng, kinds_of(ground))
        colour = _colour(rng, kind, ground)
        if things and rng.random() < ALIKE:
            kind, colour = things[-1].kind, things[-1].colour
        things.append(SceneObject(kind, colour, PLACES[place]))
    return tuple(things)


def _is_likely(ridge: str, ground: str) -> bool:
    """Whether a ridge is seen behind a ground: cliffs are by water, autumn is without snow."""
    by_water = ground in WATER or ground in SHORES
    return by_water if ridge == "cliffs" else not (ridge == "autumn" and ground == "snow")


def _likely_paths(sky: str, ground: str, things: tuple[SceneObject, ...]) -> tuple[str, ...]:
    """The paths to choose from; a repeated path is likelier.

    Roads lead into fog and flowers grow around churches more often than chance would have it, and
    flowers need a meadow, which is rare.
    """
    paths = paths_of(ground)
    church = any(thing.kind == "church" for thing in things)
    more = ["road"] * 2 * (sky == "fog") + ["flowers"] * 2 * (1 + church)
    return ("none", *paths, *(path for path in more if path in paths))


def sample_scene(rng: np.random.Generator) -> Scene:
    """Draw a random scene; values of an attribute are about equally likely, rain and fog less."""
    time = _pick(rng, TIMES)
    skies = skies_of(time)
    odds = (0.34, 0.3, 0.12, 0.12, 0.12) if time == "night" else (0.3, 0.26, 0.12, 0.1, 0.11, 0.11)
    sky = skies[int(rng.choice(len(skies), p=odds))]
    ground = "snow" if sky == "snowfall" and rng.random() < 0.5 else _pick(rng, GROUNDS)
    ridge = _pick(rng, tuple(ridge for ridge in RIDGES if _is_likely(ridge, ground)))
    things = _sample_things(rng, ground)
    path = _pick(rng, _likely_paths(sky, ground, things))
    light, light_place = "none", "none"
    if has_light(sky) and light_places_of(things) and rng.random() < 0.75:
        light = "moon" if time == "night" else "sun"
        light_place = _pick(rng, light_places_of(things))
    return Scene(time, sky, light, light_place, ridge, ground, path, things,
                 int(rng.integers(1 << 31)))


def scene_of(seed: int) -> Scene:
    """The scene of postcard `seed`, unpainted."""
    return sample_scene(np.random.default_rng(seed))
