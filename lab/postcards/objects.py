"""The things of a postcard: where they stand, how large, their shadows and reflections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from PIL import Image, ImageFilter

from ssd_core.backbones.postcard.words.world import (
    BACKDROPS,
    CELL,
    FAR_PLACES,
    FLOATING,
    FLYING,
    GROUND,
    PAINT,
    SHADOW,
    SLOTS,
    SMALL,
    SQUARE,
    TONE,
    VEIL,
    WATER,
    Frame,
    Scene,
    SceneObject,
    is_many,
)

from .brush import ellipse, even, paste, spot
from .drawings import DRAWINGS
from .pen import BELOW, FINER, HIGH, LIT, WIDE, Look, Pen

COVERED = 0.3  # least share of a cell that a thing covers
_LARGE = 1.4  # px of a unit from which drawings need less supersampling
_BARE = (*FLYING, *BACKDROPS, "train", "rocket")  # kinds before which no grass grows
_VEILED = {"rain": 0.12, "snowfall": 0.1, "fog": 0.2}  # how much of a thing the air hides


@dataclass(frozen=True)
class Stand:
    """Where and how a thing is drawn.

    x, y: the upper left corner of its drawing, px. size: px of a unit. drawing: which one of its
    kind, flip: mirrored. lit: the side that the light comes from, -1 left, 1 right.
    """

    x: int
    y: int
    size: float
    drawing: int
    flip: bool
    lit: int

    @property
    def wide(self) -> int:
        """Columns of the drawing, px."""
        return round(WIDE * self.size)

    @property
    def high(self) -> int:
        """Rows of the drawing, px."""
        return round(HIGH * self.size)

    @property
    def feet(self) -> int:
        """The row on which the thing stands, px."""
        return self.y + self.high - round(BELOW * self.size)


@dataclass(frozen=True)
class Layers:
    """A drawing without the hour; see `Pen`. cover, light, glow: [h, w, 1]."""

    albedo: np.ndarray
    cover: np.ndarray
    light: np.ndarray
    glow: np.ndarray


def size_of(scene: Scene, thing: SceneObject, frame: Frame) -> float:
    """The px of a unit of a thing's drawing: alone it is large, and small beside large ones."""
    alone, few, many, far = frame.sizes
    if thing.place in FAR_PLACES:
        return far
    if is_many(scene.things):
        return many
    if len(scene.things) == 1:
        return alone
    large = any(other.kind not in SMALL for other in scene.things)
    return many if large and thing.kind in SMALL else few


def stand_of(scene: Scene, thing: SceneObject, frame: Frame) -> Stand:
    """Where a thing stands: at its place, moved by whole cells as far as there is room."""
    rng = np.random.default_rng((scene.jitter, SLOTS.index(thing.place)))
    inward = {"left": (0, 2), "right": (-1, 1)}.get(thing.place, (-1, 2))
    dx, dy = int(rng.integers(*inward)), int(rng.integers(0, 2))
    drawing, flip = int(rng.integers(len(DRAWINGS[thing.kind]))), bool(rng.random() < 0.5)
    size = size_of(scene, thing, frame)
    if len(scene.things) == 1 and frame.roam:
        dx += {"left": 2, "right": -2}.get(thing.place, 0)
    elif not _has_room(scene, thing) or not frame.roam:
        dx = 0
    if is_many(scene.things):
        dy = 0
    elif thing.kind in SMALL and size < frame.sizes[1]:
        dy += 1  # before the large things
    middle = frame.x_of(thing.place) + CELL * dx
    y = CELL * dy + (frame.balloon * CELL if thing.kind in FLYING else
                     frame.feet_of(thing.place, thing.kind) - round((HIGH - BELOW) * size))
    return Stand(middle - round(WIDE * size) // 2, y, size, drawing, flip,
                 _lit_side(scene, middle, frame))


