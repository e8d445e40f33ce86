"""The land of a postcard: ridges on the horizon, the ground or water before them, and its paths."""

from __future__ import annotations

import numpy as np

from .brush import ABOVE, BELOW, Brush, Strokes, dabs, flow, lay, ribbons
from .sky import sky_rows
from .world import (
    CAP,
    CELL,
    CELLS,
    GROUND,
    HILL,
    HORIZON,
    PLACE_X,
    ROAD,
    ROCK,
    SIZE,
    WOOD,
    Scene,
)

_X = np.arange(SIZE, dtype=np.float32)
_Y = np.arange(SIZE, dtype=np.float32)[:, None]
_SNOW_LINE = 128  # row below which a snowy ridge is bare, px
_HALF = CELL // 2
_FAR, _NEAR = slice(0, HORIZON), slice(HORIZON, SIZE)
_HILL_BRUSH = Brush(thickness=7.0, hold=0.55, bend=1.2)
_GRASS_BRUSH = Brush(thickness=2.6, hold=0.12, bend=0.6, loose=0.7, blades=True)
_FIELD_BRUSH = Brush(thickness=3.0, hold=0.5, bend=0.6, loose=0.6, blades=True)
_SAND_BRUSH = Brush(thickness=7.5, hold=0.7, bend=1.3, loose=0.4)
_WATER_BRUSH = Brush(thickness=4.5, hold=0.5, bend=0.5, loose=0.6)
_SEA_BRUSH = Brush(thickness=6.0, hold=0.45, bend=1.4, loose=0.5, tones=(0.42, 0.3, 0.28))
_ROCK_BRUSH = Brush(thickness=6.5, hold=0.4, bend=0.8, loose=0.7)
_LEAF_BRUSH = Brush(hold=0.35)


def _cover(skyline: np.ndarray) -> np.ndarray:
    """Antialiased coverage [SIZE, SIZE] between a skyline [SIZE], in rows, and the horizon."""
    return np.clip(_Y - skyline + 0.5, 0, 1) * (_Y < HORIZON)


