"""What a postcard's pixels show of its scene: time, sky, light, ridge, ground and path.

Also the gradients by which they are recognised, and phrases for what nobody mentioned, so that an
edit can keep it. Things are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from .words import spelling
from .words.captions import _PARTS
from .words.world import (
    AUTUMN,
    BOW,
    BOW_MOVE,
    CAP,
    CELL,
    CLIFF,
    CLOUD,
    DISC_PALE,
    FLYING,
    FRAMES,
    GLEAM,
    GROUND,
    GROUNDS,
    HILL,
    LIGHT,
    LIGHT_RADIUS,
    LOW_SUN,
    PLACES,
    ROAD,
    ROCK,
    SHADOW,
    SHORE,
    SHORES,
    SKY,
    SQUARE,
    TIMES,
    VEIL,
    VEIL_SHARE,
    WATER,
    WOOD,
    Frame,
    bow_of,
    frame_of,
)

UNCLEAR = "unclear"  # if the pixels fit no value
STEP = 4  # px of a picture per px of the coarse picture that is searched
NIGHT_HAZE = 0.3  # of the haze by day: the feet of mountains stay darker than the sky
HAZE = 144  # px above the horizon from which ridges fade into the air
_MIDDLE = 0.55  # how far down a sky has its middle colour
_LIGHT_OVERLAP = 0.45
_STARRY, _CLOUDY = 0.0022, 0.05  # least share of the sky with stars, with clouds
_VEILED = 0.7  # factor on the fit of rain and fog to a sky with a light or stars
_FLAKELESS = 0.5  # factor on the fit of falling snow to a sky without flakes
_BOW_SHARE = 0.34  # least share of directions with the colours of a rainbow
_GLOW = (0.07, 0.15, 0.24)  # shares of the light's colour in the sky around it
# Least and largest share of the sky with streaks of rain, or with snowflakes.
_STREAKS = {"rain": (0.02, 0.2), "snowfall": (0.012, 0.2)}
_HIGH = 0.3  # least share of mountains that high above the horizon
_BLOSSOMS = 0.006  # least share of blossoms at the bottom edge; a meadow without has none
_PATH, _SOLID = 24, 0.6  # px that a path is wide at the bottom edge, least share of its colours
_SEEN = 0.15  # least share of the columns in which the ridge is read
_BOTTOM = (52, 4)  # rows above the bottom edge in which the ground is read, px


@dataclass(frozen=True)
class Scenery:
    """The attributes that pixels show; "none": absent, "unclear": no value fits."""

    time: str
    sky: str
    light: str
    light_place: str
    ridge: str
    ground: str
    path: str


# ---- gradients and colours -----------------------------------------------------------------------


@cache
def sky_rows(time: str, sky: str = "clear", frame: Frame = SQUARE) -> np.ndarray:
    """The sky gradient, float32 [H, 3], one colour a row (0..255)."""
    rows = np.minimum(np.arange(frame.height), frame.horizon)
    stops = (0, _MIDDLE * frame.horizon, frame.horizon)
    table = np.asarray(SKY[time], dtype=np.float32)
    clear = np.stack([np.interp(rows, stops, table[:, c]) for c in range(3)], 1)
    if sky in VEIL:
        clear += (np.asarray(VEIL[sky][time]) - clear) * VEIL_SHARE[sky]
    return clear.astype(np.float32)


@cache
def ground_rows(ground: str, time: str, frame: Frame = SQUARE) -> np.ndarray:
    """The ground's gradient, float32 [H, 1, 3], from the horizon to the bottom edge."""
    far, near = (np.asarray(c, dtype=np.float32) for c in GROUND[ground][time])
    return far + (near - far) * depth(frame)[..., None]


def depth(frame: Frame) -> np.ndarray:
    """How near the ground is in each row [H, 1]: 0 at the horizon, 1 at the bottom edge."""
    rows = np.arange(frame.height, dtype=np.float32)[:, None]
    return np.clip((rows - frame.horizon) / (frame.height - frame.horizon), 0, 1)


def fog_share(rows: np.ndarray, frame: Frame) -> np.ndarray:
    """How much of the picture fog hides in each row: the most at the horizon."""
    return 0.52 * np.exp(-(((rows - frame.horizon) / 70) ** 2))


