"""The sky of a postcard: gradient, stars, clouds, sun or moon."""

from __future__ import annotations

from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .world import (
    CLOUD,
    HORIZON,
    LATTICE,
    LIGHT,
    LIGHT_RADIUS,
    LIGHT_Y,
    PLACE_X,
    PLACES,
    SIZE,
    SKY,
    Scene,
)

_MIDDLE_ROW = 58  # where the middle colour of a sky sits, px
_STAR_ROWS = 7  # rows of 8 px cells that may hold a star
_CLOUD_SHAPE = (34, 80)  # rows, columns of a cloud sprite, px
# Puffs of each cloud: centre x, centre y, radius, px.
_PUFFS = (
    ((18, 22, 9), (32, 15, 12), (48, 17, 11), (60, 23, 8)),
    ((16, 23, 8), (28, 18, 10), (44, 14, 12), (60, 22, 9)),
    ((15, 24, 7), (30, 17, 11), (45, 20, 10), (59, 23, 8)),
)


@cache
def sky_rows(time: str) -> np.ndarray:
    """The sky gradient, float32 [192, 3], one colour a row (0..255)."""
    rows = np.minimum(np.arange(SIZE), HORIZON)
    stops = (0, _MIDDLE_ROW, HORIZON)
    table = np.asarray(SKY[time], dtype=np.float32)
    return np.stack([np.interp(rows, stops, table[:, c]) for c in range(3)], 1).astype(np.float32)


@cache
def _distance() -> np.ndarray:
    """Distance to the centre of a [2 * 192, 2 * 192] grid, px."""
    axis = np.arange(2 * SIZE, dtype=np.float32) - SIZE
    return np.hypot(axis[:, None], axis[None, :]).astype(np.float32)


def _around(table: np.ndarray, x: int, y: int, rows: int) -> np.ndarray:
    """Cuts rows x 192 of a doubled table so that its centre lies at (x, y)."""
    return table[SIZE - y : SIZE - y + rows, SIZE - x : 2 * SIZE - x]


@cache
def _glow() -> np.ndarray:
    far, near = np.exp(-((_distance() / 46) ** 2)), np.exp(-((_distance() / 20) ** 2))
    return (0.22 * far + 0.42 * near).astype(np.float32)


@cache
def _disc() -> np.ndarray:
    return np.clip(LIGHT_RADIUS + 0.5 - _distance(), 0, 1)


@cache
def _star() -> np.ndarray:
    axis = np.arange(-4, 5, dtype=np.float32)
    squared = axis[:, None] ** 2 + axis[None, :] ** 2
    return (1.1 * np.exp(-squared / 2.6)).clip(0, 1)[..., None]


@cache
def _cloud(time: str, variant: int) -> tuple[np.ndarray, np.ndarray]:
    """Colour [34, 80, 3] and coverage [34, 80, 1] of one soft cloud."""
    rows, columns = _CLOUD_SHAPE
    mask = Image.new("L", (columns * 3, rows * 3), 0)
    draw = ImageDraw.Draw(mask)
    for x, y, r in _PUFFS[variant]:
        draw.ellipse([3 * (x - r), 3 * (y - r), 3 * (x + r), 3 * (y + r)], fill=255)
    draw.rounded_rectangle([27, 60, 3 * columns - 27, 96], radius=17, fill=255)
    mask = mask.filter(ImageFilter.GaussianBlur(3.2)).resize((columns, rows), Image.Resampling.BOX)
    alpha = np.asarray(mask, dtype=np.float32)[..., None] / 255 * 0.94
    top, belly = (np.asarray(c, dtype=np.float32) for c in CLOUD[time])
    blend = np.clip((np.arange(rows, dtype=np.float32) - 8) / 20, 0, 1)[:, None, None]
    return np.broadcast_to(top + (belly - top) * blend, (rows, columns, 3)), alpha


def paste(canvas: np.ndarray, colour: np.ndarray, alpha: np.ndarray, x: int, y: int) -> None:
    """Blends colour [h, w, 3] by alpha [h, w, 1] with its corner at (x, y), clipped, in place."""
    top, left = max(0, -y), max(0, -x)
    bottom = min(alpha.shape[0], canvas.shape[0] - y)
    right = min(alpha.shape[1], canvas.shape[1] - x)
    part = canvas[y + top : y + bottom, x + left : x + right]
    part += (colour[top:bottom, left:right] - part) * alpha[top:bottom, left:right]


def _paint_stars(canvas: np.ndarray, rng: np.random.Generator) -> None:
    white = np.full((9, 9, 3), (240, 240, 255), dtype=np.float32)
    # One star a column, at a cell's centre: even spread, few distinct patches.
    for column in range(SIZE // LATTICE):
        row = int(rng.integers(_STAR_ROWS))
        paste(canvas, white, _star(), LATTICE * column, LATTICE * row)


def _paint_clouds(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    rows, columns = _CLOUD_SHAPE
    heights = rng.permutation((16, 24, 32))
    for place, height in zip(PLACES, heights, strict=True):
        variant, dx = int(rng.integers(len(_PUFFS))), LATTICE * int(rng.integers(-1, 2))
        if place != scene.light_place:
            x = PLACE_X[place] - columns // 2 + dx
            paste(canvas, *_cloud(scene.time, variant), x, int(height) - LATTICE)


def _paint_light(canvas: np.ndarray, scene: Scene) -> None:
    x, y = PLACE_X[scene.light_place], LIGHT_Y
    colour = np.asarray(LIGHT[scene.time], dtype=np.float32)
    sky = canvas[:HORIZON]
    strength = 0.6 if scene.time == "night" else 1.0
    sky += (colour - sky) * (strength * _around(_glow(), x, y, HORIZON))[..., None]
    box = canvas[y - 16 : y + 17, x - 16 : x + 17]
    disc = _around(_disc(), x, y, SIZE)[y - 16 : y + 17, x - 16 : x + 17]
    box += (colour - box) * disc[..., None]


def paint_sky(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    """Fills the canvas, float32 [192, 192, 3], with the scene's sky, in place."""
    canvas[:] = sky_rows(scene.time)[:, None]
    if scene.sky == "starry":
        _paint_stars(canvas, rng)
    if scene.light != "none":
        _paint_light(canvas, scene)
    if scene.sky == "cloudy":
        _paint_clouds(canvas, scene, rng)
