"""The sky of a postcard: gradient, stars, clouds, sun or moon, rain and fog."""

from __future__ import annotations

from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .brush import ABOVE, Brush, dabs, flow, lay, paste, ribbons
from .world import (
    CELL,
    CELLS,
    CLOUD,
    HORIZON,
    LIGHT,
    LIGHT_RADIUS,
    LIGHT_Y,
    PLACE_X,
    PLACES,
    SIZE,
    SKY,
    VEIL,
    VEIL_SHARE,
    Scene,
)

_ROWS = slice(0, HORIZON)
_MIDDLE_ROW = 116  # row of a sky's middle colour, px
_STAR_ROWS = 9  # rows of cells that may hold a star
_CLOUD_SHAPE = (80, 144)  # rows, columns of a cloud sprite, px
# Puffs of each cloud: centre x, centre y, radius, px.
_PUFFS = (
    ((30, 52, 18), (52, 36, 24), (84, 32, 26), (112, 50, 20), (72, 54, 22)),
    ((28, 54, 16), (48, 42, 20), (78, 30, 28), (108, 44, 22), (120, 56, 14)),
    ((26, 56, 14), (50, 40, 24), (82, 44, 22), (110, 52, 18), (66, 56, 20)),
)
_SKY_BRUSH = Brush(thickness=7.5, hold=0.62, bend=1.1, loose=0.5)
_CLOUD_BRUSH = Brush(hold=0.3, tones=(0.3, 0.3, 0.4))


@cache
def sky_rows(time: str, sky: str = "clear") -> np.ndarray:
    """The sky gradient, float32 [SIZE, 3], one colour a row (0..255)."""
    rows = np.minimum(np.arange(SIZE), HORIZON)
    stops = (0, _MIDDLE_ROW, HORIZON)
    table = np.asarray(SKY[time], dtype=np.float32)
    clear = np.stack([np.interp(rows, stops, table[:, c]) for c in range(3)], 1)
    if sky in VEIL:
        clear += (np.asarray(VEIL[sky][time]) - clear) * VEIL_SHARE[sky]
    return clear.astype(np.float32)


@cache
def _distance() -> np.ndarray:
    """Distance to the centre of a [2 * SIZE, 2 * SIZE] grid, px."""
    axis = np.arange(2 * SIZE, dtype=np.float32) - SIZE + 0.5
    return np.hypot(axis[:, None], axis[None, :]).astype(np.float32)


def _around(table: np.ndarray, x: int, y: int, rows: int) -> np.ndarray:
    """Cut rows x SIZE from a doubled table so that its centre is at (x, y)."""
    return table[SIZE - y : SIZE - y + rows, SIZE - x : 2 * SIZE - x]


@cache
def _glow() -> np.ndarray:
    away = _distance()
    rings = 0.05 * np.cos(away * (2 * np.pi / 16)) * np.exp(-((away / 70) ** 2))
    return (0.26 * np.exp(-((away / 120) ** 2)) + 0.44 * np.exp(-((away / 46) ** 2))
            + rings).astype(np.float32)


@cache
def _disc() -> np.ndarray:
    return np.clip(LIGHT_RADIUS + 0.5 - _distance(), 0, 1)


@cache
def _star(large: bool) -> np.ndarray:
    """Coverage [24, 24, 1] of a star: a core and a ring of light around it."""
    axis = np.arange(24, dtype=np.float32) - 11.5
    away = np.hypot(axis[:, None], axis[None, :])
    core, halo = (3.4, 0.5) if large else (1.9, 0.22)
    ring = 0.2 * np.exp(-(((away - 8) / 1.6) ** 2)) if large else 0
    return np.clip(1.2 * np.exp(-((away / core) ** 2)) + halo * np.exp(-((away / 8) ** 2)) + ring,
                   0, 1)[..., None].astype(np.float32)


@cache
def _cloud(time: str, variant: int) -> tuple[np.ndarray, np.ndarray]:
    """Colour [80, 144, 3] and coverage [80, 144, 1] of one cloud."""
    rows, columns = _CLOUD_SHAPE
    top, belly = (np.asarray(c, dtype=np.float32) for c in CLOUD[time])
    mask = Image.new("L", (columns * 2, rows * 2), 0)
    draw = ImageDraw.Draw(mask)
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    shade = np.zeros((rows, columns), dtype=np.float32)
    for cx, cy, r in _PUFFS[variant]:
        draw.ellipse([2 * (cx - r), 2 * (cy - r), 2 * (cx + r), 2 * (cy + r)], fill=255)
        inside = np.hypot(x - cx, y - cy) < r
        shade = np.where(inside, np.clip((y - cy + 0.4 * (x - cx)) / (1.3 * r) + 0.5, 0, 1), shade)
    draw.rounded_rectangle([28, 104, 2 * columns - 28, 148], radius=22, fill=255)
    shade = np.maximum(shade, (y - 52) / 22).clip(0, 1)
    mask = mask.filter(ImageFilter.GaussianBlur(2)).resize((columns, rows), Image.Resampling.BOX)
    alpha = np.asarray(mask, dtype=np.float32)[..., None] / 255 * 0.96
    return top + (belly - top) * shade[..., None], alpha


