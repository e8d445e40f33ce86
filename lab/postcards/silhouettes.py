"""Find the things of a postcard by comparing colour masks with the painter's drawings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F

from ssd_core.backbones.postcard.scenery import (
    STEP,
    cloud_shades,
    coarse,
    far,
    ground_rows,
    sky_rows,
    stroked,
)
from ssd_core.backbones.postcard.words.world import (
    CELL,
    COLOURS,
    FAR_PLACES,
    FLYING,
    KINDS,
    PAINT,
    PLACES,
    SQUARE,
    TONE,
    Frame,
    colours_of,
    kinds_of,
    may_be_many,
)

from .drawings import DRAWINGS
from .objects import COVERED
from .pen import BELOW, HIGH, WIDE, Look, Pen, tinted

_COLOUR_REACH = 50.0  # largest distance of a px from a thing's colour, RGB
_THING_OVERLAP = 0.4  # least overlap (IoU) of a colour mask with a drawing
_TINTS, _LIGHTS = (0.78, 0.9, 1.0, 1.1), (-0.8, -0.4, 0.0, 0.5)  # as things have them
_FINE = 4  # px by which a drawing may be off, beside its shift by cells
_ACROSS = {True: (-1, 2), False: (-1, 1)}  # cells by which a thing, alone or not, may be moved
_DOWN = (0, 2)
_LEAST = 0.04  # of a window that a colour must fill to be looked for


@dataclass(frozen=True)
class FoundThing:
    """A thing in a picture; x, y: the upper left corner of its drawing, px. size: px of a unit."""

    kind: str
    colour: str
    x: int
    y: int
    size: float
    drawing: int
    flip: bool
    fit: float

    def cells(self, frame: Frame) -> np.ndarray:
        """The cells that it covers, bool [rows, columns]."""
        cover = _drawn(self.kind, self.drawing, self.flip, self.size)[0]
        high, wide = cover.shape
        padded = np.zeros((frame.height + 2 * high, frame.width + 2 * wide), dtype=np.float32)
        padded[self.y + high : self.y + 2 * high, self.x + wide : self.x + 2 * wide] = cover
        inside = padded[high:-high, wide:-wide]
        return inside.reshape(frame.rows, CELL, frame.columns, CELL).mean((1, 3)) > COVERED


@cache
def _drawn(kind: str, drawing: int, flip: bool, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Cover [h, w] of a drawing, and of its parts in the thing's own colour."""
    pen = Pen(Look(PAINT["red"], size, flip), finer=1)
    DRAWINGS[kind][drawing](pen)
    return pen.cover, pen.own


@dataclass(frozen=True)
class _Shapes:
    """Drawings of one size: (kind, drawing, flip) of each, own covers [n, 1, h, w], areas [n]."""

    names: tuple[tuple[str, int, bool], ...]
    covers: torch.Tensor
    areas: torch.Tensor
    kinds: np.ndarray


