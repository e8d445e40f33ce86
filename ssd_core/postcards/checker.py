"""Reads a postcard's attributes from its pixels by plain rules and judges claims by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageFilter

from .captions import COUNTS, Claim
from .painter import paint
from .sky import sky_rows
from .things import SPRITE, corner, template
from .world import (
    CAP,
    CLOUD,
    COLOURS,
    GROUND,
    KINDS,
    LIGHT,
    LIGHT_RADIUS,
    LIGHT_Y,
    PAINT,
    PLACE_X,
    PLACES,
    SIZE,
    SKY,
    TIMES,
    Scene,
)

_SKY_REACH = 60.0  # largest mean distance of a sky from its palette, in RGB units
# Largest distance of a px from a thing's colour; white has pale surroundings, so it gets less.
_COLOUR_REACH = {name: 36.0 if name == "white" else 52.0 for name in PAINT}
_THING_OVERLAP = 0.5  # least overlap (IoU) of a colour mask with a silhouette
_LIGHT_OVERLAP = 0.55
_SHADES = (0.8, 1.04)  # brightness range of a thing's colour
_GAPS = np.r_[0:4, 60:68, 124:132, 188:192]  # columns that no standing thing covers
_WINDOW = {"ground": (78, 154), "sky": (4, 80)}  # rows searched for things


@dataclass(frozen=True)
class Reading:
    """What the pixels show; "none" stands for absent or unclear.

    `things` maps an occupied place to the kind and colour found there.
    """

    time: str
    sky: str
    light: str
    light_place: str
    ridge: str
    ground: str
    things: dict[str, tuple[str, str]]


def _far(pixels: np.ndarray, colour: object) -> np.ndarray:
    """Euclidean RGB distance of pixels [..., 3] to colours that broadcast against them."""
    difference = pixels - np.asarray(colour, dtype=np.float32)
    return np.sqrt(np.einsum("...c,...c->...", difference, difference))


# ---- overlap with silhouettes ------------------------------------------------------------------


def _overlap(masks: np.ndarray, shapes: np.ndarray) -> np.ndarray:
    """IoU [m, s] of masks [m, pixels] with shapes [s, pixels], values 0..1."""
    shared = masks @ shapes.T
    union = masks.sum(1)[:, None] + shapes.sum(1)[None] - shared
    return shared / np.maximum(union, 1)


def _shifted(shape: np.ndarray, reach: int, step: int) -> np.ndarray:
    """All shifts of a shape [h, w] by up to reach px, halved in size and flattened."""
    moves = range(-reach, reach + 1, step)
    rolled = np.stack([np.roll(shape, (dy, dx), (0, 1)) for dy in moves for dx in moves])
    return _halve(rolled).reshape(len(rolled), -1)


def _halve(masks: np.ndarray) -> np.ndarray:
    count, height, width = masks.shape
    return masks.reshape(count, height // 2, 2, width // 2, 2).mean((2, 4))


@cache
def _shapes(zone: str) -> tuple[tuple[str, ...], np.ndarray]:
    """The kinds of a zone and their shifted silhouettes [kinds * shifts, pixels]."""
    top, bottom = _WINDOW[zone]
    kinds = tuple(k for k in KINDS if (k == "balloon") == (zone == "sky"))
    tables = []
    for kind in kinds:
        window = np.zeros((bottom - top, SPRITE), dtype=np.float32)
        start = corner(kind, "left")[1] - top
        rows = min(SPRITE, bottom - top - start)
        window[start : start + rows] = template(kind)[:rows]
        tables.append(_shifted(window, 4, 1))
    return kinds, np.concatenate(tables)


def _paint_masks(window: np.ndarray, behind: np.ndarray) -> np.ndarray:
    """Which pixels [h, w, 3] show each colour of a thing, float32 [colours, h, w] (0 or 1).

    A px nearer to what lies `behind` in its row, [h, 3], than to any colour counts for none.
    """
    distances = []
    for name in COLOURS:
        colour = np.asarray(PAINT[name], dtype=np.float32)
        shade = np.clip(window @ colour / (colour @ colour), *_SHADES)
        distances.append(_far(window, shade[..., None] * colour))
    table = np.stack(distances)
    best = table.argmin(0)[None] == np.arange(len(COLOURS))[:, None, None]
    reach = np.asarray([_COLOUR_REACH[name] for name in COLOURS])[:, None, None]
    table_behind = _far(window, behind[:, None])
    return (best & (table < np.minimum(reach, table_behind))).astype(np.float32)


def _find_thing(small: np.ndarray, place: str) -> tuple[str, str] | None:
    """The kind and colour of the thing at a place of a half-size picture [96, 96, 3], if any."""
    found, best = None, _THING_OVERLAP
    left = (PLACE_X[place] - SPRITE // 2) // 2
    for zone, (top, bottom) in _WINDOW.items():
        band = small[top // 2 : bottom // 2]
        behind = np.median(band[:, _GAPS[::2] // 2], axis=1)
        masks = _paint_masks(band[:, left : left + SPRITE // 2], behind)
        if zone == "sky":  # what is white in the sky is a cloud: no balloon is white
            masks[COLOURS.index("white")] = 0
        kinds, shapes = _shapes(zone)
        scores = _overlap(masks.reshape(len(COLOURS), -1), shapes)
        if scores.max() > best:
            colour, shape = np.unravel_index(int(scores.argmax()), scores.shape)
            best = float(scores.max())
            found = (kinds[int(shape) * len(kinds) // len(shapes)], COLOURS[int(colour)])
    return found


def _find_things(image: np.ndarray) -> dict[str, tuple[str, str]]:
    """The kind and colour at each occupied place."""
    small = image.reshape(SIZE // 2, 2, SIZE // 2, 2, 3).mean((1, 3))
    found = {place: _find_thing(small, place) for place in PLACES}
    return {place: thing for place, thing in found.items() if thing}


# ---- sky ---------------------------------------------------------------------------------------


def _read_time(image: np.ndarray) -> str:
    """The time whose gradient is nearest to the sky above and below the clouds."""
    rows = np.r_[0:10, 50:60]
    shown = np.median(image[rows], axis=1)
    errors = {time: float(_far(shown, sky_rows(time)[rows]).mean()) for time in TIMES}
    best = min(errors, key=errors.__getitem__)
    return best if errors[best] < _SKY_REACH else "none"


@cache
def _discs() -> np.ndarray:
    """Shifted discs [shifts, pixels] in a window of 48 x 48 px around the light's place."""
    axis = np.arange(48) - 23.5
    disc = np.hypot(axis[:, None], axis[None, :]) <= LIGHT_RADIUS
    return _shifted(disc.astype(np.float32), 6, 2)