def _has_room(scene: Scene, thing: SceneObject) -> bool:
    near = {"left": ("middle",), "middle": ("left", "right"), "right": ("middle",)}
    return thing.kind not in FLOATING and not is_many(scene.things) and not any(
        other.place in near[thing.place] for other in scene.things)


def _lit_side(scene: Scene, middle: int, frame: Frame) -> int:
    if scene.light == "none":
        return -1
    return 1 if frame.x_of(scene.light_place) > middle + CELL else -1


def _down(layer: np.ndarray, finer: int) -> np.ndarray:
    """Means of finer x finer px of a layer [h, w, c]."""
    high, wide = layer.shape[0] // finer, layer.shape[1] // finer
    return layer.reshape(high, finer, wide, finer, -1).mean((1, 3))


@lru_cache(maxsize=384)
def layers(kind: str, drawing: int, colour: str, look: tuple[float, bool, int, bool]) -> Layers:
    """A drawing of a thing. look: px of a unit, flip, lit, night, as in `Look`."""
    finer = FINER if look[0] < _LARGE else FINER - 1
    pen = Pen(Look(PAINT[colour], *look), finer)
    DRAWINGS[kind][drawing](pen)
    cover = pen.cover[..., None]
    shown = _down(cover, finer)
    part = np.maximum(shown, 1e-3)
    return Layers(_down(pen.albedo * cover, finer) / part, shown,
                  _down(pen.light[..., None] * cover, finer) / part,
                  _down(pen.glow[..., None], finer))


def layers_of(scene: Scene, thing: SceneObject, stand: Stand, frame: Frame) -> Layers:
    """The drawing of a thing of a scene."""
    look = (stand.size * frame.scale, stand.flip, stand.lit, scene.time == "night")
    return layers(thing.kind, stand.drawing, thing.colour, look)


def toned(drawn: Layers, time: str) -> np.ndarray:
    """The colours of a drawing at an hour, [h, w, 3]; lamps keep theirs."""
    factor, high, low = (np.asarray(part, dtype=np.float32) for part in TONE[time])
    colour = drawn.albedo * factor
    up, down = np.maximum(drawn.light, 0), np.maximum(-drawn.light, 0)
    colour = colour + (high - colour) * (0.4 * up)
    colour = colour * (1 - (1 - low) * (0.85 * down))
    return colour + (np.asarray(LIT, dtype=np.float32) - colour) * np.minimum(drawn.glow, 1)


# ---- ground and water around a thing -------------------------------------------------------------


def _sheared(cover: np.ndarray, slope: float, squash: float) -> np.ndarray:
    """A cover [h, w] upside down, `squash` times as high, each row moved by slope * row."""
    high, wide = cover.shape
    rows = max(2, round(high * squash))
    side = int(abs(slope) * rows) + 2
    image = Image.fromarray(np.uint8(255 * cover[::-1]))
    data = (1, -slope, side * (slope < 0) * -1 + 0.0, 0, 1 / squash, 0)
    moved = image.transform((wide + side, rows), Image.Transform.AFFINE, data,
                            Image.Resampling.BILINEAR)
    return np.asarray(moved, dtype=np.float32) / 255


