"""The land of a postcard: ridges on the horizon and the ground or water before them."""

from __future__ import annotations

import numpy as np

from .sky import sky_rows
from .world import CAP, GROUND, HILL, HORIZON, LATTICE, ROCK, SIZE, Scene

_X = np.arange(SIZE, dtype=np.float32)
_Y = np.arange(SIZE, dtype=np.float32)[:, None]
_RIDGE_TOP = 48  # no ridge reaches above this row, px
_SNOW_LINE = 80  # row below which a snowy ridge is bare, px


def _cover(skyline: np.ndarray, top: int, bottom: int) -> np.ndarray:
    """Antialiased coverage [bottom - top, 192, 1] of all below a skyline [192] in rows."""
    return np.clip(_Y[top:bottom] - skyline + 0.5, 0, 1)[..., None]


def _wave(rng: np.random.Generator, height: float, swing: float, turns: float) -> np.ndarray:
    phase = 2 * np.pi * turns * LATTICE / SIZE * int(rng.integers(SIZE // LATTICE))
    return HORIZON - height - swing * np.sin(_X * (2 * np.pi * turns / SIZE) + phase)


def _peaks(rng: np.random.Generator, low: float, high: float, step: int) -> np.ndarray:
    """A jagged skyline [192]: peaks of `high` px and saddles of `low` px, `step` px apart."""
    offset = LATTICE * int(rng.integers(2 * step // LATTICE))
    nodes = np.arange(-2, SIZE // step + 3) * step + offset - step
    heights = np.where(np.arange(nodes.size) % 2 == 0, high, low)
    return (HORIZON - np.interp(_X, nodes, heights)).astype(np.float32)


def _hazy(near: tuple[int, int, int], time: str, haze: float) -> np.ndarray:
    """A layer's colour [rows, 1, 3] from the ridge top to the horizon, hazier further down."""
    colour = np.asarray(near, dtype=np.float32)
    share = haze * (np.arange(HORIZON - _RIDGE_TOP, dtype=np.float32) / (HORIZON - _RIDGE_TOP))
    return colour + (sky_rows(time)[HORIZON] - colour) * share[:, None, None]


def _paint_layer(canvas: np.ndarray, skyline: np.ndarray, colour: np.ndarray) -> None:
    band = canvas[_RIDGE_TOP:HORIZON]
    band += (colour - band) * _cover(skyline, _RIDGE_TOP, HORIZON)


def _paint_hills(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    far, near = HILL[scene.time]
    _paint_layer(canvas, _wave(rng, 26, 6, 1.5), _hazy(far, scene.time, 0.35))
    _paint_layer(canvas, _wave(rng, 17, 4, 2.0), _hazy(near, scene.time, 0.15))


def _paint_cap(canvas: np.ndarray, skyline: np.ndarray, time: str) -> None:
    """Snow on the rock above a zigzag line."""
    zigzag = _SNOW_LINE + 5 * np.abs((_X / 8) % 2 - 1)
    rock = _cover(skyline, _RIDGE_TOP, HORIZON)
    snow = rock * (1 - _cover(zigzag, _RIDGE_TOP, HORIZON))
    band = canvas[_RIDGE_TOP:HORIZON]
    # The slope away from the light is a little darker, which gives the peaks volume.
    shade = np.where(np.gradient(skyline) > 0, 0.9, 1.0)[None, :, None]
    band += (np.asarray(CAP[time], dtype=np.float32) * shade - band) * snow


def _paint_mountains(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    far, near = ROCK[scene.time]
    skyline = _peaks(rng, 32, 56, 32)
    shade = np.where(np.gradient(skyline) > 0, 0.93, 1.0)[None, :, None]
    _paint_layer(canvas, skyline, _hazy(far, scene.time, 0.4) * shade)
    if scene.ridge == "snowy":
        _paint_cap(canvas, skyline, scene.time)
    _paint_layer(canvas, _peaks(rng, 14, 26, 24), _hazy(near, scene.time, 0.2))


def _fold(top: float, swing: float, phase: float) -> np.ndarray:
    """The crest [192] of a soft fold of the ground, as rows."""
    return top - swing * np.sin(_X * (2 * np.pi / SIZE) + phase)


def _paint_ground(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    far, near = (np.asarray(c, dtype=np.float32) for c in GROUND[scene.ground][scene.time])
    rows = np.linspace(0, 1, SIZE - HORIZON, dtype=np.float32)[:, None, None]
    land = canvas[HORIZON:]
    land[:] = far + (near - far) * rows
    # Few phases keep the number of distinct patches small. Each fold starts light at its crest
    # and darkens below, the more the nearer it is.
    phase = float(rng.integers(4)) * np.pi / 2
    for crest, depth in ((_fold(127, 4, phase), 0.3), (_fold(168, 6, phase + 2), 0.5)):
        below = np.clip((_Y[HORIZON:] - crest) / 26, 0, 1)[..., None]
        tint = far + (near - far) * (depth + 0.5 * below)
        land += (tint - land) * _cover(crest, HORIZON, SIZE)


def _mirror(canvas: np.ndarray) -> np.ndarray:
    """Sky and ridge as the water shows them, [80, 192, 3]: upside down and a little flattened."""
    source = HORIZON - 1 - np.arange(SIZE - HORIZON) * 1.25
    row = source.astype(int)
    rest = (source - row).astype(np.float32)[:, None, None]
    return canvas[row] * (1 - rest) + canvas[row + 1] * rest


def _paint_lake(canvas: np.ndarray, scene: Scene) -> None:
    far, near = (np.asarray(c, dtype=np.float32) for c in GROUND["lake"][scene.time])
    depth = np.linspace(0, 1, SIZE - HORIZON, dtype=np.float32)[:, None, None]
    water = far + (near - far) * depth
    canvas[HORIZON:] = water + (_mirror(canvas) - water) * (0.5 - 0.2 * depth)
    # A bright line where the water meets the shore.
    shore = canvas[HORIZON : HORIZON + 2]
    shore += (sky_rows(scene.time)[HORIZON] - shore) * 0.4


def paint_land(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    """Paints ridge and ground over a sky, float32 [192, 192, 3], in place."""
    if scene.ridge == "hills":
        _paint_hills(canvas, scene, rng)
    elif scene.ridge != "none":
        _paint_mountains(canvas, scene, rng)
    if scene.ground == "lake":
        _paint_lake(canvas, scene)
    else:
        _paint_ground(canvas, scene, rng)
