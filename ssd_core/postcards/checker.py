"""Read a postcard's attributes from its pixels by simple rules, and check claims by them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from .claims import Claim
from .land import ground_rows
from .reading import UNCLEAR, Reading, which_hold
from .silhouettes import STEP, coarse, far, find_things, overlap, stroked
from .sky import sky_rows
from .world import (
    CAP,
    CELL,
    CLOUD,
    GROUND,
    GROUNDS,
    HILL,
    HORIZON,
    LIGHT,
    LIGHT_RADIUS,
    LIGHT_Y,
    PLACE_X,
    PLACES,
    ROAD,
    ROCK,
    SIZE,
    TIMES,
    VEIL,
    WATER,
    WOOD,
)

_LIGHT_OVERLAP = 0.45
_STARRY, _CLOUDY = 0.0025, 0.07  # least share of the sky with stars, with clouds
_VEILED = 0.7  # factor on the fit of rain and fog to a sky


def _rows(top: int, bottom: int) -> slice:
    """Rows of a picture, px, as rows of the coarse picture."""
    return slice(top // STEP, bottom // STEP)


def _nearest(pixels: np.ndarray, tables: dict[str, np.ndarray], reach: float) -> dict[str, float]:
    """The share of pixels [..., 3] nearest to each named set of colours [n, ..., 3].

    A px farther than `reach` from all sets is not counted.
    """
    away = np.stack([far(pixels[None], table).min(0) for table in tables.values()])
    best = np.where(away.min(0) < reach, away.argmin(0), -1)
    return {name: float((best == i).mean()) for i, name in enumerate(tables)}


# ---- sky ---------------------------------------------------------------------------------------


@cache
def _sky_table(time: str, veil: str) -> np.ndarray:
    """The colours of a sky's strokes, one for each row of the coarse picture, [3, rows, 1, 3]."""
    rows = sky_rows(time, veil).reshape(-1, STEP, 3).mean(1)
    return stroked(rows, time, 0.2 if veil in VEIL else 0.34)[:, :, None]


def _read_air(small: np.ndarray) -> tuple[str, str]:
    """Time of day, and "clear", "rain" or "fog", by the colours of the sky above the ridges."""
    rows = _rows(0, 132)
    scores = {}
    for time in TIMES:
        for veil in ("clear", *VEIL):
            away = far(small[None, rows], _sky_table(time, veil)[:, rows]).min(0)
            fit = float(np.exp(-((away / 24) ** 2)).mean())
            # A sky of rain or fog has no clouds, stars or light: all of it must fit.
            scores[time, veil] = fit if veil == "clear" else _VEILED * fit
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


