"""Brush strokes on a grid of cells, and how they change a canvas.

Strokes cross the borders between cells at one of three heights and continue in the next cell, so
that a cell depends on its neighbour: a draft that skips a cell must guess how the stroke continued,
as with the patches of a real picture. Strokes have few different shapes, so that a tokenizer with
few codes can distinguish and reproduce them with sharp edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .world import CELL, CELLS, GLEAM, HORIZON, SHADOW, SIZE

ABOVE, BELOW = range(HORIZON // CELL), range(HORIZON // CELL, CELLS)  # bands of sky and of ground
_REACH = CELL // 2  # how far a stroke may extend into the bands above and below, px
_STEP = 4.5  # px between the heights at which a stroke crosses a border
_ROUND = 7.0  # px over which a stroke's end is rounded


@dataclass(frozen=True)
class Strokes:
    """The layers of strokes, float32 [SIZE, SIZE] each: light and dark 0..1, relief -1..1."""

    light: np.ndarray
    dark: np.ndarray
    relief: np.ndarray

    @property
    def turned(self) -> Strokes:
        """The same strokes running from top to bottom."""
        return Strokes(self.light.T, self.dark.T, self.relief.T)


@dataclass(frozen=True)
class Brush:
    """How strokes are drawn: see `ribbons`."""

    thickness: float = 7.5  # half the width of a stroke, px
    hold: float = 0.6  # chance that a stroke continues in the next cell
    bend: float = 0.9  # how far the flow moves the strokes, in steps
    loose: float = 0.55  # spread of the strokes around the flow, in steps
    tones: tuple[float, float, float] = (0.36, 0.28, 0.36)  # chances of dark, plain and light
    blades: bool = False  # two thin pointed blades a cell, as of grass, instead of one broad stroke


def flow(rng: np.random.Generator) -> np.ndarray:
    """Waves and a swirl: a smooth field of -1..1 on cells' borders, float32 [CELLS, CELLS + 1]."""
    y, x = np.mgrid[0:CELLS, 0 : CELLS + 1].astype(np.float32)
    wave, turn = rng.uniform(5.0, 9.0), rng.uniform(0.15, 0.4) * rng.choice((-1, 1))
    phase = rng.uniform(0, 2 * np.pi)
    centre = rng.uniform(4, CELLS - 4), rng.uniform(1, 9)
    away = np.hypot(x - centre[0], (y - centre[1]) * 1.4)
    swirl = np.exp(-((away / 6) ** 2)) * np.cos(away * 1.2)
    return (np.sin(2 * np.pi * x / wave + turn * y + phase) * 0.7 + 0.8 * swirl).astype(np.float32)


