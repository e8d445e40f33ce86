"""The land of a postcard: the ground or water before the horizon, and its paths."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
from PIL import Image, ImageDraw

from ssd_core.backbones.postcard.scenery import depth, ground_rows
from ssd_core.backbones.postcard.words.world import (
    CELL,
    FLYING,
    GLEAM,
    GROUND,
    ROAD,
    SHADOW,
    SHORE,
    SHORES,
    WATER,
    Frame,
    Scene,
)

from .brush import axes, below, blend, curve, drift, even, finer, lens, shade, spot, steps
from .ridges import paint_ridge

_BLOSSOMS = ((232, 60, 60), (255, 216, 64), (252, 246, 250))
_HEART = (120, 76, 40)


def _rows_near(rng: np.random.Generator, frame: Frame, count: int) -> np.ndarray:
    """Random rows of the ground, px; as on a plain, more of them are far away."""
    near = rng.random(count) ** 1.4
    return frame.horizon + 5 + near * (frame.height - frame.horizon - 5)


def _nearness(rows: np.ndarray, ground: np.ndarray, frame: Frame) -> np.ndarray:
    """How near each row [h, 1] of the ground is, 0..1."""
    return np.maximum(rows[: len(ground)], 0) / (len(ground) // frame.scale)


# ---- grounds -----------------------------------------------------------------------------------


def _paint_meadow(ground: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    shade(ground, 0.13 * drift(rng, ground.shape[:2], 170, 34, frame.scale), scene.time)
    _paint_tufts(ground, scene, frame, rng)


def _paint_tufts(ground: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """A few tufts of grass, larger where they are near."""
    drawn, rows = 2 * frame.scale, len(ground) // frame.scale
    mask = Image.new("L", (drawn * frame.width, drawn * rows))
    draw = ImageDraw.Draw(mask)
    for y in np.sort(_rows_near(rng, frame, 26)) - frame.horizon:
        x, size = rng.uniform(0, frame.width), 5 + 11 * y / rows
        for lean in (-0.45, 0.0, 0.45):
            foot, tip = x + 2 * lean, x + lean * size + rng.uniform(-1, 1)
            high = size * (1 - 0.5 * abs(lean))
            blade = ((foot - 1, y), (foot + 1, y), (tip, y - high))
            draw.polygon([(drawn * x, drawn * y) for x, y in blade], fill=255)
    cover = np.asarray(mask.reduce(2), dtype=np.float32) / 255
    blend(ground, SHADOW[scene.time], 0.22 * cover)


def _paint_field(ground: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """Rows of wheat that meet far behind the horizon."""
    x, y = axes(frame)
    near = _nearness(y, ground, frame)
    vanishing = frame.width * rng.uniform(0.25, 0.75)
    lane = (x - vanishing) / (14 + 24 * near) + curve(rng, near, (0.9, 0.5))
    shade(ground, 0.15 * near**0.5 * np.sin(lane * np.pi), scene.time)
    shade(ground, 0.1 * drift(rng, ground.shape[:2], 130, 24, frame.scale), scene.time)


def _paint_dunes(ground: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """Soft crests of sand or snow, lit above and shaded below."""
    x, y = axes(frame)
    rows, high = y[: len(ground)], len(ground) // frame.scale
    for near in (0.2, 0.45, 0.78):
        crest = high * (near + rng.uniform(-0.08, 0.08)) + (6 + 12 * near) * curve(
            rng, x, (360, 1.0), (170, 0.4))
        edge, down = 3.0 / frame.scale, rows - crest
        under = below(rows, crest, edge) * np.exp(-np.clip(down, 0, None) / (14 + 26 * near))
        over = below(-rows, -crest, edge) * np.exp(-np.clip(-down, 0, None) / 12)
        shade(ground, 0.3 * over - 0.17 * under, scene.time)


def _paint_water(ground: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """Ripples of a lake, waves of a sea, and the light's glitter on both."""
    lake = scene.ground == "lake"
    uneven = drift(rng, ground.shape[:2], 200, 16, frame.scale)
    shade(ground, (0.08 if lake else 0.12) * uneven, scene.time)
    for y in np.sort(_rows_near(rng, frame, 24 if lake else 30)) - frame.horizon:
        light, near = rng.random() < 0.55, y / (len(ground) // frame.scale)
        colour = (GLEAM if light else SHADOW)[scene.time]
        _ripple(ground, colour, 0.26 if lake else 0.34, rng.uniform(0, frame.width), y,
                14 + 30 * near, (1.6 if lake else 2.2) + (2.4 if lake else 4.0) * near, frame, rng)
    if scene.light != "none":
        _paint_glitter(ground, scene, frame, rng)


def _ripple(ground: np.ndarray, colour: object, share: float, x: float, y: float, wide: float,
            high: float, frame: Frame, rng: np.random.Generator) -> None:
    half = round(wide * rng.uniform(0.7, 1.3)), max(1, round(high))
    spot(ground, colour, share * lens(*half, frame.scale), round(x), round(y), frame.scale)


def _paint_glitter(ground: np.ndarray, scene: Scene, frame: Frame,
                   rng: np.random.Generator) -> None:
    """The light's reflection: a soft column, and bright ripples in it."""
    x, y = axes(frame)
    centre, near = frame.x_of(scene.light_place), _nearness(y, ground, frame)
    column = np.exp(-(((x - centre) / (16 + 22 * near)) ** 2))
    blend(ground, GLEAM[scene.time], 0.3 * column * (1 - 0.5 * near))
    for row in _rows_near(rng, frame, 22) - frame.horizon:
        near_row = row / (len(ground) // frame.scale)
        _ripple(ground, GLEAM[scene.time], 0.55, centre + rng.normal(0, 9 + 10 * near_row), row,
                8 + 12 * near_row, 1.5 + 2 * near_row, frame, rng)


_GROUNDS = {"meadow": _paint_meadow, "field": _paint_field, "sand": _paint_dunes,
            "snow": _paint_dunes, "lake": _paint_water, "sea": _paint_water,
            "shore": _paint_meadow, "beach": _paint_dunes}


def _paint_shore(ground: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """Water from the horizon down to a shore, with foam along it, over painted land."""
    x, y = axes(frame)
    rows, high = y[: len(ground)], len(ground) // frame.scale
    line = SHORE * high + curve(rng, x, (420, 5.0), (190, 2.5), (70, 1.0))
    wet = replace(scene, ground=SHORES[scene.ground][1])
    water = np.repeat(finer(ground_rows(wet.ground, scene.time, frame), frame.scale),
                      frame.scale * frame.width, 1)[frame.scale * frame.horizon :]
    _paint_water(water, wet, frame, rng)
    damp = np.exp(-np.clip(rows - line, 0, None) / 9)
    blend(ground, GROUND["sand"][scene.time][1], 0.75 * damp * (scene.ground == "shore"))
    blend(ground, SHADOW[scene.time], 0.22 * damp)
    blend(ground, water, below(-rows, -line, 2.0 / frame.scale))
    foam = np.exp(-(((rows - line + 3) / (2.2 if scene.ground == "beach" else 1.3)) ** 2))
    blend(ground, GLEAM[scene.time], 0.75 * foam)


# ---- paths -------------------------------------------------------------------------------------


def _winding(scene: Scene, frame: Frame, rng: np.random.Generator
             ) -> tuple[np.ndarray, np.ndarray]:
    """Centre and half width of a path, px, for each row from the horizon down.

    It passes between the places rather than behind a thing.
    """
    near = np.clip(even(0, 1, frame.height - frame.horizon, frame.scale), 0, 1)
    taken = {thing.place for thing in scene.things if thing.kind not in FLYING}
    sides = [side for side, place in ((-1, "left"), (1, "right")) if place not in taken]
    side = int(rng.choice(sides or (-1, 1)))
    gap = 0.1 if "middle" not in taken else 0.25 if sides else 0.17
    middle, gap = frame.width / 2, gap * frame.width
    start = middle - side * rng.uniform(-0.03, 0.08) * frame.width
    bend = np.sin(np.pi * near) * 0.04 * frame.width * rng.uniform(-1, 1)
    centre = start + (middle + side * gap - start) * (1 - (1 - near) ** 2) + bend * near
    return centre, 2.5 + 36 * near**1.4


def _paint_path(ground: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    centre, half = _winding(scene, frame, rng)
    x = axes(frame)[0]
    off = np.abs(x - centre[:, None])
    bank = np.clip((half[:, None] * 1.18 + 1 - off) / (0.2 * half[:, None] + 1), 0, 1)
    blend(ground, SHADOW[scene.time], 0.2 * bank)
    far, near = (np.asarray(c, dtype=np.float32) for c in (
        ROAD[scene.time] if scene.path == "road" else GROUND["lake"][scene.time]))
    far_to_near = finer(depth(frame), frame.scale)[frame.scale * frame.horizon :, :, None]
    colour = far + (near - far) * far_to_near
    cover = below(half[:, None], off, 1.5 / frame.scale)
    blend(ground, np.broadcast_to(colour, ground.shape), cover)
    middle = np.exp(-((off / (0.45 * half[:, None] + 1)) ** 2)) * cover
    shade(ground, 0.14 * middle, scene.time)


# ---- flowers -----------------------------------------------------------------------------------


@cache
def _blossom(radius: int, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """Coverage of the petals and of the heart of a blossom."""
    axis = steps(2 * radius + 3, scale, radius + 1)
    y, x = axis[:, None], axis
    away = np.hypot(x, y)
    petals = below(radius * (0.86 + 0.2 * np.cos(5 * np.arctan2(y, x))), away, 1 / scale)
    return petals[..., None], below(0.38 * radius - 0.2, away, 1 / scale)[..., None]


def _paint_flowers(ground: np.ndarray, scene: Scene, frame: Frame,
                   rng: np.random.Generator) -> None:
    """Blossoms in drifts, in red, yellow and white, larger where they are near."""
    dim = 0.6 if scene.time == "night" else 1.0
    high = len(ground) // frame.scale
    rows, columns = range(CELL + 8, high, CELL), range(8, frame.width, CELL)
    groups = drift(rng, (high, frame.width), 90, 40)
    for y, x in product(rows, columns):
        dx, dy = (int(n) for n in 4 * rng.integers(-1, 2, 2))
        own = np.clip(1.5 + 1.6 * groups[y, x], 0, 2.99) if rng.random() < 0.7 else 3 * rng.random()
        if rng.random() < 0.3:
            petals, heart = _blossom(4 if y < 0.45 * high else 6, frame.scale)
            at = x + dx, y + dy, frame.scale
            spot(ground, SHADOW[scene.time], 0.25 * petals, x + dx + 1, y + dy + 2, frame.scale)
            spot(ground, np.multiply(_BLOSSOMS[int(own)], dim), petals, *at)
            spot(ground, np.multiply(_HEART, dim), heart, *at)


def paint_land(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """Paint ridge and ground over the sky, float32 [H, W, 3], in place."""
    paint_ridge(canvas, scene, frame, rng)
    x, y = axes(frame)
    wet = scene.ground in WATER or scene.ground in SHORES
    line = frame.horizon + (0 if wet else 1) * curve(rng, x, (300, 2.0))
    rows = finer(ground_rows(scene.ground, scene.time, frame), frame.scale)
    ground = np.repeat(rows, frame.scale * frame.width, 1)
    horizon = frame.scale * frame.horizon
    near = ground[horizon:]
    _GROUNDS[scene.ground](near, scene, frame, rng)
    if scene.ground in SHORES:
        _paint_shore(near, scene, frame, rng)
    if scene.path in ("road", "river"):
        _paint_path(near, scene, frame, rng)
    elif scene.path == "flowers":
        _paint_flowers(near, scene, frame, rng)
    ground[:horizon] = near[0]
    blend(canvas, ground, below(y, line, 3.0 / frame.scale))


