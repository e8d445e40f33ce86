"""The objects of a postcard: painted sprites of 112 x 128 px, their shadows and reflections."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from PIL import Image, ImageDraw

from ssd_core.backbones.postcard.words.world import (
    CELL,
    GROUND,
    NIGHT_PAINT,
    ON_WATER,
    PAINT,
    PLACES,
    SQUARE,
    WATER,
    Frame,
    Scene,
    SceneObject,
)

from .brush import ellipse, even, paste, spot, steps

WIDTH, HEIGHT = 7 * CELL, 8 * CELL  # a sprite's size, px
FEET = HEIGHT - 6  # the sprite's row on which its thing stands
_SUNK = 4  # px over which a thing fades into the ground
_SCALE = 3  # supersampling of the sprites, at any scale of the picture
_WOOD, _ROOF, _DARK, _STONE = (106, 68, 48), (96, 62, 66), (56, 46, 66), (150, 140, 138)
_PANE = (66, 84, 122)
TRIMS = (_DARK, _PANE, _ROOF, _STONE, _WOOD)  # colours of things besides their own
LIT = (255, 222, 120)  # lamps, and windows at night
TINTS = (0.74, 0.8, 0.88, 1.0, 1.14)  # of a thing's own colour, roughly

Colour = tuple[int, int, int]
Points = list[tuple[float, float]]


def tinted(colour: Colour, factor: float) -> Colour:
    """A lighter (factor > 1) or darker colour; shadows turn towards blue."""
    toward = (255, 250, 235) if factor > 1 else (34, 22, 60)
    share = min(1.0, abs(factor - 1))
    red, green, blue = (round(c + (t - c) * share) for c, t in zip(colour, toward, strict=True))
    return red, green, blue


class _Pen:
    """Draws into a supersampled colour image and a mask of the parts in the thing's colour."""

    def __init__(self, colour: Colour, night: bool, scale: int = 1) -> None:
        self.scale = _SCALE * scale
        side = (WIDTH * self.scale, HEIGHT * self.scale)
        self.colour, self.pane = colour, LIT if night else _PANE
        self.image = Image.new("RGBA", side, (*colour, 0))
        self.mask = Image.new("L", side, 0)

    def shape(self, points: Points, trim: Colour | None = None, tint: float = 1.0) -> None:
        """Fill a polygon given in px, in a tint of the thing's colour or in a trim colour."""
        scaled = [(x * self.scale, y * self.scale) for x, y in points]
        fill = trim or tinted(self.colour, tint)
        ImageDraw.Draw(self.image).polygon(scaled, fill=(*fill, 255))
        ImageDraw.Draw(self.mask).polygon(scaled, fill=0 if trim else 255)

    def box(self, x0: float, y0: float, x1: float, y1: float, trim: Colour | None = None,
            tint: float = 1.0) -> None:
        """Fill a rectangle."""
        self.shape([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], trim, tint)

    def disc(self, x: float, y: float, radius: float, trim: Colour | None = None,
             tint: float = 1.0, tall: float = 1.0) -> None:
        """Fill a circle, or an ellipse `tall` times as high as wide."""
        turn = np.linspace(0, 2 * np.pi, 48, endpoint=False)
        around = zip(x + radius * np.cos(turn), y + tall * radius * np.sin(turn), strict=True)
        self.shape([(float(a), float(b)) for a, b in around], trim, tint)

    def window(self, x: float, y: float, wide: float = 10, high: float = 14) -> None:
        """A pane in a light frame."""
        self.box(x - 1.5, y - 1.5, x + wide + 1.5, y + high + 1.5, _DARK)
        self.box(x, y, x + wide, y + high, self.pane)
        self.box(x + wide / 2 - 0.8, y, x + wide / 2 + 0.8, y + high, _DARK)


def _cottage(pen: _Pen, x: float, wide: float, high: float) -> None:
    """A house with its front at x, `wide` across, its eaves `high` above the ground."""
    eaves, peak = FEET - high, FEET - high - 0.52 * wide
    pen.box(x + 0.66 * wide, peak + 4, x + 0.78 * wide, eaves, _STONE)
    pen.box(x, eaves, x + 0.62 * wide, FEET)
    pen.box(x + 0.62 * wide, eaves, x + wide, FEET, tint=0.78)
    pen.shape([(x - 0.07 * wide, eaves + 2), (x + 0.3 * wide, peak), (x + 0.8 * wide, peak),
               (x + 1.06 * wide, eaves + 2)], _ROOF)
    pen.shape([(x - 0.02 * wide, eaves + 2), (x + 0.3 * wide, peak + 5),
               (x + 0.62 * wide, eaves + 2)])
    pen.box(x + 0.24 * wide, FEET - 0.55 * high, x + 0.4 * wide, FEET, _DARK)