def _light_score(small: np.ndarray, place: str, colours: np.ndarray) -> float:
    top, left = (LIGHT_Y - 48) // STEP, (PLACE_X[place] - 48) // STEP
    window = small[top : top + 96 // STEP, left : left + 96 // STEP]
    mask = (far(window[None], colours[:, None, None]).min(0) < 34).astype(np.float32)
    return float(overlap(mask.reshape(1, -1), *_discs()).max())


def _read_light(small: np.ndarray, time: str) -> tuple[str, str]:
    """The light and its place; a light's disc is paler in the middle than at the edge."""
    colour = np.asarray(LIGHT[time if time in TIMES else "day"], dtype=np.float32)
    shades = np.stack([colour + (255 - colour) * share for share in (0, 0.2, 0.4)])
    scores = {place: _light_score(small, place, shades) for place in PLACES}
    best = max(scores, key=scores.__getitem__)
    if scores[best] < _LIGHT_OVERLAP:
        return "none", "none"
    return "moon" if time == "night" else "sun", best


def _free_columns(light_place: str, things: dict[str, tuple[str, str]]) -> np.ndarray:
    """Columns of the coarse picture whose sky has neither light nor balloon, bool."""
    free = np.ones(SIZE // STEP, dtype=bool)
    balloons = {place for place, (kind, _) in things.items() if kind == "balloon"}
    for place in (balloons | {light_place}) & set(PLACES):
        free[(PLACE_X[place] - 56) // STEP : (PLACE_X[place] + 56) // STEP] = False
    return free


def _star_share(picture: np.ndarray, free: np.ndarray) -> float:
    """The share of px as bright as a star's core, of which a dark sky has no others."""
    grey = picture[: 3 * CELL, np.repeat(free, STEP)].min(2)
    return float((grey > 170).mean())


def _cloud_share(small: np.ndarray, time: str, free: np.ndarray) -> float:
    """The share of px that show a cloud."""
    rows = _rows(0, 92)
    top, belly = (np.asarray(c, dtype=np.float32) for c in CLOUD[time])
    shades = np.stack([top + (belly - top) * share for share in (0, 0.35, 0.7, 1)])
    part = small[rows][:, free]
    sky = _sky_table(time, "clear")[:, rows]
    shares = _nearest(part, {"sky": np.broadcast_to(sky, (3, *part.shape)),
                             "cloud": np.broadcast_to(shades[:, None, None], (4, *part.shape))}, 40)
    return shares["cloud"]


def _read_sky(picture: np.ndarray, small: np.ndarray, time: str, air: str, light_place: str,
              things: dict[str, tuple[str, str]]) -> str:
    if air != "clear":
        return air
    free = _free_columns(light_place, things)
    if time == "night" and _star_share(picture, free) > _STARRY:
        return "starry"
    return "cloudy" if _cloud_share(small, time, free) > _CLOUDY else "clear"


# ---- land --------------------------------------------------------------------------------------


def _pair(table: dict, time: str) -> np.ndarray:
    return np.asarray(table[time], dtype=np.float32)


@cache
def _ridge_tables(time: str, air: str, top: int, bottom: int) -> dict[str, np.ndarray]:
    """For rows of a coarse picture: the colours that sky and ridges show there [n, rows, 1, 3]."""
    rows = np.arange(top, bottom, STEP, dtype=np.float32) + STEP / 2
    air_share = np.clip((rows - HORIZON + 144) / 144, 0, 1)[:, None] ** 2
    haze = sky_rows(time, air)[HORIZON]
    veil = 0.52 * np.exp(-(((rows - HORIZON) / 70) ** 2))[:, None] if air == "fog" else 0
    fog = np.asarray(VEIL["fog"][time], dtype=np.float32)

    def shown(colours: np.ndarray, hazy: float, strokes: float) -> np.ndarray:
        layers = colours[:, None] + (haze - colours[:, None]) * (hazy * air_share)
        strokes_of = stroked(layers, time, strokes).reshape(-1, len(rows), 3)
        return (strokes_of + (fog - strokes_of) * veil)[:, :, None]

    rock = _pair(ROCK, time)
    rock = np.stack((rock[0], rock.mean(0), rock[1]))
    sky = _sky_table(time, air)[:, top // STEP : bottom // STEP]
    return {"none": sky + (fog - sky) * np.asarray(veil)[..., None] if air == "fog" else sky,
            "hills": shown(_pair(HILL, time), 0.27, 0.24), "rock": shown(rock, 0.5, 0.2),
            "cap": shown(_pair(CAP, time), 0.0, 0.2), "forest": shown(_pair(WOOD, time), 0.15, 0.2)}


def _read_ridge(small: np.ndarray, time: str, air: str) -> str:
    """Read the ridge from the colours between sky and ground, at several heights."""
    if time == UNCLEAR:
        return UNCLEAR

    def shares(top: int, bottom: int) -> dict[str, float]:
        return _nearest(small[_rows(top, bottom)], _ridge_tables(time, air, top, bottom), 45)

    foot, low, middle, high = shares(196, 208), shares(180, 204), shares(144, 176), shares(100, 120)
    if foot["none"] > 0.5:
        return "none"
    if middle["rock"] > 0.3 and middle["rock"] > middle["none"]:
        return "snowy" if high["cap"] > high["rock"] else "mountains"
    return max(("none", "hills", "forest"), key=low.__getitem__)


@cache
def _ground_tables(time: str, top: int, bottom: int) -> dict[str, np.ndarray]:
    """For rows of the coarse picture: the colours that each ground shows there [n, rows, 1, 3]."""
    share = {"sea": 0.42, "lake": 0.4, "sand": 0.16, "snow": 0.16}
    tables = {}
    for ground in GROUNDS:
        rows = ground_rows(ground, time)[top:bottom, 0].reshape(-1, STEP, 3).mean(1)
        tables[ground] = stroked(rows, time, share.get(ground, 0.25))[:, :, None]
    return tables


def _read_ground(small: np.ndarray, time: str) -> str:
    if time == UNCLEAR:
        return UNCLEAR
    shares = _nearest(small[_rows(332, 380)], _ground_tables(time, 332, 380), 45)
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] > 0.25 else UNCLEAR


def _blossoms(small: np.ndarray, time: str) -> float:
    """The share of px that are redder than any meadow."""
    part = small[_rows(328, 380)]
    table = _ground_tables(time, 328, 380)["meadow"]
    redder = part[..., 0] - part[..., 1] - (table[..., 0] - table[..., 1]).max(0)
    return float((redder > 30).mean())


def _read_path(small: np.ndarray, time: str, ground: str) -> str:
    """The path over the ground, read at the bottom edge, where it is widest."""
    if ground in WATER or ground == UNCLEAR:
        return "none"
    part = small[_rows(332, 380)][:, 100 // STEP : 300 // STEP]
    down = np.arange(332, 380, STEP, dtype=np.float32) - HORIZON
    share = np.clip(down / (SIZE - HORIZON), 0, 1)

    def along(pair: np.ndarray) -> np.ndarray:
        return stroked(pair[0] + (pair[1] - pair[0]) * share[:, None], time, 0.24)[:, :, None]

    tables = {"none": _ground_tables(time, 332, 380)[ground], "road": along(_pair(ROAD, time)),
              "river": along(_pair(GROUND["lake"], time))}
    shares = _nearest(part, tables, 45)
    best = max(("road", "river"), key=shares.__getitem__)
    if shares[best] > 0.2:
        return best
    return "flowers" if ground == "meadow" and _blossoms(small, time) > 0.02 else "none"


# ---- all of it ---------------------------------------------------------------------------------


def read(picture: np.ndarray) -> Reading:
    """Read a picture, uint8 [384, 384, 3] RGB."""
    if picture.shape != (SIZE, SIZE, 3):
        raise ValueError(f"a postcard has shape ({SIZE}, {SIZE}, 3), not {picture.shape}")
    small = coarse(picture)
    time, air = _read_air(small)
    lit = time if time in TIMES else "day"
    ground = _read_ground(small, time)
    things = find_things(small, lit, ground)
    light, light_place = _read_light(small, time) if air == "clear" else ("none", "none")
    sky = _read_sky(picture, small, time, air, light_place, things)
    return Reading(time, sky, light, light_place, _read_ridge(small, time, air), ground,
                   things, _read_path(small, time, ground))


def check(image: np.ndarray, claims: Iterable[Claim]) -> tuple[bool, ...]:
    """Whether each claim holds, in order, from a picture uint8 [384, 384, 3] alone."""
    return which_hold(read(image), claims)