def _rolling(rng: np.random.Generator, low: int, high: int) -> np.ndarray:
    """A smooth skyline [SIZE]: heights in half cells at every second cell, eased in between."""
    heights = rng.integers(low, high + 1, CELLS // 2 + 1)
    place = _X / (2 * CELL)
    left, share = place.astype(int), place % 1
    eased = (1 - np.cos(np.pi * share)) / 2
    return HORIZON - _HALF * (heights[left] * (1 - eased) + heights[left + 1] * eased)


def _peaks(rng: np.random.Generator, low: tuple[int, int],
           high: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """A jagged skyline [SIZE] of peaks and saddles, heights in cells, and its lit side 0..1."""
    gaps = rng.integers(2, 4, CELLS)
    nodes = np.cumsum(np.concatenate(([-3 + int(rng.integers(0, 3))], gaps)))
    up = np.arange(nodes.size) % 2 == int(rng.integers(2))
    heights = np.where(up, rng.integers(*high, nodes.size), rng.integers(*low, nodes.size))
    skyline = HORIZON - np.interp(_X, nodes * CELL, heights * CELL).astype(np.float32)
    lit = (np.gradient(skyline) < 0).astype(np.float32)
    return skyline, lit


def _mixed(pair: tuple, share: np.ndarray) -> np.ndarray:
    first, second = (np.asarray(c, dtype=np.float32) for c in pair)
    return first + (second - first) * share[..., None]


def _hazy(colour: np.ndarray, scene: Scene, haze: float) -> np.ndarray:
    """Colours [SIZE, n, 3] that fade into the air towards the horizon."""
    share = haze * np.clip((_Y - HORIZON + 9 * CELL) / (9 * CELL), 0, 1)[..., None] ** 2
    return colour + (sky_rows(scene.time, scene.sky)[HORIZON] - colour) * share


def _layer(canvas: np.ndarray, skyline: np.ndarray, colour: np.ndarray, strokes: Strokes,
           scene: Scene, share: float = 0.24) -> None:
    cover = _cover(skyline)
    sky = canvas[_FAR]
    sky += (np.broadcast_to(colour, canvas.shape)[_FAR] - sky) * cover[_FAR, :, None]
    lay(canvas, strokes, scene.time, cover, share=share, relief=7, rows=_FAR)


def _paint_hills(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    far, near = (np.asarray(c, dtype=np.float32) for c in HILL[scene.time])
    strokes = ribbons(rng, flow(rng), _HILL_BRUSH, bands=ABOVE)
    _layer(canvas, _rolling(rng, 5, 8), _hazy(far, scene, 0.3), strokes, scene)
    _layer(canvas, _rolling(rng, 1, 5), _hazy(near, scene, 0.25), strokes, scene)


def _paint_mountains(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    skyline, lit = _peaks(rng, (4, 6), (7, 10))
    depth = np.clip((_Y - skyline) / (6 * CELL), 0, 1)
    sides = 0.5 + (0.5 - lit) * (1 - depth) ** 1.5
    rock = _hazy(_mixed(ROCK[scene.time], sides), scene, 0.5)
    if scene.ridge == "snowy":
        jag = _HALF * np.repeat(rng.integers(-1, 2, CELLS), CELL)
        snow = np.clip((_SNOW_LINE + jag - _Y) / 6 + 0.5, 0, 1)[..., None]
        rock = rock + (_mixed(CAP[scene.time], sides) - rock) * snow
    strokes = ribbons(rng, flow(rng), _ROCK_BRUSH).turned
    _layer(canvas, skyline, rock, strokes, scene, 0.2)
    near = np.asarray(HILL[scene.time][1], dtype=np.float32)
    _layer(canvas, _rolling(rng, 1, 3), _hazy(near, scene, 0.2), strokes, scene)


def _paint_forest(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    strokes = dabs(rng, _LEAF_BRUSH, bands=ABOVE)
    for layer, (low, high) in enumerate(((6, 9), (3, 5))):
        tops = HORIZON - _HALF * np.repeat(rng.integers(low, high + 1, CELLS), CELL)
        away = np.abs(_X % CELL - 7.5)
        bump = 1.9 * away if layer == 0 else 9.5 - np.sqrt(9.5**2 - away**2)
        colour = np.asarray(WOOD[scene.time][layer], dtype=np.float32)
        _layer(canvas, tops + bump, _hazy(colour, scene, 0.15), strokes, scene, 0.2)


_RIDGE = {"hills": _paint_hills, "mountains": _paint_mountains, "snowy": _paint_mountains,
          "forest": _paint_forest}


def ground_rows(ground: str, time: str) -> np.ndarray:
    """The ground's gradient, float32 [SIZE, 1, 3], from the horizon to the bottom edge."""
    far, near = (np.asarray(c, dtype=np.float32) for c in GROUND[ground][time])
    share = np.clip((_Y - HORIZON) / (SIZE - HORIZON), 0, 1)[..., None]
    return far + (near - far) * share


def _glitter(scene: Scene) -> np.ndarray:
    """Least chance of a light stroke on water [CELLS, CELLS]: high below the sun or the moon."""
    chances = np.zeros((CELLS, CELLS))
    if scene.light != "none":
        centre = PLACE_X[scene.light_place] // CELL
        chances[:, centre - 2 : centre + 2] = 0.75
    return chances


def _ground_strokes(scene: Scene, rng: np.random.Generator) -> tuple[Strokes, float]:
    """The strokes of a ground and their strength."""
    field = flow(rng)
    if scene.ground == "meadow":
        return ribbons(rng, field, _GRASS_BRUSH).turned, 0.3
    if scene.ground == "field":
        return ribbons(rng, field, _FIELD_BRUSH).turned, 0.3
    if scene.ground == "sea":
        return ribbons(rng, field, _SEA_BRUSH, _glitter(scene), BELOW), 0.42
    if scene.ground == "lake":
        return ribbons(rng, field, _WATER_BRUSH, _glitter(scene), BELOW), 0.4
    return ribbons(rng, field, _SAND_BRUSH, bands=BELOW), 0.16


def _winding(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A path over the ground: centre and half width, px, for each row from the horizon down."""
    rows = np.arange(SIZE - HORIZON, dtype=np.float32) / (SIZE - HORIZON)
    start, side = CELL * int(rng.integers(9, 16)), int(rng.choice((-1, 1)))
    end = PLACE_X["middle"] + side * 4 * CELL
    bend = side * 1.5 * CELL * np.sin(2 * np.pi * rows)
    centre = end + (start - end) * rows + bend * rows
    return centre, 3 + 34 * rows**1.3


def _paint_path(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    centre, half = _winding(rng)
    cover = np.zeros((SIZE, SIZE), dtype=np.float32)
    cover[HORIZON:] = np.clip(half[:, None] - np.abs(_X - centre[:, None]) + 0.5, 0, 1)
    colours = ROAD[scene.time] if scene.path == "road" else GROUND["lake"][scene.time]
    share = np.clip((_Y - HORIZON) / (SIZE - HORIZON), 0, 1)
    colour = _mixed(colours, share)
    canvas += (colour - canvas) * cover[..., None]
    brush = _SAND_BRUSH if scene.path == "road" else _WATER_BRUSH
    strokes = ribbons(rng, flow(rng), brush, bands=BELOW)
    lay(canvas, strokes, scene.time, cover, share=0.24, rows=_NEAR)


def _paint_flowers(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    """Blossoms in the meadow, in red, yellow and white, one in every third cell."""
    dim = 0.6 if scene.time == "night" else 1.0
    colours = np.asarray(((232, 60, 60), (255, 216, 64), (252, 246, 250)), dtype=np.float32) * dim
    pick = rng.integers(0, 6, (CELLS, CELLS))
    y, x = np.mgrid[0:CELL, 0:CELL].astype(np.float32) - (CELL - 1) / 2
    petals = np.clip(5.6 + 1.4 * np.cos(5 * np.arctan2(y, x)) - np.hypot(x, y), 0, 1)
    heart = np.clip(2.4 - np.hypot(x, y), 0, 1)[..., None]
    for row in range(HORIZON // CELL + 3, CELLS):
        for column in np.flatnonzero(pick[row] < 3):
            part = canvas[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL]
            part += (colours[pick[row, column]] - part) * petals[..., None]
            part += (np.asarray((120, 76, 40), dtype=np.float32) * dim - part) * heart


def paint_land(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    """Paint ridge and ground over the sky, float32 [SIZE, SIZE, 3], in place."""
    if scene.ridge != "none":
        _RIDGE[scene.ridge](canvas, scene, rng)
    canvas[HORIZON:] = ground_rows(scene.ground, scene.time)[HORIZON:]
    strokes, share = _ground_strokes(scene, rng)
    lay(canvas, strokes, scene.time, share=share, rows=_NEAR)
    if scene.path in ("road", "river"):
        _paint_path(canvas, scene, rng)
    elif scene.path == "flowers":
        _paint_flowers(canvas, scene, rng)