def _paint_stars(canvas: np.ndarray, rng: np.random.Generator) -> None:
    white = np.full((24, 24, 3), (250, 244, 214), dtype=np.float32)
    for row in range(_STAR_ROWS):
        for column in np.flatnonzero(rng.random(CELLS) < 0.16):
            paste(canvas, white, _star(bool(rng.random() < 0.35)),
                  CELL * int(column) - 4, CELL * row - 4)


def _paint_clouds(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> np.ndarray:
    """Paint clouds; return their coverage, float32 [SIZE, SIZE]."""
    cover = np.zeros((SIZE, SIZE, 1), dtype=np.float32)
    heights = rng.permutation((0, 2, 4))
    for place, height in zip(PLACES, heights, strict=True):
        variant, dx = int(rng.integers(len(_PUFFS))), CELL * int(rng.integers(-2, 3))
        if place != scene.light_place:
            x, y = PLACE_X[place] - _CLOUD_SHAPE[1] // 2 + dx, CELL * int(height)
            colour, alpha = _cloud(scene.time, variant)
            paste(canvas, colour, alpha, x, y)
            paste(cover, np.ones_like(alpha), alpha, x, y)
    return cover[..., 0]


def _paint_light(canvas: np.ndarray, scene: Scene) -> None:
    x, y = PLACE_X[scene.light_place], LIGHT_Y
    colour = np.asarray(LIGHT[scene.time], dtype=np.float32)
    sky = canvas[:HORIZON]
    strength = 0.6 if scene.time == "night" else 1.0
    sky += (colour - sky) * (strength * _around(_glow(), x, y, HORIZON))[..., None]


def _paint_disc(canvas: np.ndarray, scene: Scene) -> None:
    x, y = PLACE_X[scene.light_place], LIGHT_Y
    colour = np.asarray(LIGHT[scene.time], dtype=np.float32)
    centre = colour + (255 - colour) * 0.45
    away = _around(_distance(), x, y, HORIZON)[..., None]
    body = centre + (colour - centre) * np.clip(away / LIGHT_RADIUS, 0, 1)
    body = body + 5 * np.cos(away * (2 * np.pi / 6.5))
    canvas[:HORIZON] += (body - canvas[:HORIZON]) * _around(_disc(), x, y, HORIZON)[..., None]


def paint_sky(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    """Fill the canvas, float32 [SIZE, SIZE, 3], with the scene's sky, in place."""
    canvas[:] = sky_rows(scene.time, scene.sky)[:, None]
    if scene.light != "none":
        _paint_light(canvas, scene)
    share = 0.2 if scene.sky in VEIL else 0.34
    strokes = ribbons(rng, flow(rng), _SKY_BRUSH, bands=ABOVE)
    lay(canvas, strokes, scene.time, share=share, rows=_ROWS)
    if scene.sky == "starry":
        _paint_stars(canvas, rng)
    if scene.light != "none":
        _paint_disc(canvas, scene)
    if scene.sky == "cloudy":
        cover = _paint_clouds(canvas, scene, rng)
        puffs = dabs(rng, _CLOUD_BRUSH, bands=ABOVE)
        lay(canvas, puffs, scene.time, cover, share=0.2, relief=7, rows=_ROWS)


def paint_fog(canvas: np.ndarray, scene: Scene) -> None:
    """Add fog over the distance, thickest at the horizon, in place."""
    rows = np.arange(SIZE, dtype=np.float32)
    share = 0.52 * np.exp(-(((rows - HORIZON) / 70) ** 2))
    veil = np.asarray(VEIL["fog"][scene.time], dtype=np.float32)
    canvas += (veil - canvas) * share[:, None, None]


@cache
def _streak(column: int) -> np.ndarray:
    """Coverage [CELL, CELL] of a slanted streak of rain."""
    y, x = np.mgrid[0:CELL, 0:CELL].astype(np.float32)
    off = x - (4 + 5 * column) - (CELL / 2 - y) * 0.3
    return (np.clip(1.5 - np.abs(off), 0, 1) * np.clip((7.5 - np.abs(y - 7.5)) / 3, 0, 1))


def paint_rain(canvas: np.ndarray, scene: Scene, rng: np.random.Generator) -> None:
    """Add streaks of rain in front of everything, in place."""
    bright = np.asarray((206, 218, 232) if scene.time != "night" else (128, 144, 176), np.float32)
    pick = rng.integers(0, 4, (CELLS, CELLS))
    tiles = np.stack([np.zeros((CELL, CELL), np.float32), *map(_streak, range(3))])
    cover = tiles[pick].transpose(0, 2, 1, 3).reshape(SIZE, SIZE, 1)
    canvas += (bright - canvas) * cover * 0.5
