"""Finds the things of a postcard: colour masks compared with the painter's silhouettes."""

from __future__ import annotations

from functools import cache

import numpy as np

from .things import SPRITE, corner, template
from .world import COLOURS, KINDS, PAINT, PLACE_X, PLACES, SIZE

# Largest distance of a px from a thing's colour; white has pale surroundings, so it gets less.
_COLOUR_REACH = {name: 36.0 if name == "white" else 52.0 for name in PAINT}
_THING_OVERLAP = 0.5  # least overlap (IoU) of a colour mask with a silhouette
_SHADES = (0.8, 1.04)  # brightness range of a thing's colour
GAPS = np.r_[0:4, 60:68, 124:132, 188:192]  # columns that no standing thing covers
_WINDOW = {"ground": (78, 154), "sky": (4, 80)}  # rows searched for things


def far(pixels: np.ndarray, colour: object) -> np.ndarray:
    """Euclidean RGB distance of pixels [..., 3] to colours that broadcast against them."""
    difference = pixels - np.asarray(colour, dtype=np.float32)
    return np.sqrt(np.einsum("...c,...c->...", difference, difference))


def overlap(masks: np.ndarray, shapes: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """IoU [m, s] of masks [m, pixels] with shapes [s, pixels] of areas [s], values 0..1."""
    shared = masks @ shapes.T
    union = masks.sum(1)[:, None] + areas[None] - shared
    return shared / np.maximum(union, 1)


def shifted(shape: np.ndarray, reach: int, step: int) -> np.ndarray:
    """All shifts of a shape [h, w] by up to reach px, halved in size and flattened."""
    moves = range(-reach, reach + 1, step)
    rolled = np.stack([np.roll(shape, (dy, dx), (0, 1)) for dy in moves for dx in moves])
    return halve(rolled).reshape(len(rolled), -1)


def halve(masks: np.ndarray) -> np.ndarray:
    """Masks [n, h, w] at half size, [n, h / 2, w / 2]."""
    count, height, width = masks.shape
    return masks.reshape(count, height // 2, 2, width // 2, 2).mean((2, 4))


@cache
def _shapes(zone: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The kinds of a zone, their shifted silhouettes [kinds * shifts, pixels], and the areas."""
    top, bottom = _WINDOW[zone]
    kinds = tuple(k for k in KINDS if (k == "balloon") == (zone == "sky"))
    tables = []
    for kind in kinds:
        window = np.zeros((bottom - top, SPRITE), dtype=np.float32)
        start = corner(kind, "left")[1] - top
        rows = min(SPRITE, bottom - top - start)
        window[start : start + rows] = template(kind)[:rows]
        tables.append(shifted(window, 4, 1))
    shapes = np.concatenate(tables)
    return kinds, shapes, shapes.sum(1)


def _paint_masks(window: np.ndarray, behind: np.ndarray) -> np.ndarray:
    """Which pixels [h, w, 3] show each colour of a thing, float32 [colours, h, w] (0 or 1).

    A px nearer to what lies `behind` in its row, [h, 3], than to any colour counts for none.
    """
    colours = np.asarray([PAINT[name] for name in COLOURS], dtype=np.float32)
    # The distance to the nearest shade t * c of a colour c: |p|^2 - 2 t p.c + t^2 |c|^2.
    along, length = np.tensordot(colours, window, (1, 2)), (colours**2).sum(1)[:, None, None]
    shade = np.clip(along / length, *_SHADES)
    squared = (window**2).sum(2) - 2 * shade * along + shade**2 * length
    table = np.sqrt(np.maximum(squared, 0))
    best = table.argmin(0)[None] == np.arange(len(COLOURS))[:, None, None]
    reach = np.asarray([_COLOUR_REACH[name] for name in COLOURS])[:, None, None]
    limit = np.minimum(reach, far(window, behind[:, None]))
    return (best & (table < limit)).astype(np.float32)


def _find_thing(small: np.ndarray, place: str) -> tuple[str, str] | None:
    """The kind and colour of the thing at a place of a half-size picture [96, 96, 3], if any."""
    found, best = None, _THING_OVERLAP
    left = (PLACE_X[place] - SPRITE // 2) // 2
    for zone, (top, bottom) in _WINDOW.items():
        band = small[top // 2 : bottom // 2]
        behind = np.median(band[:, GAPS[::2] // 2], axis=1)
        masks = _paint_masks(band[:, left : left + SPRITE // 2], behind)
        if zone == "sky":  # what is white in the sky is a cloud: no balloon is white
            masks[COLOURS.index("white")] = 0
        kinds, *shapes = _shapes(zone)
        scores = overlap(masks.reshape(len(COLOURS), -1), *shapes)
        if scores.max() > best:
            colour, shape = np.unravel_index(int(scores.argmax()), scores.shape)
            best = float(scores.max())
            found = (kinds[int(shape) * len(kinds) // len(shapes[0])], COLOURS[int(colour)])
    return found


def find_things(image: np.ndarray) -> dict[str, tuple[str, str]]:
    """The kind and colour at each occupied place."""
    small = image.reshape(SIZE // 2, 2, SIZE // 2, 2, 3).mean((1, 3))
    found = {place: _find_thing(small, place) for place in PLACES}
    return {place: thing for place, thing in found.items() if thing}
