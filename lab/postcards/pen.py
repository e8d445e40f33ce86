"""The pen that draws things: shapes in units, shaded as if each were a little round.

A drawing has its foot at (0, 0), x to the right, y upwards, within WIDE x HIGH units. It is drawn
larger than shown and then averaged, so that it may have any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDE, HIGH = 128, 128  # units of a drawing
BELOW = 8  # units of it below its foot
FINER = 3  # supersampling
WOOD, DARK_WOOD, PLANK = (122, 80, 54), (82, 54, 44), (176, 128, 84)
SLATE, TILES, THATCH = (86, 80, 104), (156, 78, 62), (184, 146, 88)
STONE, PALE_STONE, DARK = (150, 144, 146), (206, 200, 192), (54, 46, 62)
CREAM, SNOW, STEEL, TYRE = (246, 238, 220), (246, 249, 254), (176, 182, 194), (46, 44, 54)
LEAF, DEEP_LEAF, PANE = (84, 152, 62), (42, 104, 56), (84, 112, 156)
LIT = (255, 222, 120)  # lamps, and windows at night

Colour = tuple[int, int, int]
Points = Sequence[tuple[float, float]]


def tinted(colour: Colour, factor: float) -> Colour:
    """A lighter (factor > 1) or darker colour; shadows turn towards blue."""
    toward = (255, 250, 235) if factor > 1 else (34, 22, 60)
    share = min(1.0, abs(factor - 1))
    red, green, blue = (round(c + (t - c) * share) for c, t in zip(colour, toward, strict=True))
    return red, green, blue


def rounded(points: Points, closed: bool = True, steps: int = 8) -> list[tuple[float, float]]:
    """A smooth curve through the points (Catmull-Rom)."""
    knots = np.asarray(points, dtype=np.float64)
    around = (np.concatenate((knots[-1:], knots, knots[:2])) if closed
              else np.concatenate((knots[:1], knots, knots[-1:])))
    t = np.linspace(0, 1, steps, endpoint=False)[:, None]
    parts = [0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2
                    + (3 * b - a - 3 * c + d) * t**3)
             for a, b, c, d in zip(around, around[1:], around[2:], around[3:], strict=False)]
    curve = np.concatenate(parts if closed else [*parts, knots[-1:]])
    return [(float(x), float(y)) for x, y in curve]


@dataclass(frozen=True)
class Look:
    """How a drawing is to look, apart from what it shows.

    px: of a unit. flip: mirrored. lit: the side that the light comes from, -1 left, 1 right.
    """

    colour: Colour
    px: float = 1.0
    flip: bool = False
    lit: int = -1
    night: bool = False


class Pen:
    """Draws shapes one over the other; the attributes are the layers of what is drawn.

    albedo [h, w, 3]: colours 0..255. cover [h, w]: 0..1. own [h, w]: the cover of parts in the
    thing's own colour. light [h, w]: -1 (in the shade) to 1. glow [h, w]: the cover of lamps.
    """

    def __init__(self, look: Look, finer: int = FINER, flat: bool = False) -> None:
        """flat: without light and shade, which is quicker."""
        self.look, self.k, self.flat = look, look.px * finer, flat
        self.size = round(WIDE * look.px) * finer, round(HIGH * look.px) * finer
        shape = self.size[1], self.size[0]
        self.albedo = np.zeros((*shape, 3), dtype=np.float32)
        self.cover, self.own, self.light, self.glow = (
            np.zeros(shape, dtype=np.float32) for _ in range(4))
        self.left, self.right = (1.06, 0.76) if (look.lit < 0) != look.flip else (0.8, 1.06)

    def _at(self, points: Points) -> list[tuple[float, float]]:
        side = -1 if self.look.flip else 1
        return [((WIDE / 2 + side * x) * self.k, (HIGH - BELOW - y) * self.k) for x, y in points]

    def shape(self, points: Points, trim: Colour | None = None, tint: float = 1.0,
              plump: float = 2.0, glows: bool = False) -> None:
        """Fill a polygon in a tint of the thing's own colour, or of a trim colour.

        plump: how far in, in units, its edges look round.
        """
        self._fill(self._at(points), 0, trim, tint, plump, glows)

    def blob(self, points: Points, trim: Colour | None = None, tint: float = 1.0,
             plump: float = 6.0) -> None:
        """Fill a smooth outline through the points."""
        self.shape(rounded(points), trim, tint, plump)

    def line(self, points: Points, width: float, trim: Colour | None = None, tint: float = 1.0,
             plump: float = 1.0, smooth: bool = False) -> None:
        """Draw a line `width` units thick with round ends, perhaps as a smooth curve."""
        self._fill(self._at(rounded(points, closed=False) if smooth else points),
                   width * self.k, trim, tint, plump)

    def box(self, x0: float, y0: float, x1: float, y1: float, trim: Colour | None = None,
            tint: float = 1.0, plump: float = 2.0, glows: bool = False) -> None:
        """Fill a rectangle."""
        self.shape([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], trim, tint, plump, glows)

    def disc(self, x: float, y: float, radius: float, trim: Colour | None = None,
             tint: float = 1.0, tall: float = 1.0, plump: float | None = None) -> None:
        """Fill a circle, or an ellipse `tall` times as high as wide."""
        turn = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        around = zip(x + radius * np.cos(turn), y + tall * radius * np.sin(turn), strict=True)
        self.shape([(float(a), float(b)) for a, b in around], trim, tint,
                   0.5 * radius if plump is None else plump)

    def ring(self, x: float, y: float, radius: float, width: float, trim: Colour | None = None,
             tint: float = 1.0) -> None:
        """Draw a circle `width` units thick."""
        turn = np.linspace(0, 2 * np.pi, 40)
        self.line([(float(x + radius * np.cos(a)), float(y + radius * np.sin(a))) for a in turn],
                  width, trim, tint)

    def window(self, x: float, y: float, wide: float = 11, high: float = 15,
               frame: Colour = CREAM) -> None:
        """A pane with a frame and a bar; it is lit by night."""
        self.box(x - 2, y - 2, x + wide + 2, y + high + 2, frame, plump=1)
        self.pane(x, y, wide, high)
        self.box(x + wide / 2 - 0.7, y, x + wide / 2 + 0.7, y + high, frame, 0.9, 0)
        self.box(x, y + high / 2 - 0.7, x + wide, y + high / 2 + 0.7, frame, 0.9, 0)

    def pane(self, x: float, y: float, wide: float, high: float) -> None:
        """Glass that mirrors the sky by day and is lit by night."""
        night = self.look.night
        self.box(x, y, x + wide, y + high, LIT if night else PANE, plump=0, glows=night)
        if not night:
            self.shape([(x, y + high), (x + 0.7 * wide, y + high), (x, y + 0.3 * high)],
                       PANE, 1.3, 0)

    def _fill(self, points: Points, width: float, trim: Colour | None, tint: float,
              plump: float, glows: bool = False) -> None:
        reach = 2 if self.flat else round(plump * self.k) + 2
        x, y = zip(*points, strict=True)
        left, top = (int(min(v) - width / 2) - reach for v in (x, y))
        right, bottom = (int(max(v) + width / 2) + reach + 1 for v in (x, y))
        image = Image.new("L", (right - left, bottom - top))
        shifted, draw = [(a - left, b - top) for a, b in points], ImageDraw.Draw(image)
        if width:
            draw.line(shifted, 255, max(1, round(width)), "curve")
            for a, b in (shifted[0], shifted[-1]):
                r = width / 2
                draw.ellipse([a - r, b - r, a + r, b + r], 255)
        else:
            draw.polygon(shifted, 255)
        fill = tinted(trim or self.look.colour, tint) if tint != 1 else trim or self.look.colour
        inside = tuple(slice(max(0, -first), max(0, most - first)) for first, most in (
            (top, self.size[1]), (left, self.size[0])))
        part = slice(max(0, top), max(0, bottom)), slice(max(0, left), max(0, right))
        cover = (np.asarray(image, dtype=np.float32) / 255)[inside]
        light = self._roundness(image, plump)[inside]
        for layer, value in ((self.own, float(trim is None)), (self.glow, float(glows)),
                             (self.light, light), (self.cover, 1.0)):
            layer[part] += (value - layer[part]) * cover
        self.albedo[part] += (np.asarray(fill, np.float32) - self.albedo[part]) * cover[..., None]

    def _roundness(self, image: Image.Image, plump: float) -> np.ndarray:
        """Light on the side towards it, shade on the other, from a shape's own outline."""
        far = round(0.55 * plump * self.k)
        if far < 1 or self.flat:
            return np.zeros(image.size[::-1], dtype=np.float32)
        soft = np.asarray(image.filter(ImageFilter.GaussianBlur(0.55 * plump * self.k)),
                          dtype=np.float32) / 255
        high, wide = soft.shape
        padded = np.pad(soft, far)

        def moved(dx: int, dy: int) -> np.ndarray:
            return padded[far + dy : far + dy + high, far + dx : far + dx + wide]

        dx, dy = self.look.lit * far, -far
        return np.clip(1.1 * (moved(-dx, -dy) - moved(dx, dy)), -1, 1)
