"""Reads a postcard's attributes from its pixels by plain rules and judges claims by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageFilter

from .captions import COUNTS, Claim
from .painter import paint
from .silhouettes import GAPS, far, find_things, halve, overlap, shifted
from .sky import sky_rows
from .world import (
    CAP,
    CLOUD,
    GROUND,
    HORIZON,
    LIGHT,
    LIGHT_RADIUS,
    LIGHT_Y,
    PLACE_X,
    PLACES,
    SIZE,
    SKY,
    TIMES,
    Scene,
)

UNCLEAR = "unclear"  # what a reading says where the pixels fit no value
_SKY_REACH = 60.0  # largest mean distance of a sky from its palette, in RGB units
_LIGHT_OVERLAP = 0.55
_BAND = slice(64, HORIZON)  # rows in which ridges rise


@dataclass(frozen=True)
class Reading:
    """What the pixels show; "none" stands for absent, "unclear" for no value that fits.

    `things` maps an occupied place to the kind and colour found there.
    """

    time: str
    sky: str
    light: str
    light_place: str
    ridge: str
    ground: str
    things: dict[str, tuple[str, str]]


# ---- sky ---------------------------------------------------------------------------------------


def _read_time(image: np.ndarray) -> str:
    """The time whose gradient is nearest to the sky above and below the clouds."""
    rows = np.r_[0:10, 50:60]
    shown = np.median(image[rows], axis=1)
    errors = {time: float(far(shown, sky_rows(time)[rows]).mean()) for time in TIMES}
    best = min(errors, key=errors.__getitem__)
    return best if errors[best] < _SKY_REACH else UNCLEAR


@cache
def _discs() -> tuple[np.ndarray, np.ndarray]:
    """Shifted discs [shifts, pixels] in 48 x 48 px around the light's place, and their areas."""
    axis = np.arange(48) - 23.5
    disc = np.hypot(axis[:, None], axis[None, :]) <= LIGHT_RADIUS
    discs = shifted(disc.astype(np.float32), 6, 2)
    return discs, discs.sum(1)


def _light_score(image: np.ndarray, place: str, colour: tuple[int, int, int]) -> float:
    top, left = LIGHT_Y - 24, PLACE_X[place] - 24
    window = image[top : top + 48, left : left + 48]
    mask = (far(window, colour) < 40).astype(np.float32)
    return float(overlap(halve(mask[None]).reshape(1, -1), *_discs()).max())


def _read_light(image: np.ndarray, time: str) -> tuple[str, str]:
    """Which light shines and where."""
    lamps = {"sun": LIGHT["day" if time in (UNCLEAR, "night") else time], "moon": LIGHT["night"]}
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
    to_sky = far(part, sky_rows(time)[12:52, None])
    to_cloud = np.minimum(*(far(part, colour) for colour in CLOUD[time]))
    return float((to_cloud < np.minimum(to_sky, 60)).mean())


def _read_sky(image: np.ndarray, time: str, columns: np.ndarray) -> str:
    if time == UNCLEAR:
        return UNCLEAR
    if _cloud_share(image, time, columns) > 0.2:
        return "cloudy"
    dark = float(np.mean(SKY[time][0])) < 60
    return "starry" if dark and _star_share(image, columns) > 0.006 else "clear"


# ---- land --------------------------------------------------------------------------------------


def _read_ridge(image: np.ndarray, time: str) -> str:
    """Told by the skyline: hills stay low, mountains reach high, snowy ones are capped."""
    if time == UNCLEAR:
        return UNCLEAR
    off_sky = far(image[_BAND], sky_rows(time)[_BAND, None]) > 28
    if off_sky[36:45][:, GAPS].mean() < 0.5:
        return "none"
    if off_sky[7:16].mean() < 0.3:
        return "hills"
    capped = (far(image[_BAND][:16], CAP[time]) < 44) & off_sky[:16]
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
    return np.median(image[160:188][:, GAPS], axis=(0, 1))


def _read_ground(image: np.ndarray, time: str) -> str:
    shown = _ground_colour(image)
    errors = {g: float(far(shown, _ground_colours()[time, g])) for g in GROUND if time in TIMES}
    best = min(errors, key=errors.__getitem__, default=UNCLEAR)
    return best if errors.get(best, 99) < 45 else UNCLEAR


# ---- verdicts ----------------------------------------------------------------------------------


def read(picture: np.ndarray) -> Reading:
    """Reads a picture, uint8 [192, 192, 3] RGB."""
    if picture.shape != (SIZE, SIZE, 3):
        raise ValueError(f"a postcard has shape ({SIZE}, {SIZE}, 3), not {picture.shape}")
    image = picture.astype(np.float32)
    time, things = _read_time(image), find_things(image)
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


def verdicts(reading: Reading, claims: Iterable[Claim]) -> tuple[bool, ...]:
    """One verdict per claim, in order, from what a picture shows."""
    listed = tuple(claims)
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


def check(image: np.ndarray, claims: Iterable[Claim]) -> tuple[bool, ...]:
    """One verdict per claim, in order, from a picture uint8 [192, 192, 3] alone."""
    return verdicts(read(image), claims)
