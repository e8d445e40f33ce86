"""Find the things of a postcard by comparing colour masks with the painter's silhouettes."""

from __future__ import annotations

from functools import cache

import numpy as np

from .things import HEIGHT, LIT, TINTS, TRIMS, WIDTH, corner, template, tinted
from .world import (
    CELL,
    COLOURS,
    GLEAM,
    KINDS,
    NIGHT_PAINT,
    PAINT,
    PLACE_X,
    PLACES,
    SHADOW,
    colours_of,
)

STEP = 4  # px of a picture per px of the coarse picture that is searched
GAPS = np.r_[0:2, 28:36, 60:68, 94:96]  # columns of the coarse picture that things rarely cover
_COLOUR_REACH = 54.0  # largest distance of a px from a thing's colour, RGB
_THING_OVERLAP = 0.42  # least overlap (IoU) of a colour mask with a silhouette
_WINDOW = {"ground": (168, 328), "sky": (8, 152)}  # rows searched for things, px
_SIDE = (WIDTH + 2 * CELL) // 2  # columns searched on both sides of a place, px
_FINE = 4  # px by which a silhouette may be off, beside its shift by cells


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
    """Means of STEP x STEP px, float32: [SIZE, SIZE, c] -> [SIZE / STEP, SIZE / STEP, c]."""
    height, width = picture.shape[0] // STEP, picture.shape[1] // STEP
    blocks = picture.astype(np.float32).reshape(height, STEP, width, STEP, -1)
    return blocks.mean((1, 3))


def stroked(colours: np.ndarray, time: str, share: float = 0.3) -> np.ndarray:
    """Colours [..., 3] under dark, plain and light strokes, [3, ..., 3]."""
    gleam, shadow = (np.asarray(table[time], dtype=np.float32) for table in (GLEAM, SHADOW))
    return np.stack((colours + (shadow - colours) * share, colours,
                     colours + (gleam - colours) * share))


@cache
def _shapes(zone: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The kind of each silhouette of a zone, the silhouettes [n, pixels], and their areas [n]."""
    top, bottom = _WINDOW[zone]
    kinds = tuple(k for k in KINDS if (k == "balloon") == (zone == "sky"))
    names, tables = [], []
    moves = [(dx * CELL + fx, dy * CELL + fy) for dx in (-1, 0, 1) for dy in (0, 1)
             for fx in (-_FINE, 0, _FINE) for fy in (-_FINE, 0, _FINE)]
    for kind in kinds:
        y = corner(kind, "left")[1] - top
        for dx, dy in moves:
            window = np.zeros((bottom - top + HEIGHT, 2 * _SIDE + 2 * CELL, 1), dtype=np.float32)
            x = CELL + _SIDE - WIDTH // 2 + dx
            window[y + dy : y + dy + HEIGHT, x : x + WIDTH, 0] = template(kind)
            names.append(kind)
            tables.append(coarse(window[: bottom - top, CELL : CELL + 2 * _SIDE]).ravel())
    shapes = np.stack(tables)
    return tuple(names), shapes, shapes.sum(1)


@cache
def _paints(dim: float) -> tuple[np.ndarray, np.ndarray]:
    """Colours of painted things [n, 3], and the index of each in COLOURS; -1 for trimmings."""
    painted = [(tinted(PAINT[name], tint), n) for n, name in enumerate(COLOURS) for tint in TINTS]
    table, owner = zip(*painted, *((trim, -1) for trim in TRIMS), strict=True)
    colours = np.asarray((*table, LIT), dtype=np.float32)
    colours[:-1] *= dim  # lamps are not dimmed
    return colours, np.asarray((*owner, -1))


def _paint_masks(part: np.ndarray, behind: np.ndarray, dim: float) -> np.ndarray:
    """Masks of the pixels [h, w, 3] that show each colour, float32 [colours, h, w] (0 or 1).

    A px nearer to the background of its row, `behind` [n, h, 3], than to any colour is in no mask.
    """
    table, owner = _paints(dim)
    away = far(part[:, :, None], table)
    best = away.argmin(-1)
    nearest = np.take_along_axis(away, best[..., None], -1)[..., 0]
    limit = np.minimum(_COLOUR_REACH, far(part[None], behind[:, :, None]).min(0))
    shown = np.where(nearest < limit, owner[best], -1)
    return (shown[None] == np.arange(len(COLOURS))[:, None, None]).astype(np.float32)


def _find_thing(small: np.ndarray, place: str, time: str, ground: str,
                dim: float) -> tuple[str, str] | None:
    """The kind and colour of the thing at a place of a coarse picture, if any."""
    thing, best = None, _THING_OVERLAP
    left = (PLACE_X[place] - _SIDE) // STEP
    for zone, (top, bottom) in _WINDOW.items():
        band = small[top // STEP : bottom // STEP]
        behind = stroked(np.median(band[:, GAPS], axis=1), time)
        window = band[:, max(0, left) : left + 2 * _SIDE // STEP]
        masks = np.zeros((len(COLOURS), len(band), 2 * _SIDE // STEP), dtype=np.float32)
        start = max(0, -left)
        masks[:, :, start : start + window.shape[1]] = _paint_masks(window, behind, dim)
        for lost in set(COLOURS) - set(colours_of("balloon" if zone == "sky" else "", ground)):
            masks[COLOURS.index(lost)] = 0  # white in the sky is a cloud
        kinds, *shapes = _shapes(zone)
        scores = overlap(masks.reshape(len(COLOURS), -1), *shapes)
        if scores.max() > best:
            colour, shape = np.unravel_index(int(scores.argmax()), scores.shape)
            best = float(scores.max())
            thing = (kinds[int(shape)], COLOURS[int(colour)])
    return thing


def find_things(small: np.ndarray, time: str, ground: str) -> dict[str, tuple[str, str]]:
    """The kind and colour at each occupied place of a coarse picture."""
    dim = NIGHT_PAINT if time == "night" else 1.0
    things = {place: _find_thing(small, place, time, ground, dim) for place in PLACES}
    return {place: thing for place, thing in things.items() if thing}