@cache
def _shapes(flying: bool, size: float) -> _Shapes:
    """All drawings of what flies, or of what stands, as they fall on the coarse picture."""
    names, covers = [], []
    top = 0 if flying else -round((HIGH - BELOW) * size) % STEP
    high = -(-(round(HIGH * size) + top) // STEP) * STEP
    for kind in (kind for kind in KINDS if (kind in FLYING) == flying):
        for drawing in range(len(DRAWINGS[kind])):
            for flip in (False, True):
                own = _drawn(kind, drawing, flip, size)[1]
                placed = np.zeros((high, own.shape[1], 1), dtype=np.float32)
                placed[top : top + len(own), :, 0] = own
                names.append((kind, drawing, flip))
                covers.append(coarse(placed)[..., 0])
    table = torch.from_numpy(np.stack(covers))[:, None]
    return _Shapes(tuple(names), table, table.sum((1, 2, 3)), np.asarray([n[0] for n in names]))


@cache
def _paints(time: str) -> tuple[np.ndarray, np.ndarray]:
    """Colours of painted things at an hour [n, 3], and the index of each in COLOURS."""
    factor, high, low = (np.asarray(part, dtype=np.float32) for part in TONE[time])
    table, owner = [], []
    for n, name in enumerate(COLOURS):
        for tint in _TINTS:
            colour = np.asarray(tinted(PAINT[name], tint), dtype=np.float32) * factor
            for light in _LIGHTS:
                shown = colour + (high - colour) * 0.4 * max(light, 0.0)
                table.append(shown * (1 - (1 - low) * 0.85 * max(-light, 0.0)))
                owner.append(n)
    return np.asarray(table, dtype=np.float32), np.asarray(owner)


def _behind(small: np.ndarray, time: str, sky: str, ground: str, frame: Frame) -> np.ndarray:
    """The colours [n, h, 1, 3] that sky and ground have in each row of the coarse picture."""
    rows = np.concatenate((sky_rows(time, sky, frame)[: frame.horizon],
                           ground_rows(ground, time, frame)[frame.horizon :, 0]))
    plain = rows.reshape(-1, STEP, 3).mean(1)
    shown = stroked(plain, time, 0.3)
    usual = stroked(np.median(small[:, gaps(frame)], axis=1), time, 0.2)
    clouds = np.repeat(cloud_shades(time)[:, None], len(small), 1)
    clouds[:, frame.horizon // STEP :] = -999
    return np.concatenate((shown, usual, clouds))[:, :, None]


@cache
def gaps(frame: Frame) -> np.ndarray:
    """Columns of the coarse picture that things rarely cover."""
    x = np.arange(frame.width // STEP) * STEP + STEP / 2
    away = np.stack([np.abs(x - frame.x_of(place)) for place in PLACES]).min(0)
    return np.flatnonzero(away > 0.75 * away.max())


def _masks(small: np.ndarray, time: str, sky: str, ground: str, frame: Frame) -> np.ndarray:
    """Masks of the px of a coarse picture that show each colour, [colours, h, w] (0 or 1).

    A px nearer to the background of its row than to any colour is in no mask.
    """
    table, owner = _paints(time)
    away = far(small[:, :, None], table)
    best = away.argmin(-1)
    nearest = np.take_along_axis(away, best[..., None], -1)[..., 0]
    behind = _behind(small, time, sky, ground, frame)
    limit = np.minimum(_COLOUR_REACH, far(small[None], behind).min(0))
    shown = np.where(nearest < limit, owner[best], -1)
    return (shown[None] == np.arange(len(COLOURS))[:, None, None]).astype(np.float32)


def _window(masks: np.ndarray, x0: int, y0: int, wide: int, high: int) -> np.ndarray:
    """A part of masks [c, h, w], zero outside them; all in coarse px."""
    part = np.zeros((len(masks), high, wide), dtype=np.float32)
    top, left = max(0, y0), max(0, x0)
    bottom, right = min(masks.shape[1], y0 + high), min(masks.shape[2], x0 + wide)
    if top < bottom and left < right:
        part[:, top - y0 : bottom - y0, left - x0 : right - x0] = masks[:, top:bottom, left:right]
    return part


def _candidates(masks: np.ndarray, place: str, flying: bool, size: float, ground: str,
                frame: Frame) -> Iterator[FoundThing]:
    """The best drawing of each colour of a size at a place, where it fits well enough."""
    shapes = _shapes(flying, size)
    high, wide = shapes.covers.shape[2:]
    foot = frame.balloon * CELL if flying else frame.feet_of(place) - round((HIGH - BELOW) * size)
    top = foot // STEP - _FINE // STEP
    across = _ACROSS[size == frame.sizes[0]] if frame.roam else (0, 0)
    if place == "right":
        across = -across[1], -across[0]
    middle = frame.x_of(place) - round(WIDE * size) // 2
    left = (middle + CELL * across[0] - _FINE) // STEP
    wider = wide + (CELL * (across[1] - across[0]) + 2 * _FINE) // STEP
    higher = high + (CELL * (_DOWN[1] - _DOWN[0]) + 2 * _FINE) // STEP
    part = _window(masks, left, top, wider, higher)
    allowed = np.isin(shapes.kinds, kinds_of(ground))
    for n, mask in enumerate(part):
        if mask.sum() < _LEAST * high * wide:
            continue
        visible = allowed & np.asarray([COLOURS[n] in colours_of(k, ground) for k in shapes.kinds])
        window = torch.from_numpy(mask)[None, None]
        shared = F.conv2d(window, shapes.covers)[0]
        around = F.conv2d(window, torch.ones(1, 1, high, wide))[0]
        fit = shared / (around + shapes.areas[:, None, None] - shared).clamp(min=1)
        fit[torch.from_numpy(~visible)] = 0
        best = int(fit.argmax())
        shape, y, x = np.unravel_index(best, fit.shape)
        if (found := float(fit.flatten()[best])) > _THING_OVERLAP:
            kind, drawing, flip = shapes.names[int(shape)]
            phase = 0 if flying else -round((HIGH - BELOW) * size) % STEP
            yield FoundThing(kind, COLOURS[n], STEP * (left + int(x)),
                             STEP * (top + int(y)) + phase, size, drawing, flip, found)


def _clash(one: FoundThing, other: FoundThing, frame: Frame) -> bool:
    """Whether two things cover mostly the same cells."""
    a, b = one.cells(frame), other.cells(frame)
    return bool((a & b).sum() > 0.4 * min(a.sum(), b.sum()))


def find_things(small: np.ndarray, time: str, sky: str, ground: str,
                frame: Frame = SQUARE) -> dict[str, FoundThing]:
    """The thing at each occupied place of a coarse picture."""
    masks = _masks(small, time, sky, ground, frame)
    sizes = tuple(dict.fromkeys(frame.sizes[:3]))
    found = [(place, thing) for place in PLACES for flying in (False, True) for size in sizes
             for thing in _candidates(masks, place, flying, size, ground, frame)]
    things: dict[str, FoundThing] = {}
    for place, thing in sorted(found, key=lambda entry: -entry[1].fit):
        if place not in things and not any(_clash(thing, other, frame)
                                           for other in things.values()):
            things[place] = thing
    return {**things, **_far_things(masks, things, ground, frame)}


def _far_things(masks: np.ndarray, near: dict[str, FoundThing], ground: str,
                frame: Frame) -> dict[str, FoundThing]:
    """The things far away, which are like those at all places."""
    alike = {(thing.kind, thing.colour) for thing in near.values()}
    if len(near) < len(PLACES) or len(alike) != 1:
        return {}
    ((kind, colour),) = alike
    return {place: thing for place in FAR_PLACES if may_be_many(kind)
            for thing in _candidates(masks, place, False, frame.sizes[3], ground, frame)
            if (thing.kind, thing.colour) == (kind, colour)}