def far(pixels: np.ndarray, colour: object) -> np.ndarray:
    """Euclidean RGB distance of pixels [..., 3] to colours that broadcast against them."""
    difference = pixels - np.asarray(colour, dtype=np.float32)
    return np.sqrt(np.einsum("...c,...c->...", difference, difference))


def overlap(masks: np.ndarray, shapes: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """IoU [m, s] of masks [m, pixels] with shapes [s, pixels] of areas [s], values 0..1."""
    shared = masks @ shapes.T
    union = masks.sum(1)[:, None] + areas[None] - shared
    return shared / np.maximum(union, 1)


def coarse(picture: np.ndarray) -> np.ndarray:
    """Means of STEP x STEP px, float32: [H, W, c] -> [H / STEP, W / STEP, c]."""
    height, width = picture.shape[0] // STEP, picture.shape[1] // STEP
    blocks = picture.astype(np.float32).reshape(height, STEP, width, STEP, -1)
    return blocks.mean((1, 3))


def at_frame_size(picture: np.ndarray) -> np.ndarray:
    """A picture uint8 [H, W, 3] of twice a frame's size as means of 2 x 2 px; any other as it is.
    """
    height, width = picture.shape[:2]
    if frame_of(height / 2, width / 2) is None:
        return picture
    blocks = picture.reshape(height // 2, 2, width // 2, 2, -1).mean((1, 3))
    return blocks.round().astype(np.uint8)


def stroked(colours: np.ndarray, time: str, share: float = 0.3) -> np.ndarray:
    """Colours [..., 3] under dark, plain and light strokes, [3, ..., 3]."""
    gleam, shadow = (np.asarray(table[time], dtype=np.float32) for table in (GLEAM, SHADOW))
    return np.stack((colours + (shadow - colours) * share, colours,
                     colours + (gleam - colours) * share))


def cloud_shades(time: str) -> np.ndarray:
    """The colours of clouds [4, 3], from their lit top to their belly."""
    top, belly = (np.asarray(colour, dtype=np.float32) for colour in CLOUD[time])
    return np.stack([top + (belly - top) * share for share in (0, 0.35, 0.7, 1)])


def _rows(top: int, bottom: int) -> slice:
    """Rows of a picture, px, as rows of the coarse picture."""
    return slice(max(0, top) // STEP, bottom // STEP)


def _which(pixels: np.ndarray, tables: dict[str, np.ndarray], reach: float) -> np.ndarray:
    """The number of the set of colours [n, ..., 3] that is nearest to each of pixels [..., 3].

    A px farther than `reach` from all sets has -1.
    """
    away = np.stack([far(pixels[None], table).min(0) for table in tables.values()])
    return np.where(away.min(0) < reach, away.argmin(0), -1)


def _nearest(pixels: np.ndarray, tables: dict[str, np.ndarray], reach: float) -> dict[str, float]:
    """The share of pixels [..., 3] nearest to each named set of colours; see `_which`."""
    best = _which(pixels, tables, reach)
    return {name: float((best == i).mean()) for i, name in enumerate(tables)}


# ---- sky ---------------------------------------------------------------------------------------


@cache
def _sky_table(time: str, veil: str, frame: Frame) -> np.ndarray:
    """The colours of a sky, one for each row of the coarse picture, [3, rows, 1, 3]."""
    rows = sky_rows(time, veil, frame).reshape(-1, STEP, 3).mean(1)
    if veil in VEIL:
        return stroked(rows, time, 0.2)[:, :, None]
    light = np.asarray(LIGHT[time], dtype=np.float32)
    lit = np.stack([rows + (light - rows) * share for share in _GLOW])
    return np.concatenate((stroked(rows, time, 0.34), lit))[:, :, None]


def _streaks(picture: np.ndarray, frame: Frame) -> float:
    """The share of px of the sky that are lighter than those beside them, as in a streak."""
    grey = picture[: frame.horizon // 2].astype(np.float32).mean(2)
    beside = np.maximum(grey[:, :-6], grey[:, 6:])
    return float((grey[:, 3:-3] > beside + 8).mean())


def _read_air(picture: np.ndarray, small: np.ndarray, frame: Frame) -> tuple[str, str]:
    """Time of day, and "clear", "rain" or "fog", by the colours of the sky above the ridges."""
    rows = _rows(0, round(0.62 * frame.horizon))
    scores, streaks = {}, _streaks(picture, frame)
    falling = [veil for veil, (least, most) in _STREAKS.items() if least < streaks < most]
    starry = _star_share(picture, np.ones(small.shape[1], dtype=bool)) > _STARRY
    for time in TIMES:
        bright = (starry and time == "night") or _read_light(small, time, frame)[0] != "none"
        for veil in ("clear", *VEIL):
            away = far(small[None, rows], _sky_table(time, veil, frame)[:, rows]).min(0)
            fit = float(np.exp(-((away / 24) ** 2)).mean())
            if veil in falling:
                fit /= _VEILED
            elif veil == "snowfall":  # without flakes it is but a grey sky
                fit *= _FLAKELESS
            elif veil != "clear" and bright:  # rain and fog hide stars and lights
                fit *= _VEILED
            scores[time, veil] = fit
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] > 0.12 else (UNCLEAR, UNCLEAR)


@cache
def _discs() -> tuple[np.ndarray, np.ndarray]:
    """Shifted discs [shifts, pixels] in 96 x 96 px around the light's place, and their areas."""
    axis = np.arange(96) - 47.5
    moves = range(-8, 9, 4)
    discs = [np.hypot(axis[:, None] - dy, axis[None, :] - dx) <= LIGHT_RADIUS
             for dy in moves for dx in moves]
    tables = np.stack([coarse(disc[..., None]).ravel() for disc in discs])
    return tables, tables.sum(1)


def _light_score(small: np.ndarray, place: str, row: int, colours: np.ndarray,
                 other: np.ndarray, frame: Frame) -> float:
    """How well a disc at a place and a row of cells fits. other: [n, h, 1, 3], what is no light."""
    top, left = (row * CELL - 48) // STEP, (frame.x_of(place) - 48) // STEP
    rows = slice(max(0, top), top + 96 // STEP)
    window = small[rows, left : left + 96 // STEP]
    limit = np.minimum(34, far(window[None], other[:, rows]).min(0))
    mask = np.zeros((96 // STEP, 96 // STEP), dtype=np.float32)
    mask[-len(window) :] = far(window[None], colours[:, None, None]).min(0) < limit
    return float(overlap(mask.reshape(1, -1), *_discs()).max())


def _read_light(small: np.ndarray, time: str, frame: Frame) -> tuple[str, str]:
    """The light and its place; a light's disc is paler in the middle than at the edge."""
    lit = time if time in TIMES else "day"
    colour = np.asarray(LIGHT[lit], dtype=np.float32)
    shades = np.stack([colour + (255 - colour) * share * DISC_PALE[lit] for share in (0, 0.5, 1)])
    clouds = np.repeat(cloud_shades(lit)[:, None], len(small), 1)
    sky = sky_rows(lit, "clear", frame).reshape(1, -1, STEP, 3).mean(2)
    glow = [sky + (colour - sky) * share for share in (0.2, 0.4, 0.55)]
    other = np.concatenate((clouds, sky, *glow))[:, :, None]
    rows = frame.low if lit in LOW_SUN else (frame.light,)
    scores = {place: max(_light_score(small, place, row, shades, other, frame) for row in rows)
              for place in PLACES}
    best = max(scores, key=scores.__getitem__)
    if scores[best] < _LIGHT_OVERLAP:
        return "none", "none"
    return "moon" if time == "night" else "sun", best


def _bow_share(small: np.ndarray, frame: Frame) -> float:
    """The share of directions from the horizon in which red lies outside and blue inside."""
    radius, band = bow_of(frame)
    angles = np.radians(np.arange(16, 165, 4, dtype=np.float32))

    def ring(middle: float, share: float) -> np.ndarray:
        away = radius - share * band
        x = np.rint((middle + away * np.cos(angles)) / STEP - 0.5).astype(int)
        y = np.rint((frame.horizon - away * np.sin(angles)) / STEP - 0.5).astype(int)
        return small[y.clip(0, len(small) - 1), x.clip(0, small.shape[1] - 1)]

    best = 0.0
    for move in (-BOW_MOVE, 0, BOW_MOVE):
        middle = frame.width / 2 + move
        outer, inner = ring(middle, 0.15), ring(middle, 0.72)
        around = (ring(middle, -0.3) + ring(middle, 1.35)) / 2
        redder = (outer - around)[:, 0] - (outer - around)[:, 2]
        bluer = (inner - around)[:, 2] - (inner - around)[:, 0]
        yellow = ring(middle, 0.4) - around
        golden = yellow[:, 1] - yellow[:, 2]
        best = max(best, float(((redder > 12) & (bluer > -40) & (redder + bluer > 26)
                                & (golden > 12)).mean()))
    return best


def _free_columns(light_place: str, flying: Collection[str], frame: Frame) -> np.ndarray:
    """Columns of the coarse picture whose sky has neither light nor flying things, bool."""
    free = np.ones(frame.width // STEP, dtype=bool)
    for place in {light_place, *flying} & set(PLACES):
        middle = frame.x_of(place)
        free[(middle - 56) // STEP : (middle + 56) // STEP] = False
    return free


def _star_share(picture: np.ndarray, free: np.ndarray) -> float:
    """The share of px as bright as a star's core, of which a dark sky has no others."""
    grey = picture[: 3 * CELL, np.repeat(free, STEP)].min(2)
    return float((grey > 170).mean())


def _cloud_share(small: np.ndarray, time: str, free: np.ndarray, frame: Frame) -> float:
    """The share of px that show a cloud."""
    rows = _rows(0, frame.horizon - round(130 * frame.lift))
    shades = cloud_shades(time)
    part = small[rows][:, free]
    sky = _sky_table(time, "clear", frame)[:, rows]
    shares = _nearest(part, {"sky": np.broadcast_to(sky, (len(sky), *part.shape)),
                             "cloud": np.broadcast_to(shades[:, None, None], (4, *part.shape))}, 40)
    return shares["cloud"]


def _read_sky(picture: np.ndarray, small: np.ndarray, time: str, air: str, light_place: str,
              flying: Collection[str], frame: Frame) -> str:
    if air != "clear":
        return air
    free = _free_columns(light_place, flying, frame)
    if time == "night" and _star_share(picture, free) > _STARRY:
        return "starry"
    if light_place == "none" and time != "night" and _bow_share(small, frame) > _BOW_SHARE:
        return "rainbow"
    return "cloudy" if _cloud_share(small, time, free, frame) > _CLOUDY else "clear"


# ---- land --------------------------------------------------------------------------------------


def _pair(table: dict, time: str) -> np.ndarray:
    return np.asarray(table[time], dtype=np.float32)


def _with_middle(table: dict, time: str) -> np.ndarray:
    """The colours of rock [3, 3]: lit, between, in the shade."""
    pair = _pair(table, time)
    return np.stack((pair[0], pair.mean(0), pair[1]))


@cache
def _ridge_tables(time: str, air: str, bow: bool, top: int, bottom: int,
                  frame: Frame) -> dict[str, np.ndarray]:
    """For rows of a coarse picture: the colours that sky and ridges show there [n, rows, 1, 3]."""
    rows = np.arange(top, bottom, STEP, dtype=np.float32) + STEP / 2
    air_share = np.clip((rows - frame.horizon + HAZE) / HAZE, 0, 1)[:, None] ** 2
    haze = sky_rows(time, air, frame)[frame.horizon]
    veil = fog_share(rows, frame)[:, None] if air == "fog" else 0
    fog = np.asarray(VEIL["fog"][time], dtype=np.float32)

    def shown(colours: np.ndarray, hazy: float, strokes: float) -> np.ndarray:
        layers = colours[:, None] + (haze - colours[:, None]) * (hazy * air_share)
        strokes_of = stroked(layers, time, strokes).reshape(-1, len(rows), 3)
        return (strokes_of + (fog - strokes_of) * veil)[:, :, None]

    rock, cap = (_with_middle(table, time) for table in (ROCK, CAP))
    less = NIGHT_HAZE if time == "night" else 1.0
    sky = _sky_table(time, air, frame)[:, top // STEP : bottom // STEP]
    if bow:
        plain = sky[1]
        sky = np.concatenate((sky, *(
            (plain + (np.asarray(colour, dtype=np.float32) - plain) * share)[None]
            for colour in (*BOW, (255, 255, 250)) for share in (0.12, 0.3, 0.5))))
    return {"none": sky + (fog - sky) * np.asarray(veil)[..., None] if air == "fog" else sky,
            "hills": shown(_pair(HILL, time), 0.27, 0.24), "rock": shown(rock, 0.45 * less, 0.2),
            "cap": shown(cap, 0.3 * less, 0.2), "forest": shown(_pair(WOOD, time), 0.15, 0.2),
            "autumn": shown(_pair(AUTUMN, time), 0.15, 0.2),
            "cliffs": shown(_with_middle(CLIFF, time), 0.2, 0.2)}


def _read_ridge(small: np.ndarray, time: str, air: str, bow: bool, frame: Frame) -> str:
    """Read the ridge from the colours between sky and ground, at several heights."""
    if time == UNCLEAR:
        return UNCLEAR

    def shares(upper: int, lower: int) -> dict[str, float]:
        """Between two heights above the horizon, px."""
        top, bottom = ((frame.horizon - round(n * frame.lift / STEP) * STEP)
                       for n in (upper, lower))
        tables = _ridge_tables(time, air, bow, top, bottom, frame)
        return _nearest(small[_rows(top, bottom)], tables, 45)

    foot, low, middle, high = shares(16, 4), shares(32, 8), shares(60, 36), shares(92, 60)
    if foot["none"] > 0.5:
        return "none"
    if high["rock"] + high["cap"] > max(_HIGH, high["none"]) and (
            middle["rock"] + middle["cap"] > middle["forest"] + middle["autumn"]):
        peaks = shares(112, 88)
        return "snowy" if peaks["cap"] > peaks["rock"] else "mountains"
    return max(("none", "hills", "forest", "autumn", "cliffs"), key=low.__getitem__)


@cache
def _ground_tables(time: str, frame: Frame) -> dict[str, np.ndarray]:
    """For the lowest rows of the coarse picture: the colours of each ground [n, rows, 1, 3]."""
    share = {"sea": 0.42, "lake": 0.4, "sand": 0.16, "snow": 0.16}
    tables = {}
    for ground in (ground for ground in GROUNDS if ground not in SHORES):
        rows = _lowest(ground_rows(ground, time, frame))[:, 0].reshape(-1, STEP, 3).mean(1)
        tables[ground] = stroked(rows, time, share.get(ground, 0.25))[:, :, None]
    return tables


def _lowest(rows: np.ndarray) -> np.ndarray:
    """The rows, px, in which the ground is read."""
    return rows[len(rows) - _BOTTOM[0] : len(rows) - _BOTTOM[1]]


def _lowest_of(small: np.ndarray) -> np.ndarray:
    """The rows of a coarse picture in which the ground is read, see `_lowest`."""
    return small[len(small) - _BOTTOM[0] // STEP : len(small) - _BOTTOM[1] // STEP]


def _read_ground(small: np.ndarray, time: str, frame: Frame) -> str:
    if time == UNCLEAR:
        return UNCLEAR
    shares = _nearest(_lowest_of(small), _ground_tables(time, frame), 45)
    best = max(shares, key=shares.__getitem__)
    if shares[best] <= 0.25:
        return UNCLEAR
    shores = (shore for shore, (land, water) in SHORES.items()
              if land == best and _has_water(small, time, land, water, frame))
    return next(shores, best)


def _has_water(small: np.ndarray, time: str, land: str, water: str, frame: Frame) -> bool:
    """Whether water lies between the horizon and the land in front."""
    high = frame.height - frame.horizon
    rows = _rows(frame.horizon + 8, frame.horizon + round(0.7 * SHORE * high))
    tables = {}
    for name, share in ((water, 0.4), (land, 0.2)):
        colours = ground_rows(name, time, frame).reshape(-1, STEP, 3).mean(1)[rows]
        tables[name] = stroked(colours, time, share)[:, :, None]
    shares = _nearest(small[rows], tables, 60)
    return shares[water] > shares[land]


def _blossoms(small: np.ndarray, time: str, frame: Frame) -> float:
    """The share of px that are redder than any meadow."""
    part = _lowest_of(small)
    table = _ground_tables(time, frame)["meadow"]
    redder = part[..., 0] - part[..., 1] - (table[..., 0] - table[..., 1]).max(0)
    return float((redder > 30).mean())


def _read_path(small: np.ndarray, time: str, ground: str, frame: Frame) -> str:
    """The path over the ground, read at the bottom edge, where it is widest."""
    if ground in (*WATER, *SHORES, UNCLEAR):
        return "none"
    sides = round(0.12 * frame.width / STEP)
    part = _lowest_of(small)[:, sides:-sides]
    down = _lowest(np.arange(frame.height, dtype=np.float32))[::STEP] - frame.horizon
    share = down / (frame.height - frame.horizon)

    def along(pair: np.ndarray) -> np.ndarray:
        return stroked(pair[0] + (pair[1] - pair[0]) * share[:, None], time, 0.24)[:, :, None]

    tables = {"none": _ground_tables(time, frame)[ground], "road": along(_pair(ROAD, time)),
              "river": along(_pair(GROUND["lake"], time))}
    shown = _which(part, tables, 45)
    solid = {name: int(((shown == i).mean(0) > _SOLID).sum()) * STEP
             for i, name in enumerate(tables) if name != "none"}
    best = max(solid, key=solid.__getitem__)
    if solid[best] >= _PATH:
        return best
    return "flowers" if ground == "meadow" and _blossoms(small, time, frame) > _BLOSSOMS else "none"


# ---- all of it ---------------------------------------------------------------------------------


def read_scenery(picture: np.ndarray, flying: Collection[str] = (),
                 hidden: np.ndarray | None = None) -> Scenery:
    """Read a picture, uint8 [H, W, 3] RGB, of one of the FRAMES.

    flying: the places that have a thing in the sky; no clouds are looked for there. hidden: where
    things hide the ridge, bool [columns of the coarse picture].
    """
    frame = frame_of(*picture.shape[:2]) if picture.shape[2:] == (3,) else None
    if frame is None:
        shapes = ", ".join(f"({frame.height}, {frame.width}, 3)" for frame in FRAMES)
        raise ValueError(f"a postcard has the shape {shapes}, not {picture.shape}")
    small = coarse(picture)
    time, air = _read_air(picture, small, frame)
    ground = _read_ground(small, time, frame)
    light, light_place = _read_light(small, time, frame) if air == "clear" else ("none", "none")
    sky = _read_sky(picture, small, time, air, light_place, flying, frame)
    clear = _free_columns(light_place if time in LOW_SUN else "none", (), frame)  # a low sun
    if hidden is not None and (clear & ~hidden).mean() > _SEEN:
        clear &= ~hidden
    ridge = _read_ridge(small[:, clear], time, air, sky == "rainbow", frame)
    return Scenery(time, sky, light, light_place, ridge, ground,
                   _read_path(small, time, ground, frame))


# A clear sky gets stars at night, so neither is worth a word
_OPEN = ("clear", "starry")


def phrases_seen(picture: np.ndarray, prompts: Sequence[str]) -> list[str]:
    """Phrases for weather, ridge, ground and path of a picture that none of the prompts states.

    picture: uint8 [H, W, 3] RGB. What flies is taken to be where the prompts have it.
    """
    if frame_of(*picture.shape[:2]) is None:
        return []  # of a postcard with fewer cells
    readings = [spelling.read(prompt) for prompt in prompts]
    flying = [thing.place for reading in readings for thing in reading.things
              if thing.kind in FLYING]
    places = PLACES if None in flying else [place for place in flying if place]
    shown = read_scenery(picture, places)
    said = {name for reading in readings for name in reading.scene}
    return [_PARTS[name, value][0] for name in ("sky", "ridge", "ground", "path")
            if name not in said and (value := getattr(shown, name)) not in _OPEN
            and (name, value) in _PARTS]