def _house(pen: _Pen) -> None:
    _cottage(pen, 12, 90, 52)
    pen.window(18, 82)
    pen.window(52, 82)
    pen.window(80, 82, 12)
    pen.disc(39, 62, 5, pen.pane)


def _houses(pen: _Pen) -> None:
    _cottage(pen, 36, 42, 46)
    pen.window(55, 82, 5, 8)
    _cottage(pen, 4, 46, 30)
    pen.window(36, 100, 7, 9)
    _cottage(pen, 60, 48, 36)
    pen.window(93, 96, 7, 9)


def _church(pen: _Pen) -> None:
    pen.shape([(44, 78), (100, 78), (108, 94), (36, 94)], _ROOF)
    pen.box(40, 94, 104, FEET, tint=0.8)
    pen.box(12, 60, 44, FEET)
    pen.shape([(8, 60), (28, 12), (48, 60)], _ROOF)
    pen.box(26.5, 2, 29.5, 16, _WOOD)
    pen.box(23, 6, 33, 9, _WOOD)
    pen.disc(28, 70, 6, pen.pane)
    pen.box(22, 100, 34, FEET, _DARK)
    for x in (54, 72, 90):
        pen.window(x, 101, 7, 13)


def _battlements(pen: _Pen, x0: float, x1: float, y: float, tint: float = 1.0) -> None:
    count = max(2, int((x1 - x0) // 11))
    step = (x1 - x0) / (2 * count - 1)
    for i in range(count):
        pen.box(x0 + 2 * i * step, y - 8, x0 + (2 * i + 1) * step, y + 1, tint=tint)


def _castle(pen: _Pen) -> None:
    pen.box(26, 74, 86, FEET, tint=0.84)
    _battlements(pen, 30, 82, 74, 0.84)
    for x in (6, 82):
        pen.box(x, 52, x + 24, FEET)
        pen.box(x + 16, 52, x + 24, FEET, tint=0.8)
        pen.shape([(x - 4, 52), (x + 12, 22), (x + 28, 52)], _ROOF)
        pen.window(x + 8, 64, 7, 12)
    pen.box(46, 96, 66, FEET, _DARK)
    pen.disc(56, 97, 10, _DARK)


def _tower(pen: _Pen) -> None:
    pen.box(38, 34, 66, FEET)
    pen.box(60, 34, 74, FEET, tint=0.78)
    pen.box(30, 24, 82, 38, tint=0.92)
    _battlements(pen, 30, 82, 24)
    pen.window(50, 52, 9, 14)
    pen.window(50, 82, 9, 14)
    pen.box(48, 104, 62, FEET, _DARK)


def _lighthouse(pen: _Pen) -> None:
    def half(y: float) -> float:
        return 11 + (y - 34) * 0.11

    band = _STONE if pen.colour == PAINT["white"] else (244, 240, 230)
    for n, top in enumerate(range(33, FEET, 18)):
        low = min(top + 18, FEET)
        trim = band if n % 2 else None
        pen.shape([(56 - half(top), top), (56 + half(top), top), (56 + half(low), low),
                   (56 - half(low), low)], trim)
        pen.shape([(56 + 0.4 * half(top), top), (56 + half(top), top), (56 + half(low), low),
                   (56 + 0.4 * half(low), low)], tinted(trim, 0.8) if trim else None, 0.78)
    pen.box(38, 30, 74, 36, _DARK)
    pen.box(47, 14, 65, 30, LIT)
    pen.box(54.5, 14, 57.5, 30, _DARK)
    pen.shape([(42, 15), (56, 2), (70, 15)])


def _windmill(pen: _Pen) -> None:
    pen.shape([(32, FEET), (42, 48), (70, 48), (80, FEET)])
    pen.shape([(64, FEET), (60, 48), (70, 48), (80, FEET)], tint=0.78)
    pen.disc(56, 48, 15, _ROOF)
    pen.box(49, 102, 63, FEET, _DARK)
    pen.window(52, 74, 8, 11)
    for a, b in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        tip, side = np.array([a, b]) * 33.0, np.array([-b, a]) * 5.5
        hub = np.array([56.0, 46.0])
        corners = (hub + tip * 0.18, hub + tip * 0.22 + side, hub + tip + side, hub + tip)
        pen.shape([(float(x), float(y)) for x, y in corners], (238, 226, 200))
        arm = (hub - side * 0.25, hub + tip - side * 0.25, hub + tip + side * 0.15, hub)
        pen.shape([(float(x), float(y)) for x, y in arm], _WOOD)
    pen.disc(56, 46, 4, _DARK)


def _tent(pen: _Pen) -> None:
    pen.shape([(36, 62), (72, 54), (108, FEET), (62, FEET)], tint=0.76)
    pen.shape([(6, FEET), (36, 60), (68, FEET)])
    pen.shape([(26, FEET), (36, 80), (46, FEET)], _DARK)
    pen.shape([(35, 52), (38, 52), (38, 66), (35, 66)], _WOOD)


def _crown(pen: _Pen, x: float, y: float, radius: float) -> None:
    """A round crown of leaves, lit from the left."""
    for dx, dy, share, tint in ((0.42, 0.3, 0.66, 0.74), (-0.4, 0.34, 0.64, 0.86),
                                (0, -0.3, 0.74, 1.0), (-0.24, -0.2, 0.46, 1.14)):
        pen.disc(x + dx * radius, y + dy * radius, share * radius, tint=tint)
    for dx, dy, tint in ((0.5, 0.05, 0.86), (0.62, 0.42, 0.8), (-0.5, 0.2, 1.0),
                         (0.1, 0.1, 0.88), (-0.62, 0.42, 0.94), (-0.1, 0.5, 0.8),
                         (0.22, -0.5, 1.06), (-0.34, -0.44, 1.2), (0.3, -0.16, 0.96)):
        pen.disc(x + dx * radius, y + dy * radius, 0.2 * radius, tint=tint)


def _tree(pen: _Pen) -> None:
    pen.shape([(50, FEET), (52, 70), (60, 70), (64, FEET)], _WOOD)
    _crown(pen, 56, 50, 46)


def _trees(pen: _Pen) -> None:
    for x, y, radius in ((58, 66, 25), (26, 82, 24), (88, 80, 23)):
        pen.shape([(x - 3, FEET), (x - 2, y), (x + 2, y), (x + 4, FEET)], _WOOD)
        _crown(pen, x, y, radius)


def _pine(pen: _Pen) -> None:
    pen.box(51, 104, 61, FEET, _WOOD)
    for top, low, half in ((60, 110, 38), (34, 82, 31), (8, 54, 23)):
        pen.shape([(56 - half, low), (56, top), (56 + half, low)])
        pen.shape([(56 + 0.2 * half, low), (56, top), (56 + half, low)], tint=0.74)


def _sails(pen: _Pen, x: float, size: float) -> None:
    """A sailing boat around column x; size 1 fills the sprite."""
    def at(dx: float, dy: float) -> tuple[float, float]:
        return x + dx * size, FEET - dy * size

    pen.shape([at(-2, 110), at(2, 110), at(2, 18), at(-2, 18)], _WOOD)
    pen.shape([at(5, 106), at(5, 30), at(44, 30)])
    pen.shape([at(-5, 90), at(-5, 30), at(-36, 30)], tint=0.84)
    pen.shape([at(-50, 24), at(50, 24), at(36, 0), at(-38, 0)], _WOOD)
    pen.shape([at(-50, 24), at(50, 24), at(47, 18), at(-48, 18)], (244, 238, 224))


def _boat(pen: _Pen) -> None:
    _sails(pen, 56, 1.0)


def _boats(pen: _Pen) -> None:
    _sails(pen, 84, 0.7)
    _sails(pen, 28, 0.5)


def _bridge(pen: _Pen) -> None:
    pen.shape([(0, 92), (28, 79), (84, 79), (112, 92), (112, FEET), (0, FEET)])
    pen.shape([(0, 88), (28, 76), (84, 76), (112, 88), (112, 94), (84, 82), (28, 82), (0, 94)],
              tint=0.76)
    for x, radius in ((56, 17), (20, 12), (92, 12)):
        pen.disc(x, FEET, radius, _DARK, tall=1.6)
    for x in range(4, 112, 13):
        top = 76 + 14 * max(0, abs(x - 56) - 28) / 28
        pen.box(x - 1.2, top - 11, x + 1.2, top, tint=0.7)
    pen.shape([(0, 79), (28, 67), (84, 67), (112, 79), (112, 82), (84, 70), (28, 70), (0, 82)],
              tint=0.7)


def _balloon(pen: _Pen) -> None:
    for x in (44, 54, 66):
        pen.shape([(x, 88), (x + 1.6, 88), (56 + (x - 56) * 0.6, 108),
                   (55 + (x - 56) * 0.6, 108)], _DARK)
    pen.disc(56, 44, 43)
    pen.shape([(18, 64), (94, 64), (68, 94), (44, 94)])
    for wide, tint in ((0.78, 1.14), (0.42, 0.88), (0.12, 1.14)):
        pen.disc(56, 44, 43 * wide, tint=tint, tall=1 / wide)
        pen.shape([(56 - 38 * wide, 64), (56 + 38 * wide, 64), (56 + 12 * wide, 94),
                   (56 - 12 * wide, 94)], tint=tint)
    pen.box(46, 106, 66, 120, _WOOD)
    pen.box(46, 106, 66, 109, (150, 108, 72))


_DRAWERS: dict[str, Callable[[_Pen], None]] = {
    "house": _house, "houses": _houses, "church": _church, "castle": _castle, "tower": _tower,
    "lighthouse": _lighthouse, "windmill": _windmill, "tent": _tent, "tree": _tree,
    "trees": _trees, "pine": _pine, "boat": _boat, "boats": _boats, "bridge": _bridge,
    "balloon": _balloon}


def _down(image: Image.Image) -> np.ndarray:
    """Means of _SCALE x _SCALE px of a drawing."""
    return np.asarray(image.resize((image.width // _SCALE, image.height // _SCALE),
                                   Image.Resampling.BOX), dtype=np.float32)


def _soft_light(scale: int) -> np.ndarray:
    """A factor on the colours of a sprite [HEIGHT, WIDTH, 1]: light comes from above and left."""
    x = even(1.05, 0.95, WIDTH, scale)
    y = even(1.06, 0.94, HEIGHT, scale)[:, None]
    return (x * y)[..., None]


@cache
def sprite(kind: str, colour: str, night: bool, scale: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Colour [128, 112, 3] (0..255) and coverage [128, 112, 1] (0..1) of a thing.

    Both have `scale` times as many rows and columns.
    """
    pen = _Pen(PAINT[colour], night, scale)
    _DRAWERS[kind](pen)
    # Premultiplied blending avoids a fringe of other colours at the edges.
    small = _down(pen.image.convert("RGBa"))
    alpha = small[..., 3:] / 255
    solid = small[..., :3] / np.maximum(alpha, 1e-3)
    above = -steps(HEIGHT, scale, FEET - 1.5).astype(float)
    alpha = alpha * np.clip(above / _SUNK, 0, 1)[:, None, None]
    lamp = np.abs(solid - np.asarray(LIT, dtype=np.float32)).sum(-1, keepdims=True) < 60
    dim = NIGHT_PAINT if night else 1.0
    return np.clip(np.where(lamp, solid, solid * dim * _soft_light(scale)), 0, 255), alpha


@cache
def template(kind: str) -> np.ndarray:
    """Coverage [128, 112] of the parts of a thing that have its own colour."""
    pen = _Pen(PAINT["red"], False)
    _DRAWERS[kind](pen)
    return _down(pen.mask) / 255


def shift_of(scene: Scene, thing: SceneObject, frame: Frame) -> tuple[int, int]:
    """A thing's offset from its place, in whole cells: (to the right, down)."""
    rng = np.random.default_rng((scene.jitter, PLACES.index(thing.place)))
    inward = {"left": (0, 2), "middle": (-1, 2), "right": (-1, 1)}[thing.place]
    dx, dy = int(rng.integers(*inward)), int(rng.integers(0, 2))
    near = {"left": ("middle",), "middle": ("left", "right"), "right": ("middle",)}[thing.place]
    free = thing.kind == "balloon" or not any(other.place in near for other in scene.things)
    return (dx * frame.roam if free and thing.kind != "bridge" else 0, dy)


def corner(kind: str, place: str, frame: Frame, shift: tuple[int, int] = (0, 0)
           ) -> tuple[int, int]:
    """The upper left corner of a thing's sprite, px."""
    top = frame.balloon * CELL if kind == "balloon" else frame.feet_of(place) - FEET
    return frame.x_of(place) - WIDTH // 2 + CELL * shift[0], top + CELL * shift[1]


def _paint_reflection(canvas: np.ndarray, pair: tuple[np.ndarray, np.ndarray], x: int,
                      y: int, scale: int) -> None:
    """The lower half of a thing upside down in the water, fading away from it."""
    rows = 5 * CELL
    colour, alpha = (part[scale * (FEET - rows) : scale * FEET][::-1] for part in pair)
    fade = 0.42 * even(1, 0.05, rows, scale)[:, None, None] ** 1.3
    paste(canvas, colour * 0.85, alpha * fade, x, y + FEET, scale)


def _paint_footing(canvas: np.ndarray, scene: Scene, thing: SceneObject, x: int, y: int,
                   scale: int) -> None:
    """The base of a thing: a shadow on land, an islet in water."""
    feet = (x + WIDTH // 2, y + FEET)
    if scene.ground not in WATER:
        shadow = np.asarray(GROUND[scene.ground][scene.time][1], dtype=np.float32) * 0.55
        spot(canvas, shadow, ellipse(54, 8, 0.8, scale) * 0.6, feet[0] + 5, feet[1], scale)
    elif thing.kind not in ON_WATER:
        far, near = (np.asarray(c, dtype=np.float32) for c in GROUND["meadow"][scene.time])
        spot(canvas, near * 0.7, ellipse(54, 12, 0.2, scale), feet[0], feet[1] + 3, scale)
        spot(canvas, (far + near) / 2, ellipse(54, 10, 0.2, scale), feet[0], feet[1], scale)


def _paint_thing(canvas: np.ndarray, scene: Scene, thing: SceneObject, frame: Frame) -> None:
    x, y = corner(thing.kind, thing.place, frame, shift_of(scene, thing, frame))
    pair = sprite(thing.kind, thing.colour, scene.time == "night", frame.scale)
    if thing.kind != "balloon":
        if scene.ground in WATER:
            _paint_reflection(canvas, pair, x, y, frame.scale)
        _paint_footing(canvas, scene, thing, x, y, frame.scale)
    paste(canvas, *pair, x, y, frame.scale)


@cache
def _footprint(kind: str) -> np.ndarray:
    """The cells that a thing covers, bool [9, 8], when its sprite begins half-way in a cell."""
    cover = np.zeros((9 * CELL, 8 * CELL), dtype=np.float32)
    x, y = corner(kind, "left", SQUARE)
    top, left = y % CELL, x % CELL
    cover[top : top + HEIGHT, left : left + WIDTH] = sprite(kind, "red", False)[1][..., 0]
    return cover.reshape(9, CELL, 8, CELL).mean((1, 3)) > 0.3


def cells_of(scene: Scene, frame: Frame = SQUARE) -> np.ndarray:
    """The number of the thing that covers each cell, int [rows, columns]; -1 for none."""
    cells = np.full((frame.rows + 9, frame.columns + 8), -1)
    for number, thing in ordered(scene, frame):
        x, y = corner(thing.kind, thing.place, frame, shift_of(scene, thing, frame))
        part = cells[y // CELL : y // CELL + 9, x // CELL : x // CELL + 8]
        part[_footprint(thing.kind)] = number
    return cells[: frame.rows, : frame.columns]


def cover_of(scene: Scene, frame: Frame = SQUARE) -> np.ndarray:
    """How much of each px the things cover, float32 [scale * H, scale * W] (0..1)."""
    cover = np.zeros((frame.scale * frame.height, frame.scale * frame.width, 1), dtype=np.float32)
    for thing in scene.things:
        x, y = corner(thing.kind, thing.place, frame, shift_of(scene, thing, frame))
        alpha = sprite(thing.kind, thing.colour, False, frame.scale)[1].astype(np.float32)
        paste(cover, np.ones_like(alpha), alpha, x, y, frame.scale)
    return cover[..., 0]


def ordered(scene: Scene, frame: Frame) -> list[tuple[int, SceneObject]]:
    """The things with their numbers, the farthest first."""
    return sorted(enumerate(scene.things), key=lambda entry: (
        entry[1].kind != "balloon", frame.feet_of(entry[1].place)))


def paint_objects(canvas: np.ndarray, scene: Scene, frame: Frame) -> None:
    """Paint the scene's things over sky and land, float32 [H, W, 3], in place."""
    for _, thing in ordered(scene, frame):
        _paint_thing(canvas, scene, thing, frame)
