"""The objects of a postcard: bold sprites of 64 x 64 px, their shadows and reflections."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from PIL import Image, ImageDraw

from .sky import paste
from .world import BASELINE, GROUND, PAINT, PLACE_X, Scene, Thing

SPRITE = 64  # side of a sprite, px; things stand on its row 62
_SCALE = 4  # supersampling of the sprites
_FEET = 62
_BALLOON_TOP = 8  # row of the top edge of a balloon's sprite, px
_WOOD, _ROOF, _DARK = (98, 66, 52), (92, 62, 66), (58, 50, 72)
_LIT, _PANE = (255, 226, 140), (70, 82, 116)

Points = list[tuple[float, float]]


class _Pen:
    """Draws into a supersampled colour image and a mask of the parts in the thing's colour."""

    def __init__(self, colour: tuple[int, int, int], night: bool) -> None:
        side = (SPRITE * _SCALE, SPRITE * _SCALE)
        self.colour, self.pane = colour, _LIT if night else _PANE
        self.image = Image.new("RGBA", side, (*colour, 0))
        self.mask = Image.new("L", side, 0)

    def shape(self, points: Points, trim: tuple[int, int, int] | None = None) -> None:
        """Fills a polygon given in px, in the thing's colour or in a fixed trim colour."""
        scaled = [(x * _SCALE, y * _SCALE) for x, y in points]
        ImageDraw.Draw(self.image).polygon(scaled, fill=(*(trim or self.colour), 255))
        ImageDraw.Draw(self.mask).polygon(scaled, fill=0 if trim else 255)

    def box(self, x0: float, y0: float, x1: float, y1: float, trim=None) -> None:
        """Fills a rectangle."""
        self.shape([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], trim)

    def disc(self, x: float, y: float, radius: float, trim=None) -> None:
        """Fills a circle."""
        turn = np.linspace(0, 2 * np.pi, 48, endpoint=False)
        around = zip(x + radius * np.cos(turn), y + radius * np.sin(turn), strict=True)
        self.shape([(float(a), float(b)) for a, b in around], trim)


def _house(pen: _Pen) -> None:
    pen.box(43, 10, 49, 24, _ROOF)
    pen.box(11, 30, 53, _FEET)
    pen.shape([(6, 32), (32, 8), (58, 32)], _ROOF)
    pen.box(28, 44, 36, _FEET, _DARK)
    pen.box(16, 38, 23, 46, pen.pane)
    pen.box(41, 38, 48, 46, pen.pane)


def _tree(pen: _Pen) -> None:
    pen.box(28, 38, 36, _FEET, _WOOD)
    for x, y, radius in ((20, 31, 12), (44, 31, 12), (32, 21, 16), (32, 33, 13)):
        pen.disc(x, y, radius)


def _tower(pen: _Pen) -> None:
    pen.box(21, 14, 43, _FEET)
    pen.box(17, 12, 47, 20)
    for x in (17, 28, 39):
        pen.box(x, 5, x + 8, 13)
    pen.box(28, 26, 36, 36, pen.pane)
    pen.box(27, 49, 37, _FEET, _DARK)


def _tent(pen: _Pen) -> None:
    pen.box(31, 10, 33, 18, _WOOD)
    pen.shape([(6, _FEET), (32, 15), (58, _FEET)])
    pen.shape([(24, _FEET), (32, 34), (40, _FEET)], _DARK)


def _windmill(pen: _Pen) -> None:
    pen.shape([(17, _FEET), (23, 26), (41, 26), (47, _FEET)])
    pen.disc(32, 25, 9, _ROOF)
    pen.box(28, 50, 36, _FEET, _DARK)
    for a, b in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        tip, side = np.array([a, b]) * 19.0, np.array([-b, a]) * 3.4
        hub = np.array([32.0, 24.0])
        corners = (hub + side * 0.4, hub + tip + side, hub + tip - side, hub - side * 0.4)
        pen.shape([(float(x), float(y)) for x, y in corners], _WOOD)


def _boat(pen: _Pen) -> None:
    pen.box(30, 3, 33, 52, _WOOD)
    pen.shape([(35, 5), (35, 45), (57, 45)])
    pen.shape([(28, 15), (28, 45), (11, 45)])
    pen.shape([(6, 50), (58, 50), (50, _FEET), (15, _FEET)])


def _balloon(pen: _Pen) -> None:
    pen.shape([(27, 46), (37, 46), (36, 54), (28, 54)], _DARK)
    pen.disc(32, 24, 21)
    pen.shape([(13, 33), (51, 33), (38, 48), (26, 48)])
    pen.box(26, 53, 38, 61, _WOOD)


