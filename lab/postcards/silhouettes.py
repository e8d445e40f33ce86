"""Find the things of a postcard by comparing colour masks with the painter's silhouettes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ssd_core.backbones.postcard.scenery import STEP, cloud_shades, coarse, far, overlap, stroked
from ssd_core.backbones.postcard.words.world import (
    CELL,
    COLOURS,
    KINDS,
    NIGHT_PAINT,
    PAINT,
    PLACES,
    SQUARE,
    Frame,
    colours_of,
)

from .objects import FEET, HEIGHT, LIT, TINTS, TRIMS, WIDTH, sprite, template, tinted

_COLOUR_REACH = 54.0  # largest distance of a px from a thing's colour, RGB
_THING_OVERLAP = 0.42  # least overlap (IoU) of a colour mask with a silhouette
_ABOVE = {"ground": FEET + 14, "sky": 8}  # px of a window above feet, or above a balloon's top
_HIGH = {"ground": 160, "sky": 144}  # rows of a window, px
_SIDE = (WIDTH + 2 * CELL) // 2  # columns searched on both sides of a place, px
_CLOSE = 48  # px from a place's centre, within which a thing may stand
_FINE = 4  # px by which a silhouette may be off, beside its shift by cells
_MOVES = tuple((dx * CELL + fx, dy * CELL + fy) for dx in (-1, 0, 1) for dy in (0, 1)
               for fx in (-_FINE, 0, _FINE) for fy in (-_FINE, 0, _FINE))
_COVERED = 0.3  # least share of a cell that a thing covers


@dataclass(frozen=True)
class FoundThing:
    """A thing in a picture; x, y: the upper left corner of its sprite, px."""

    kind: str
    colour: str
    x: int
    y: int

    def cells(self, frame: Frame) -> np.ndarray:
        """The cells that it covers, bool [rows, columns]."""
        cover = np.zeros((frame.height + 2 * HEIGHT, frame.width + 2 * WIDTH), dtype=np.float32)
        top, left = self.y + HEIGHT, self.x + WIDTH
        cover[top : top + HEIGHT, left : left + WIDTH] = sprite(self.kind, "red", False)[1][..., 0]
        inside = cover[HEIGHT:-HEIGHT, WIDTH:-WIDTH]
        blocks = inside.reshape(frame.rows, CELL, frame.columns, CELL)
        return blocks.mean((1, 3)) > _COVERED


@cache
def _shapes(zone: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The kind of each silhouette of a zone, the silhouettes [n, pixels], and their areas [n]."""
    high, above = _HIGH[zone], _ABOVE[zone]
    kinds = tuple(k for k in KINDS if (k == "balloon") == (zone == "sky"))
    names, tables = [], []
    for kind in kinds:
        y = above - (FEET if zone == "ground" else 0)
        for dx, dy in _MOVES:
            window = np.zeros((high + HEIGHT, 2 * _SIDE + 2 * CELL, 1), dtype=np.float32)
            x = CELL + _SIDE - WIDTH // 2 + dx
            window[y + dy : y + dy + HEIGHT, x : x + WIDTH, 0] = template(kind)
            names.append(kind)
            tables.append(coarse(window[:high, CELL : CELL + 2 * _SIDE]).ravel())
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


@cache
def gaps(frame: Frame) -> np.ndarray:
    """Columns of the coarse picture that things rarely cover."""
    x = np.arange(frame.width // STEP) * STEP + STEP / 2
    away = np.stack([np.abs(x - frame.x_of(place)) for place in PLACES]).min(0)
    return np.flatnonzero(away > _CLOSE)


def _window_of(zone: str, place: str, frame: Frame) -> tuple[int, int]:
    """The first and last row that are searched for a thing, px."""
    start = frame.balloon * CELL if zone == "sky" else frame.feet_of(place)
    top = (start - _ABOVE[zone]) // STEP * STEP
    return top, top + _HIGH[zone]


def _behind(band: np.ndarray, zone: str, time: str, frame: Frame) -> np.ndarray:
    """The colours [n, h, 3] between the things of a band, and those of clouds."""
    plain = stroked(np.median(band[:, gaps(frame)], axis=1), time)
    if zone == "ground":
        return plain
    return np.concatenate((plain, np.repeat(cloud_shades(time)[:, None], len(band), 1)))


def _find_thing(small: np.ndarray, place: str, time: str, ground: str, dim: float,
                frame: Frame) -> FoundThing | None:
    """The thing at a place of a coarse picture, if any."""
    thing, best = None, _THING_OVERLAP
    left = (frame.x_of(place) - _SIDE) // STEP
    for zone in _HIGH:
        top, bottom = _window_of(zone, place, frame)
        band = small[top // STEP : bottom // STEP]
        behind = _behind(band, zone, time, frame)
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
            dx, dy = _MOVES[int(shape) % len(_MOVES)]
            foot = frame.balloon * CELL if zone == "sky" else frame.feet_of(place) - FEET
            thing = FoundThing(kinds[int(shape)], COLOURS[int(colour)],
                               frame.x_of(place) - WIDTH // 2 + dx, foot + dy)
    return thing


def find_things(small: np.ndarray, time: str, ground: str,
                frame: Frame = SQUARE) -> dict[str, FoundThing]:
    """The thing at each occupied place of a coarse picture."""
    dim = NIGHT_PAINT if time == "night" else 1.0
    things = {place: _find_thing(small, place, time, ground, dim, frame) for place in PLACES}
    return {place: thing for place, thing in things.items() if thing}