def _paint_shadow(canvas: np.ndarray, scene: Scene, drawn: Layers, stand: Stand, frame: Frame
                  ) -> None:
    """A soft shade under a thing, and the shadow that it casts away from the sun or the moon."""
    fine = frame.scale
    ground = np.asarray(GROUND[scene.ground][scene.time][1], dtype=np.float32)
    shadow = 0.5 * ground + 0.25 * np.asarray(SHADOW[scene.time], dtype=np.float32)
    foot = drawn.cover[round(0.8 * drawn.cover.shape[0]) :, :, 0].max(0) > 0.5
    columns = np.flatnonzero(foot)
    if not len(columns):
        return
    left, right = columns[0] // fine, columns[-1] // fine
    half = max(4, (right - left) // 2 + round(5 * stand.size))
    middle = stand.x + (left + right) // 2
    spot(canvas, shadow, ellipse(half, round(7 * stand.size), 0.9, fine) * 0.62, middle,
         stand.feet, fine)
    if scene.light == "none":
        return
    low = scene.time != "day"
    body = drawn.cover[: (stand.feet - stand.y) * fine, :, 0]
    slope = (1.5 if low else 1.0) * -stand.lit
    cast = _sheared(body, slope, 0.3 if low else 0.2)
    soft = Image.fromarray(np.uint8(255 * cast)).filter(ImageFilter.GaussianBlur(1.6 * fine))
    fade = np.linspace(0.55, 0.12, len(cast), dtype=np.float32)[:, None]
    mask = np.asarray(soft, dtype=np.float32) / 255 * fade
    side = cast.shape[1] - body.shape[1]
    x = stand.x - (side // fine if slope < 0 else 0)
    solid = np.broadcast_to(shadow * 0.8, (*mask.shape, 3))
    paste(canvas, solid, mask[..., None], x, stand.feet - 2, fine)


def _paint_reflection(canvas: np.ndarray, colour: np.ndarray, cover: np.ndarray, stand: Stand,
                      frame: Frame) -> None:
    """A thing upside down in the water, rippled and fading away from it."""
    rows = (stand.feet - stand.y) * 3 // 4
    fine = frame.scale
    part = slice(fine * (stand.feet - stand.y - rows), fine * (stand.feet - stand.y))
    colour, cover = colour[part][::-1] * 0.84, cover[part][::-1]
    down = even(0, rows - 1, rows, fine)
    offset = np.rint(fine * (0.4 + 0.03 * down) * np.sin(down * 0.9)).astype(int)
    at = (np.arange(colour.shape[1])[None] + offset[:, None]) % colour.shape[1]
    colour, cover = (np.take_along_axis(layer, at[..., None], 1) for layer in (colour, cover))
    fade = 0.46 * even(1, 0.04, rows, fine)[:, None, None] ** 1.3
    paste(canvas, colour, cover * fade, stand.x, stand.feet, fine)


def _paint_islet(canvas: np.ndarray, scene: Scene, stand: Stand, frame: Frame) -> None:
    """Land in the water: a grassy top over a sandy shore."""
    far, near = (np.asarray(c, dtype=np.float32) for c in GROUND["meadow"][scene.time])
    sand = np.asarray(GROUND["sand"][scene.time][1], dtype=np.float32)
    middle, size, fine = stand.x + stand.wide // 2, stand.size, frame.scale
    for colour, half, high, down, edge in (
            (near * 0.45, 63, 13, 6, 0.3), (sand * 0.86, 63, 12, 3, 0.1),
            (near * 0.85, 59, 9, 1, 0.15), ((far + near) / 2, 56, 7.5, -1, 0.3)):
        spot(canvas, colour, ellipse(round(half * size), round(high * size), edge, fine), middle,
             stand.feet + round(down * size), fine)


def _paint_blades(canvas: np.ndarray, scene: Scene, stand: Stand, frame: Frame) -> None:
    """Grass or wheat before the foot of a thing."""
    rng = np.random.default_rng((scene.jitter, stand.x))
    far, near = (np.asarray(c, dtype=np.float32) for c in GROUND[scene.ground][scene.time])
    fine = frame.scale
    high = max(2, round(6 * stand.size))
    for _ in range(round(11 * stand.size)):
        x = stand.x + stand.wide // 2 + round(rng.uniform(-0.4, 0.4) * stand.wide)
        tall = round(high * rng.uniform(0.7, 1.3))
        lean = rng.uniform(-0.5, 0.5)
        y = np.arange(fine * tall, dtype=np.float32)[:, None] / fine
        column = np.arange(fine * 7, dtype=np.float32)[None] / fine - 3
        width = 0.4 + 1.0 * y / tall
        mask = np.clip(width - np.abs(column - lean * (tall - y)) + 0.5, 0, 1)[..., None]
        colour = near * (0.72 if rng.random() < 0.6 else 1.1) + 0.08 * far
        spot(canvas, np.minimum(colour, 255), 0.85 * mask, x,
             stand.feet + round(rng.uniform(0, 2)) - tall // 2 + 1, fine)


def _paint_thing(canvas: np.ndarray, scene: Scene, thing: SceneObject, frame: Frame) -> None:
    stand = stand_of(scene, thing, frame)
    drawn = layers_of(scene, thing, stand, frame)
    colour = toned(drawn, scene.time)
    if scene.sky in _VEILED:
        veil = np.asarray(VEIL[scene.sky][scene.time], dtype=np.float32)
        colour = colour + (veil - colour) * _VEILED[scene.sky] * (1 - drawn.glow)
    if thing.kind not in FLYING:
        if scene.ground not in WATER:
            _paint_shadow(canvas, scene, drawn, stand, frame)
        else:
            _paint_reflection(canvas, colour, drawn.cover, stand, frame)
            if thing.kind not in FLOATING:
                _paint_islet(canvas, scene, stand, frame)
    cover = drawn.cover
    if thing.kind in FLOATING:  # the water hides what is below its surface
        lines = np.arange(len(cover))[:, None, None] / frame.scale
        cover = cover * np.clip(stand.feet - stand.y - lines, 0, 1)
    paste(canvas, colour, cover, stand.x, stand.y, frame.scale)
    if scene.ground in ("meadow", "field", "shore") and thing.kind not in _BARE:
        _paint_blades(canvas, scene, stand, frame)


def ordered(scene: Scene) -> list[tuple[int, SceneObject]]:
    """The things with their numbers, the farthest first."""
    def near(entry: tuple[int, SceneObject]) -> tuple[bool, int]:
        thing = entry[1]
        stand = stand_of(scene, thing, SQUARE)
        return thing.kind not in FLYING, stand.feet - 99 * (thing.kind in BACKDROPS)

    return sorted(enumerate(scene.things), key=near)


def paint_objects(canvas: np.ndarray, scene: Scene, frame: Frame) -> None:
    """Paint the scene's things over sky and land, float32 [H, W, 3], in place."""
    for _, thing in ordered(scene):
        _paint_thing(canvas, scene, thing, frame)


# ---- what they cover -----------------------------------------------------------------------------


@cache
def outline(kind: str, drawing: int, flip: bool, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Cover [h, w], uint8 (0 or 1), of a drawing, and of its parts in the thing's own colour."""
    pen = Pen(Look(PAINT["red"], size, flip), finer=1, flat=True)
    DRAWINGS[kind][drawing](pen)
    return np.uint8(pen.cover > 0.5), np.uint8(pen.own > 0.5)


def cover_of_thing(scene: Scene, thing: SceneObject, frame: Frame) -> np.ndarray:
    """Which px a thing covers, float32 [scale * H, scale * W] (0 or 1)."""
    cover = np.zeros((frame.scale * frame.height, frame.scale * frame.width, 1), dtype=np.float32)
    stand = stand_of(scene, thing, frame)
    drawn = outline(thing.kind, stand.drawing, stand.flip, stand.size * frame.scale)[0]
    alpha = drawn[..., None].astype(np.float32)
    paste(cover, np.ones_like(alpha), alpha, stand.x, stand.y, frame.scale)
    return cover[..., 0]


def cover_of(scene: Scene, frame: Frame = SQUARE) -> np.ndarray:
    """Which px the things cover, float32 [scale * H, scale * W] (0 or 1)."""
    return np.maximum.reduce([cover_of_thing(scene, thing, frame) for thing in scene.things])


def cells_of(scene: Scene, frame: Frame = SQUARE) -> np.ndarray:
    """The number of the thing that covers each cell, int [rows, columns]; -1 for none."""
    cells = np.full((frame.rows, frame.columns), -1)
    for number, thing in ordered(scene):
        cover = cover_of_thing(scene, thing, frame)
        blocks = cover.reshape(frame.rows, CELL, frame.columns, CELL).mean((1, 3))
        cells[blocks > COVERED] = number
    return cells