def _tones(rng: np.random.Generator, brush: Brush,
           chances: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Tones -1, 0 or 1 of cells [CELLS, CELLS], held along a stroke, and where strokes begin."""
    fresh = rng.random((CELLS, CELLS)) >= brush.hold
    fresh[:, 0] = True
    dark, plain, _ = brush.tones
    draws = rng.random((CELLS, CELLS))
    edge = dark + plain if chances is None else np.minimum(dark + plain, 1 - chances)
    tones = np.where(draws >= edge, 1, np.where(draws < dark, -1, 0))
    start = np.maximum.accumulate(np.where(fresh, np.arange(CELLS), 0), axis=1)
    return np.take_along_axis(tones, start, axis=1), fresh


@cache
def _along() -> tuple[np.ndarray, np.ndarray]:
    """For each px of a row: its cell and how far it is between the cell's borders, eased 0..1."""
    x = np.arange(SIZE)
    share = (x % CELL + 0.5) / CELL
    return x // CELL, ((1 - np.cos(np.pi * share)) / 2).astype(np.float32)


def _ends(fresh: np.ndarray) -> np.ndarray:
    """Factor on a stroke's thickness, float32 [CELLS, SIZE]: its ends are round."""
    x = np.arange(SIZE)
    cell, within = x // CELL, x % CELL + 0.5
    stops = np.concatenate((fresh[:, 1:], np.ones((CELLS, 1), bool)), axis=1)
    after = np.where(fresh[:, cell], within, _ROUND)
    before = np.where(stops[:, cell], CELL - within, _ROUND)
    return np.clip(np.minimum(after, before) / _ROUND, 0, 1).astype(np.float32)


def _stroke(off: np.ndarray, ends: np.ndarray, brush: Brush) -> tuple[np.ndarray, np.ndarray]:
    """Coverage 0..1 and relief -1..1 of a stroke, from the distance `off` to its middle, px.

    ends [SIZE]: 0 at the very end of a stroke, 1 from `_ROUND` px on.
    """
    if brush.blades:
        away = np.abs(np.abs(off) - 4.0)
        return np.clip((brush.thickness * ends - away) / 1.2 + 0.5, 0, 1) * (ends > 0.05), -off / 8
    ragged = np.clip(ends + 0.22 * np.cos(off * (2 * np.pi / 4.8)) * (ends < 1), 0, 1)
    half = brush.thickness * np.sqrt(1 - (1 - ragged) ** 2)
    bristle = 0.55 * np.cos(off * (2 * np.pi / 3.6)) - 0.6 * off / brush.thickness
    return np.clip((half - np.abs(off)) / 1.6 + 0.5, 0, 1), bristle


def ribbons(rng: np.random.Generator, field: np.ndarray, brush: Brush,
            chances: np.ndarray | None = None, bands: range = range(CELLS)) -> Strokes:
    """Long strokes from left to right, one band per row of cells.

    field: float32 [CELLS, CELLS + 1] from `flow`. chances: least chance of a light stroke in a
    cell [CELLS, CELLS], or None. bands: the rows of cells that get strokes.
    """
    noise = rng.normal(0, brush.loose, field.shape)
    heights = np.clip(np.rint(brush.bend * field + noise), -1, 1).astype(np.float32) * _STEP
    tones, fresh = _tones(rng, brush, chances)
    cell, share = _along()
    centre = heights[:, cell] * (1 - share) + heights[:, cell + 1] * share
    ends = _ends(fresh)
    layers = np.zeros((3, SIZE + 2 * CELL, SIZE), dtype=np.float32)
    rows = np.arange(-_REACH, CELL + _REACH, dtype=np.float32)[:, None] - (CELL - 1) / 2
    for band in bands:
        off = rows - centre[band]
        cover, bristle = _stroke(off, ends[band], brush)
        tone = tones[band, cell]
        at = slice(band * CELL + CELL - _REACH, band * CELL + 2 * CELL + _REACH)
        for layer, new in zip(layers, (tone > 0, tone < 0, bristle), strict=True):
            layer[at] += (new - layer[at]) * cover
    return Strokes(*layers[:, CELL:-CELL])


@cache
def _dab_stamps(radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Coverage and relief [2 CELL, 2, 2, 2 CELL] of a dab: pixel row, shift down, right, column."""
    axis = np.arange(-_REACH, CELL + _REACH, dtype=np.float32) - (CELL - 1) / 2
    shift = np.array((-3.0, 3.0))
    dy = axis[:, None, None, None] - shift[:, None, None]
    dx = axis - shift[:, None]
    away = np.hypot(dx, dy)
    form = np.clip(-(dx + 1.6 * dy) / (1.6 * radius), -1, 1)
    return (np.clip((radius - away) / 1.4 + 0.5, 0, 1),
            0.7 * form + 0.3 * np.cos(away * (2 * np.pi / 4.2)))


def dabs(rng: np.random.Generator, brush: Brush, radius: float = 9.5,
         bands: range = range(CELLS)) -> Strokes:
    """Round dabs, one per cell, for leaves; tones continue from cell to cell as in ribbons."""
    tones, _ = _tones(rng, brush, None)
    down, right = rng.integers(0, 2, (2, CELLS, CELLS))
    layers = np.zeros((3, SIZE + 2 * CELL, SIZE + 2 * CELL), dtype=np.float32)
    covers, bristles = _dab_stamps(radius)
    for band in bands:
        for odd in (0, 1):
            cells = np.arange(odd, CELLS, 2)
            stamp = down[band, cells], right[band, cells]
            cover, bristle = covers[:, stamp[0], stamp[1]], bristles[:, stamp[0], stamp[1]]
            tone = np.broadcast_to(tones[band, cells][None, :, None], cover.shape)
            new = np.stack((tone > 0, tone < 0, bristle)).astype(np.float32)
            top = band * CELL + CELL - _REACH
            left = odd * CELL + CELL - _REACH
            part = layers[:, top : top + 2 * CELL, left : left + len(cells) * 2 * CELL]
            part += (new.reshape(3, 2 * CELL, -1) - part) * cover.reshape(2 * CELL, -1)
    return Strokes(*layers[:, CELL:-CELL, CELL:-CELL])


def lay(canvas: np.ndarray, strokes: Strokes, time: str, mask: np.ndarray | float = 1.0,
        share: float = 0.26, relief: float = 9.0, rows: slice = slice(None)) -> None:
    """Apply strokes to rows of a canvas [SIZE, SIZE, 3], in place. mask: weight [SIZE, SIZE]."""
    gleam, shadow = (np.asarray(table[time], dtype=np.float32) for table in (GLEAM, SHADOW))
    part, where = canvas[rows], mask[rows] if isinstance(mask, np.ndarray) else mask
    light, dark = strokes.light[rows] * (where * share), strokes.dark[rows] * (where * share)
    raised = strokes.relief[rows] * (where * relief)
    for c in range(3):
        colour = part[..., c]
        colour += (gleam[c] - colour) * light + raised
        colour += (shadow[c] - colour) * dark


def paste(canvas: np.ndarray, colour: np.ndarray, alpha: np.ndarray, x: int, y: int) -> None:
    """Blend colour [h, w, 3] by alpha [h, w, 1] with its corner at (x, y), clipped, in place."""
    top, left = max(0, -y), max(0, -x)
    bottom = min(alpha.shape[0], canvas.shape[0] - y)
    right = min(alpha.shape[1], canvas.shape[1] - x)
    part = canvas[y + top : y + bottom, x + left : x + right]
    part += (colour[top:bottom, left:right] - part) * alpha[top:bottom, left:right]


@cache
def _weave() -> np.ndarray:
    """The texture of the canvas: a cell-sized tile repeated, so that it needs no further codes."""
    rng = np.random.default_rng(7)
    tile = rng.normal(0, 1.3, (CELL, CELL))
    y, x = np.mgrid[0:CELL, 0:CELL]
    tile += 2.2 * np.cos(np.pi / 2 * x) * np.cos(np.pi / 2 * y)
    return np.tile(tile, (CELLS, CELLS)).astype(np.float32)[..., None]


def grain(canvas: np.ndarray) -> None:
    """Add the texture of the canvas, in place."""
    canvas += _weave()
