"""The sky of a postcard: gradient, stars, clouds, sun or moon, rain and fog."""

from __future__ import annotations

from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from ssd_core.backbones.postcard.scenery import fog_share, sky_rows
from ssd_core.backbones.postcard.words.world import (
    BOW,
    BOW_MOVE,
    CELL,
    CLOUD,
    DISC_PALE,
    LIGHT,
    LIGHT_RADIUS,
    PLACES,
    VEIL,
    Frame,
    Scene,
    bow_of,
)

from .brush import axes, blend, drift, ellipse, finer, paste, shade, spot, steps

_CLOUD_SHAPE = (80, 144)  # rows, columns of a cloud sprite, px
# Puffs of each cloud: centre x, centre y, radius, px.
_PUFFS = (
    ((30, 52, 18), (52, 36, 24), (84, 32, 26), (112, 50, 20), (72, 54, 22)),
    ((28, 54, 16), (48, 42, 20), (78, 30, 28), (108, 44, 22), (120, 56, 14)),
    ((26, 56, 14), (50, 40, 24), (82, 44, 22), (110, 52, 18), (66, 56, 20)),
    ((24, 58, 12), (44, 48, 17), (68, 38, 22), (94, 46, 19), (116, 57, 13)),
)


def light_y(scene: Scene, frame: Frame) -> int:
    """The row of the light's centre, px."""
    return frame.light_y(scene.time, scene.ridge)


def _away(scene: Scene, frame: Frame) -> np.ndarray:
    """The distance of every px of the sky to the sun or the moon."""
    x, y = axes(frame)
    return np.hypot(x - frame.x_of(scene.light_place) + 0.5,
                    y[: frame.scale * (frame.horizon + CELL)] - light_y(scene, frame) + 0.5)


def _paint_glow(canvas: np.ndarray, scene: Scene, frame: Frame) -> None:
    away = _away(scene, frame)
    glow = 0.22 * np.exp(-((away / 120) ** 2)) + 0.36 * np.exp(-((away / 46) ** 2))
    strength = 0.6 if scene.time == "night" else 1.0
    blend(canvas[: len(away)], LIGHT[scene.time], strength * glow)


def _paint_disc(canvas: np.ndarray, scene: Scene, frame: Frame) -> None:
    away = _away(scene, frame)
    edge = np.asarray(LIGHT[scene.time], dtype=np.float32)
    centre = edge + (255 - edge) * DISC_PALE[scene.time]
    body = centre + (edge - centre) * np.clip(away / LIGHT_RADIUS, 0, 1)[..., None]
    cover = np.clip((LIGHT_RADIUS + 0.5 / frame.scale - away) * frame.scale, 0, 1)
    blend(canvas[: len(away)], body, cover)


@cache
def _star(large: bool, scale: int) -> np.ndarray:
    """Coverage [24, 24, 1] of a star: a core and light around it."""
    axis = steps(24, scale, 11.5)
    away = np.hypot(axis[:, None], axis[None, :])
    core, halo = (3.4, 0.5) if large else (1.9, 0.22)
    shine = 1.2 * np.exp(-((away / core) ** 2)) + halo * np.exp(-((away / 8) ** 2))
    return np.clip(shine, 0, 1)[..., None].astype(np.float32)


def _paint_stars(canvas: np.ndarray, frame: Frame, rng: np.random.Generator) -> None:
    """Stars that thin out towards the horizon, none beside another."""
    rows, columns = (frame.horizon - 3 * CELL) // CELL, frame.columns
    odds = 0.2 * (1 - 0.75 * np.arange(rows) / rows)[:, None]
    stars = rng.random((rows, columns)) < odds
    stars[:, 1:] &= ~stars[:, :-1]
    stars[1:] &= ~stars[:-1]
    for row, column in np.argwhere(stars):
        spot(canvas, (250, 244, 214), _star(bool(rng.random() < 0.35), frame.scale),
             CELL * int(column) + 8, CELL * int(row) + 8, frame.scale)


@cache
def _cloud(time: str, variant: int, mirrored: bool, large: float,
           scale: int) -> tuple[np.ndarray, np.ndarray]:
    """Colour [h, w, 3] and coverage [h, w, 1] of one cloud, `large` times the usual size."""
    rows, columns = _CLOUD_SHAPE
    drawn = 2 * scale
    top, belly = (np.asarray(c, dtype=np.float32) for c in CLOUD[time])
    mask = Image.new("L", (columns * drawn, rows * drawn), 0)
    draw = ImageDraw.Draw(mask)
    y, x = steps(rows, scale)[:, None], steps(columns, scale)
    shadow = np.zeros((scale * rows, scale * columns), dtype=np.float32)
    for cx, cy, r in _PUFFS[variant]:
        draw.ellipse([drawn * side for side in (cx - r, cy - r, cx + r, cy + r)], fill=255)
        inside = np.hypot(x - cx, y - cy) < r
        own = np.clip((y - cy + 0.4 * (x - cx)) / (1.3 * r) + 0.5, 0, 1)
        shadow = np.where(inside, own, shadow)
    draw.rounded_rectangle([drawn * side for side in (14, 52, columns - 14, 74)],
                           radius=11 * drawn, fill=255)
    shadow = np.maximum(shadow, (y - 52) / 22).clip(0, 1)
    size = scale * round(columns * large), scale * round(rows * large)
    mask = mask.filter(ImageFilter.GaussianBlur(3 * scale)).resize(size, Image.Resampling.BOX)
    soft = Image.fromarray(np.uint8(255 * shadow)).filter(ImageFilter.GaussianBlur(2.5 * scale))
    shares = np.asarray(soft.resize(size, Image.Resampling.BILINEAR), dtype=np.float32) / 255
    alpha = np.asarray(mask, dtype=np.float32) / 255 * 0.96
    if mirrored:
        shares, alpha = shares[:, ::-1], alpha[:, ::-1]
    return top + (belly - top) * shares[..., None], alpha[..., None]