def _light_score(image: np.ndarray, place: str, colour: tuple[int, int, int]) -> float:
    top, left = LIGHT_Y - 24, PLACE_X[place] - 24
    window = image[top : top + 48, left : left + 48]
    mask = (_far(window, colour) < 40).astype(np.float32)
    return float(_overlap(_halve(mask[None]).reshape(1, -1), _discs()).max())


def _read_light(image: np.ndarray, time: str) -> tuple[str, str]:
    """Which light shines and where."""
    lamps = {"sun": LIGHT["day" if time in ("none", "night") else time], "moon": LIGHT["night"]}
    scores = {
        (name, place): _light_score(image, place, colour)
        for name, colour in lamps.items()
        for place in PLACES
    }
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] > _LIGHT_OVERLAP else ("none", "none")


def _free_columns(light_place: str, things: dict[str, tuple[str, str]]) -> np.ndarray:
    """Columns of the sky with neither light nor balloon."""
    free = np.ones(SIZE, dtype=bool)
    taken = {place for place, (kind, _) in things.items() if kind == "balloon"} | {light_place}
    for place in taken & set(PLACES):
        free[PLACE_X[place] - 30 : PLACE_X[place] + 30] = False
    return np.flatnonzero(free)


def _star_share(image: np.ndarray, columns: np.ndarray) -> float:
    """The share of px that are much brighter than what surrounds them."""
    grey = Image.fromarray(image[:62].mean(2).clip(0, 255).astype(np.uint8))
    around = np.asarray(grey.filter(ImageFilter.BoxBlur(6)), dtype=np.float32)
    spots = np.asarray(grey, dtype=np.float32) - around > 34
    return float(spots[2:58, columns].mean())