_DRAWERS: dict[str, Callable[[_Pen], None]] = {
    "house": _house,
    "tree": _tree,
    "tower": _tower,
    "tent": _tent,
    "windmill": _windmill,
    "boat": _boat,
    "balloon": _balloon,
}


def _down(image: Image.Image) -> np.ndarray:
    small = image.resize((SPRITE, SPRITE), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32)


def _shading(kind: str) -> np.ndarray:
    """Light from the left: factors [1, 64, 1]; a balloon gets soft vertical gores as well."""
    columns = np.arange(SPRITE, dtype=np.float32)
    light = np.interp(columns, (8, 56), (1.02, 0.88))
    if kind == "balloon":
        light = light * (1 - 0.08 * (np.cos(columns * 2 * np.pi / 14) > 0))
    return light.astype(np.float32)[None, :, None]


@cache
def sprite(kind: str, colour: str, night: bool) -> tuple[np.ndarray, np.ndarray]:
    """Colour [64, 64, 3] (0..255) and coverage [64, 64, 1] (0..1) of a thing."""
    pen = _Pen(PAINT[colour], night)
    _DRAWERS[kind](pen)
    # Blending in premultiplied form keeps the edges free of a foreign fringe.
    small = _down(pen.image.convert("RGBa"))
    alpha = small[..., 3:] / 255
    solid = small[..., :3] / np.maximum(alpha, 1e-3)
    shade = _shading(kind) * (0.95 if night else 1.0)
    return np.clip(solid * shade, 0, 255), alpha


@cache
def template(kind: str) -> np.ndarray:
    """The share of each px that shows the thing's own colour, float32 [64, 64] (0..1)."""
    pen = _Pen(PAINT["red"], False)
    _DRAWERS[kind](pen)
    return _down(pen.mask) / 255


def corner(kind: str, place: str) -> tuple[int, int]:
    """Where a thing's sprite has its upper left corner, px; always on the lattice."""
    top = _BALLOON_TOP if kind == "balloon" else BASELINE - _FEET
    return PLACE_X[place] - SPRITE // 2, top


@cache
def _ellipse(half_width: int, half_height: int, edge: float) -> np.ndarray:
    """Coverage [2 * half_height + 1, 2 * half_width + 1, 1] of an ellipse with a soft edge."""
    x = np.linspace(-1, 1, 2 * half_width + 1, dtype=np.float32)
    y = np.linspace(-1, 1, 2 * half_height + 1, dtype=np.float32)[:, None]
    return np.clip((1 - np.hypot(x, y)) / edge, 0, 1)[..., None]


def _spot(canvas: np.ndarray, colour: np.ndarray, mask: np.ndarray, x: int, y: int) -> None:
    rows, columns = mask.shape[:2]
    solid = np.broadcast_to(colour, (rows, columns, 3))
    paste(canvas, solid, mask, x - columns // 2, y - rows // 2)


def _paint_reflection(canvas: np.ndarray, pair: tuple[np.ndarray, np.ndarray], x: int, y: int):
    colour, alpha = pair
    fade = np.linspace(0.46, 0.1, SPRITE, dtype=np.float32)[:, None, None]
    paste(canvas, colour[::-1] * 0.85, alpha[::-1] * fade, x, y + 2 * _FEET - SPRITE)


def _paint_footing(canvas: np.ndarray, scene: Scene, thing: Thing, x: int, y: int) -> None:
    """What ties a thing to the ground: a shadow on land, an islet or a wake on water."""
    feet = (x + SPRITE // 2, y + _FEET)
    if scene.ground != "lake":
        shadow = np.asarray(GROUND[scene.ground][scene.time][1], dtype=np.float32) * 0.62
        _spot(canvas, shadow, _ellipse(30, 4, 0.8) * 0.7, feet[0] + 2, feet[1] + 1)
    elif thing.kind != "boat":
        far, near = (np.asarray(c, dtype=np.float32) for c in GROUND["meadow"][scene.time])
        _spot(canvas, near * 0.72, _ellipse(29, 7, 0.12), feet[0], feet[1] + 2)
        _spot(canvas, (far + near) / 2, _ellipse(29, 6, 0.12), feet[0], feet[1])


def _paint_thing(canvas: np.ndarray, scene: Scene, thing: Thing) -> None:
    x, y = corner(thing.kind, thing.place)
    pair = sprite(thing.kind, thing.colour, scene.time == "night")
    if thing.kind != "balloon":
        if scene.ground == "lake":
            _paint_reflection(canvas, pair, x, y)
        _paint_footing(canvas, scene, thing, x, y)
    paste(canvas, *pair, x, y)


def paint_things(canvas: np.ndarray, scene: Scene) -> None:
    """Paints the scene's things over sky and land, float32 [192, 192, 3], in place."""
    for thing in scene.things:
        _paint_thing(canvas, scene, thing)