def _paint_clouds(canvas: np.ndarray, scene: Scene, frame: Frame,
                  rng: np.random.Generator) -> None:
    """A cloud over every place but that of the light, the highest first."""
    tops = dict(zip(PLACES, rng.permutation(frame.clouds), strict=True))
    for place in sorted(tops, key=tops.__getitem__):
        variant, mirrored = int(rng.integers(len(_PUFFS))), bool(rng.random() < 0.5)
        large, dx, dy = float(rng.choice((0.85, 1.0, 1.2))), *rng.integers(-12, 13, 2)
        if place != scene.light_place:
            colour, alpha = _cloud(scene.time, variant, mirrored, large, frame.scale)
            x, y = frame.x_of(place) + 2 * int(dx), int(tops[place]) + int(dy) // 2
            x = _beside_light(x, y, 60 * large, scene, frame)
            paste(canvas, colour, alpha, x - alpha.shape[1] // frame.scale // 2, y, frame.scale)


def _beside_light(x: int, y: int, half: float, scene: Scene, frame: Frame) -> int:
    """The column of a cloud of width 2 * half, moved if it would hide the sun or the moon."""
    reach = round(half + LIGHT_RADIUS)
    if scene.light == "none" or y > light_y(scene, frame) + LIGHT_RADIUS:
        return x
    light = frame.x_of(scene.light_place)
    return max(x, light + reach) if x > light else min(x, light - reach)


def paint_sky(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """Fill the canvas, float32 [H, W, 3], with the scene's sky, in place."""
    canvas[:] = finer(sky_rows(scene.time, scene.sky, frame), frame.scale)[:, None]
    if scene.sky in VEIL:
        shade(canvas, 0.07 * drift(rng, canvas.shape[:2], 150, 40, frame.scale), scene.time)
    if scene.light != "none":
        _paint_glow(canvas, scene, frame)
    if scene.sky == "starry":
        _paint_stars(canvas, frame, rng)
    if scene.light != "none":
        _paint_disc(canvas, scene, frame)
    if scene.sky == "cloudy":
        _paint_clouds(canvas, scene, frame, rng)
    if scene.sky == "rainbow":
        _paint_rainbow(canvas, scene, frame, rng)


def _paint_rainbow(canvas: np.ndarray, scene: Scene, frame: Frame,
                   rng: np.random.Generator) -> None:
    """A bow over the horizon, brighter inside than outside, that fades at its feet."""
    x, y = axes(frame)
    y = y[: frame.scale * (frame.horizon + CELL)]
    middle = frame.width // 2 + BOW_MOVE * int(rng.integers(-1, 2))
    radius, band = bow_of(frame)
    away = np.hypot(x - middle, y - frame.horizon)
    share = (radius - away) / band
    part = canvas[: len(y)]
    low = np.clip((frame.horizon + 6 - y) / (0.5 * radius), 0, 1)
    inside = np.clip(share, 0, 1) * np.exp(-np.clip(share - 1, 0, None) / 3.0)
    blend(part, (255, 255, 250), 0.16 * inside * low)
    dim = 0.62 if scene.time == "day" else 0.54
    cover = np.clip(share / 0.12, 0, 1) * np.clip((1 - share) / 0.12, 0, 1)
    stops = np.linspace(0, 1, len(BOW))
    colour = np.stack([np.interp(share, stops, [c[n] for c in BOW]) for n in range(3)], -1)
    blend(part, colour.astype(np.float32), dim * cover * (0.25 + 0.75 * low))


def paint_fog(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """Add fog over the distance, thickest at the horizon, in place."""
    uneven = 1 + 0.2 * drift(rng, canvas.shape[:2], 180, 30, frame.scale)
    blend(canvas, VEIL["fog"][scene.time], fog_share(axes(frame)[1], frame) * uneven)


def paint_rain(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """Add slanted streaks of rain in front of everything, in place."""
    bright = (206, 218, 232) if scene.time != "night" else (128, 144, 176)
    for row, column in np.argwhere(rng.random((frame.rows, frame.columns)) < 0.4):
        x = int(rng.choice((4, 9, 14)))
        spot(canvas, bright, _streak(frame.scale), CELL * int(column) + x, CELL * int(row) + 8,
             frame.scale)


@cache
def _streak(scale: int) -> np.ndarray:
    """Coverage of a slanted streak of rain."""
    y, x = steps(19, scale, 9)[:, None], steps(9, scale, 4)
    along = np.clip((9 - np.abs(y)) / 5, 0, 1)
    return (0.34 * np.clip(1.4 - np.abs(x + 0.3 * y), 0, 1) * along)[..., None]


def paint_snowfall(canvas: np.ndarray, scene: Scene, frame: Frame,
                   rng: np.random.Generator) -> None:
    """Add snowflakes in front of everything, the near ones larger, in place."""
    bright = (255, 255, 255) if scene.time != "night" else (206, 216, 240)
    for row, column in np.argwhere(rng.random((frame.rows, frame.columns)) < 0.72):
        dx, dy = rng.integers(2, CELL - 2, 2)
        half = int(rng.choice((1, 2, 3), p=(0.45, 0.4, 0.15)))
        spot(canvas, bright, 0.9 * ellipse(half, half, 0.75, frame.scale),
             CELL * int(column) + int(dx), CELL * int(row) + int(dy), frame.scale)