def _cloud_share(image: np.ndarray, time: str, columns: np.ndarray) -> float:
    """The share of px nearer to a cloud's colour than to the open sky of their row."""
    part = image[12:52][:, columns]
    to_sky = _far(part, sky_rows(time)[12:52, None])
    to_cloud = np.minimum(*(_far(part, colour) for colour in CLOUD[time]))
    return float((to_cloud < np.minimum(to_sky, 60)).mean())


def _read_sky(image: np.ndarray, time: str, columns: np.ndarray) -> str:
    if time == "none":
        return "none"
    if _cloud_share(image, time, columns) > 0.2:
        return "cloudy"
    dark = float(np.mean(SKY[time][0])) < 60
    return "starry" if dark and _star_share(image, columns) > 0.006 else "clear"


# ---- land --------------------------------------------------------------------------------------


def _read_ridge(image: np.ndarray, time: str) -> str:
    """Told by the skyline: hills stay low, mountains reach high, snowy ones are capped."""
    if time == "none":
        return "none"
    off_sky = _far(image, sky_rows(time)[:, None]) > 28
    if off_sky[100:109][:, _GAPS].mean() < 0.5:
        return "none"
    if off_sky[71:80].mean() < 0.3:
        return "hills"
    band = image[64:80]
    capped = (_far(band, CAP[time]) < 44) & off_sky[64:80]
    return "snowy" if capped.mean() > 0.12 else "mountains"


@cache
def _ground_colours() -> dict[tuple[str, str], np.ndarray]:
    """The mean colour [3] of each ground at each time, from pictures without things."""
    table = {}
    for time in TIMES:
        for ground in GROUND:
            scene = Scene(time, "clear", "none", "none", "none", ground, ())
            table[time, ground] = _ground_colour(paint(scene).astype(np.float32))
    return table


def _ground_colour(image: np.ndarray) -> np.ndarray:
    return np.median(image[160:188][:, _GAPS], axis=(0, 1))


def _read_ground(image: np.ndarray, time: str) -> str:
    shown = _ground_colour(image)
    errors = {g: float(_far(shown, _ground_colours()[time, g])) for g in GROUND if time in TIMES}
    best = min(errors, key=errors.__getitem__, default="none")
    return best if errors.get(best, 99) < 45 else "none"


# ---- verdicts ----------------------------------------------------------------------------------


def read(picture: np.ndarray) -> Reading:
    """Reads a picture, uint8 [192, 192, 3] RGB."""
    if picture.shape != (SIZE, SIZE, 3):
        raise ValueError(f"a postcard has shape ({SIZE}, {SIZE}, 3), not {picture.shape}")
    image = picture.astype(np.float32)
    time, things = _read_time(image), _find_things(image)
    light, light_place = _read_light(image, time)
    sky = _read_sky(image, time, _free_columns(light_place, things))
    ridge, ground = _read_ridge(image, time), _read_ground(image, time)
    return Reading(time, sky, light, light_place, ridge, ground, things)


def _thing_verdict(reading: Reading, claim: Claim, about: dict[str, str]) -> bool:
    """Judges a claim on a thing of which the caption says `about` (attribute to value).

    With a place stated, the thing standing there is judged. Otherwise all things are, and the
    colour is looked for on a thing of the stated kind when there is one.
    """
    shown = reading.things
    if "place" in about:
        candidates = [shown[about["place"]]] if about["place"] in shown else []
    else:
        candidates = list(shown.values())
    same = [thing for thing in candidates if thing[0] == about.get("kind", thing[0])]
    if claim.attribute == "colour":
        pool = candidates if "place" in about else same or candidates
        return any(thing[1] == claim.value for thing in pool)
    return bool(same)


def _scene_verdict(reading: Reading, claim: Claim) -> bool:
    if claim.attribute == "count":
        return COUNTS[: len(reading.things)][-1:] == (claim.value,)
    return getattr(reading, claim.attribute) == claim.value


def check(image: np.ndarray, claims: Iterable[Claim]) -> tuple[bool, ...]:
    """One verdict a claim, in their order, from a picture uint8 [192, 192, 3] alone."""
    listed, reading = tuple(claims), read(image)
    about: dict[int, dict[str, str]] = {}
    for claim in listed:
        if claim.thing is not None:
            about.setdefault(claim.thing, {})[claim.attribute] = claim.value
    return tuple(
        _scene_verdict(reading, claim)
        if claim.thing is None
        else _thing_verdict(reading, claim, about[claim.thing])
        for claim in listed
    )
