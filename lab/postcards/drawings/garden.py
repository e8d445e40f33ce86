"""Benches, fences, snowmen and waterfalls."""

from __future__ import annotations

import numpy as np

from ..pen import DARK, DARK_WOOD, LEAF, SNOW, STONE, WOOD, Pen, rounded


def _park_bench(pen: Pen) -> None:
    """A bench with a back of boards on iron feet."""
    for x in (-44, 44):
        pen.line([(x, 72), (0.98 * x, 38), (x, 0)], 4.6, DARK, plump=1.5)
        pen.line([(0.98 * x, 36), (0.8 * x, 0)], 4, DARK, plump=1.5)
        pen.line([(x, 52), (0.78 * x, 54), (0.76 * x, 36)], 3.6, DARK, plump=1, smooth=True)
    for y, tint in ((46, 0.92), (56, 0.97), (66, 1.03)):
        pen.box(-56, y, 56, y + 8, tint=tint, plump=2.5)
    for x in (-44, 44):
        for y in (50, 60, 70):
            pen.disc(x, y, 1.2, DARK, plump=0)
    pen.shape([(-54, 40), (54, 40), (60, 30), (-60, 30)], tint=1.04, plump=2)
    pen.line([(-57, 35), (57, 35)], 1.2, tint=0.76, plump=0)
    pen.box(-60, 26, 60, 31, tint=0.8, plump=1.5)


def _log_bench(pen: Pen) -> None:
    """A plain seat of a thick board on two feet."""
    for x in (-38, 38):
        pen.shape([(x - 9, 0), (x - 7, 30), (x + 7, 30), (x + 9, 0)], tint=0.78, plump=3)
    pen.box(-34, 10, 34, 15, tint=0.7, plump=1.5)
    pen.shape([(-56, 42), (56, 42), (62, 34), (-62, 34)], tint=1.06, plump=2)
    pen.box(-62, 27, 62, 35, tint=0.94, plump=2)
    for x, length in ((-40, 20), (-6, 30), (30, 16)):
        pen.line([(x, 38), (x + length, 38)], 0.9, tint=0.84, plump=0)


def _garden_bench(pen: Pen) -> None:
    """A bench with upright slats and arm rests."""
    for x in (-50, 50):
        pen.box(x - 3.4, 0, x + 3.4, 74, tint=0.86, plump=2)
    pen.shape(rounded([(-53, 68), (-28, 76), (0, 80), (28, 76), (53, 68)], closed=False)
              + rounded([(53, 60), (28, 68), (0, 71), (-28, 68), (-53, 60)], closed=False), plump=3)
    for x in range(-40, 44, 10):
        top = 69 - 0.004 * x * x
        pen.box(x - 2.6, 38, x + 2.6, top, tint=0.95, plump=1.5)
    pen.box(-52, 35, 52, 42, tint=0.98, plump=2)
    pen.shape([(-54, 38), (54, 38), (60, 29), (-60, 29)], tint=1.06, plump=2)
    pen.box(-60, 24, 60, 30, tint=0.84, plump=1.5)
    for x in (-54, 54):
        pen.box(x - 4, 0, x + 4, 28, tint=0.94, plump=2)
        pen.box(x - 3, 28, x + 3, 48, tint=0.94, plump=2)
        pen.line([(x * 0.92, 52), (x * 1.06, 50)], 5.4, tint=1.05, plump=2)


def _picket_fence(pen: Pen) -> None:
    for y in (16, 38):
        pen.box(-64, y, 64, y + 6, tint=0.82, plump=1.5)
    for x in range(-57, 62, 14):
        pen.shape([(x - 5, -2), (x - 5, 48), (x, 58), (x + 5, 48), (x + 5, -2)], plump=2.5)


def _rail_fence(pen: Pen) -> None:
    """Posts with three rails."""
    for y, lift in ((12, 1), (28, -1), (44, 1)):
        pen.shape([(-64, y), (-64, y + 8), (64, y + 8 + lift), (64, y + lift)], tint=0.94, plump=3)
    for x in (-50, 0, 50):
        pen.shape([(x - 6, -3), (x - 5, 60), (x, 64), (x + 5, 60), (x + 6, -3)], tint=1.02, plump=4)
        for y in (16, 32, 48):
            pen.disc(x, y, 1.3, DARK, plump=0)


def _gate_fence(pen: Pen) -> None:
    """A fence of boards with a gate in it."""
    for x in (*range(-60, -24, 11), *range(27, 64, 11)):
        pen.shape(rounded([(x - 5, -2), (x - 5, 42), (x, 50), (x + 5, 42), (x + 5, -2)],
                          closed=False), tint=0.94, plump=2)
    for x0, x1 in ((-64, -20), (20, 64)):
        for y in (12, 32):
            pen.box(x0, y, x1, y + 4.4, tint=0.8, plump=1)
    for x in (-21, 21):
        pen.box(x - 5, -3, x + 5, 66, tint=1.02, plump=3)
        pen.disc(x, 69, 6.4, tint=1.05, plump=3)
    for x in range(-11, 14, 8):
        pen.box(x - 2.6, 2, x + 2.6, 50 - 0.05 * x * x, plump=1.5)
    for y in (8, 38):
        pen.box(-16, y, 16, y + 4.4, tint=0.86, plump=1)
    pen.line([(-15, 10), (15, 40)], 3.4, tint=0.86, plump=1)


def _face(pen: Pen, x: float, y: float, size: float = 1.0) -> None:
    for dx in (-5.6, 5.6):
        pen.disc(x + dx * size, y + 4 * size, 2 * size, DARK, plump=0)
    pen.shape([(x - 1, y + 1.6 * size), (x - 1, y - 2.4 * size), (x + 17 * size, y - 3 * size)],
              (240, 124, 36), plump=1)
    for dx, dy in ((-7, -4), (-4, -7), (0, -8), (4, -7.4)):
        pen.disc(x + dx * size, y + dy * size, 1 * size, DARK, plump=0)


def _arm(pen: Pen, x: float, y: float, side: int, reach: float = 30) -> None:
    tip = (x + side * reach, y + 16)
    pen.line([(x, y), (x + 0.5 * side * reach, y + 5), tip], 2.6, DARK_WOOD, plump=0.5)
    for dx, dy in ((3, 8), (9, 3)):
        pen.line([tip, (tip[0] + side * dx, tip[1] + dy)], 1.8, DARK_WOOD, plump=0)


def _ball(pen: Pen, x: float, y: float, radius: float, tall: float = 0.94) -> None:
    pen.disc(x, y, radius, SNOW, 0.985, tall=tall, plump=0.75 * radius)


def _scarf(pen: Pen, y: float, half: float, side: int = 1) -> None:
    pen.blob([(side * 4, y), (side * 15, y - 4), (side * 18, y - 27), (side * 7, y - 28)],
             tint=0.84, plump=3)
    pen.line([(-half, y + 2), (0, y - 3), (half, y + 2)], 9.5, plump=4, smooth=True)
    pen.disc(side * 9, y - 1, 5.6, tint=1.06)


def _snowman(pen: Pen) -> None:
    """A snowman in a woollen hat."""
    _arm(pen, -24, 56, -1)
    _arm(pen, 24, 56, 1)
    _ball(pen, 0, 22, 32, 0.84)
    _ball(pen, 0, 58, 25)
    for y in (50, 60):
        pen.disc(0, y, 2.2, DARK, plump=0)
    _ball(pen, 0, 87, 19)
    _face(pen, 0, 86)
    pen.shape(rounded([(-19, 92), (-15, 106), (0, 113), (15, 106), (19, 92)], closed=False),
              plump=7)
    pen.line([(-19, 94), (0, 98), (19, 94)], 8, tint=1.14, plump=3, smooth=True)
    pen.disc(0, 114, 5.6, tint=1.14)
    _scarf(pen, 72, 16)


def _top_hat_snowman(pen: Pen) -> None:
    """A snowman with a hat and a broom."""
    pen.line([(46, -2), (40, 86)], 2.6, WOOD, plump=0.5)
    pen.shape([(37, 84), (43, 84), (52, 112), (28, 112)], (206, 164, 92), plump=4)
    _arm(pen, 22, 48, 1, 22)
    _arm(pen, -22, 52, -1)
    _ball(pen, 0, 20, 31, 0.82)
    _ball(pen, 0, 52, 24)
    _ball(pen, 0, 80, 18)
    for y in (44, 54):
        pen.disc(0, y, 2.2, DARK, plump=0)
    _face(pen, 0, 79)
    pen.box(-13, 92, 13, 114, DARK, 1.15, 4)
    pen.box(-13, 93, 13, 99, plump=2)
    pen.box(-20, 89, 20, 93.4, DARK, 1.15, 1.5)
    _scarf(pen, 66, 16, -1)


def _small_snowman(pen: Pen) -> None:
    """A round snowman of two balls with ear muffs."""
    _arm(pen, -30, 38, -1, 24)
    _arm(pen, 30, 38, 1, 24)
    _ball(pen, 0, 28, 39, 0.88)
    for y in (24, 38):
        pen.disc(0, y, 2.6, DARK, plump=0)
    _ball(pen, 0, 74, 26)
    _face(pen, 0, 74, 1.3)
    pen.line([(-27, 78), (-20, 96), (0, 104), (20, 96), (27, 78)], 3.6, DARK, 1.2, 1, smooth=True)
    for side in (-1, 1):
        pen.disc(26 * side, 76, 9.5, tint=1.02)
    _scarf(pen, 54, 24)


def _rock(pen: Pen, points: list[tuple[float, float]], tint: float, cracks: int = 0) -> None:
    pen.shape(points, STONE, tint, 6)
    rng = np.random.default_rng(len(points) + cracks)
    (x0, x1), (y0, y1) = ((min(p[n] for p in points), max(p[n] for p in points)) for n in (0, 1))
    for _ in range(cracks):
        x, y = rng.uniform(0.72 * x0 + 0.28 * x1, 0.28 * x0 + 0.72 * x1), rng.uniform(
            y0 + 12, 0.25 * y0 + 0.75 * y1)
        pen.line([(x, y + 9), (x + rng.uniform(-3, 3), y), (x + rng.uniform(-4, 4), y - 8)], 1.3,
                 STONE, tint * 0.78, 0)


def _fall(pen: Pen, top: tuple[float, float], foot: tuple[float, float], high: float,
          low: float = 0) -> None:
    """Falling water between two columns above and two below, with strands of light and shade."""
    (a, b), (c, d) = top, foot
    pen.shape([*rounded([(c, low), (a - 0.4 * (a - c), low + 0.5 * (high - low)), (a, high)],
                        closed=False),
               *rounded([(b, high), (b + 0.4 * (d - b), low + 0.5 * (high - low)), (d, low)],
                        closed=False)], plump=3)
    for n, t in enumerate(np.linspace(0.12, 0.88, 7)):
        x, y = a + (b - a) * t, c + (d - c) * t
        tint = (0.9, 1.3, 0.98, 1.36, 0.92, 1.28, 0.94)[n]
        pen.line([(x, high - 2), (x + 0.3 * (y - x), low + 0.5 * (high - low)), (y, low + 4)],
                 2.2, tint=tint, plump=0, smooth=True)


def _pool(pen: Pen, half: float) -> None:
    pen.disc(0, 0, half, (92, 156, 196), tall=0.13, plump=2)
    for x, y, wide in ((-0.4, 2, 14), (0.3, -2, 18), (0.05, -4, 12)):
        pen.line([(half * x - wide, y), (half * x + wide, y)], 1, (214, 236, 246), plump=0)


def _spray(pen: Pen, c: float, d: float, y: float = 2) -> None:
    for x in np.linspace(c - 3, d + 3, 6):
        pen.disc(float(x), y, 5.6, (240, 246, 250), tall=0.7, plump=3)


def _waterfall(pen: Pen) -> None:
    """A fall between two cliffs."""
    _rock(pen, [(-30, 0), (-30, 108), (30, 110), (30, 0)], 0.66)
    _fall(pen, (-13, 13), (-20, 20), 108)
    _rock(pen, [(-62, -4), (-60, 48), (-52, 78), (-44, 104), (-28, 114), (-13, 110), (-18, 84),
                (-14, 62), (-22, 40), (-18, 18), (-26, -4)], 1.0, 6)
    _rock(pen, [(62, -4), (61, 40), (54, 66), (48, 98), (30, 112), (13, 110), (17, 88), (14, 66),
                (21, 44), (18, 20), (27, -4)], 0.92, 6)
    for x, y, radius in ((-42, 106, 9), (-26, 115, 8), (30, 113, 9), (44, 102, 7), (-56, 58, 6),
                         (55, 62, 6)):
        pen.disc(x, y, radius, LEAF, 0.9, tall=0.6)
    _pool(pen, 60)
    _spray(pen, -18, 18)


def _cascade(pen: Pen) -> None:
    """A fall in three steps."""
    steps = ((-26, 42, 78, 112, -8, 12), (-44, 52, 40, 80, -16, 16), (-60, 60, -4, 44, -26, 24))
    for x0, x1, low, high, _, _ in steps:
        _rock(pen, [(x0 - 4, low), (x0, high - 6), (x0 + 10, high), (x1 - 10, high + 1),
                    (x1, high - 7), (x1 + 4, low)], 0.94, 4)
    for _, _, low, high, a, b in steps:
        _fall(pen, (a, b), (a - 5, b + 5), high + 1, max(0, low - 2))
        if low > 0:
            _spray(pen, a - 4, b + 4, low)
    for x, y, radius in ((-22, 112, 8), (36, 112, 7), (-40, 80, 7), (46, 80, 8), (-54, 44, 8),
                         (54, 43, 7)):
        pen.disc(x, y, radius, LEAF, 0.9, tall=0.6)
    _pool(pen, 60)
    _spray(pen, -26, 24)


def _narrow_fall(pen: Pen) -> None:
    """A high, narrow fall over a leaning cliff with bushes."""
    _rock(pen, [(-58, -4), (-52, 44), (-46, 86), (-30, 114), (6, 116), (34, 104), (46, 70),
                (56, 34), (62, -4)], 0.96, 12)
    _rock(pen, [(-16, 0), (-12, 112), (6, 112), (14, 0)], 0.72)
    _fall(pen, (-9, 5), (-15, 14), 114)
    _rock(pen, [(14, -4), (12, 22), (24, 34), (40, 26), (46, -4)], 1.05, 1)
    _rock(pen, [(-46, -4), (-42, 18), (-28, 24), (-16, 12), (-14, -4)], 1.02, 1)
    for x, y, radius in ((-32, 112, 10), (16, 114, 9), (34, 102, 8), (-50, 66, 7), (50, 52, 7)):
        pen.disc(x, y, radius, LEAF, 0.9, tall=0.65)
    _pool(pen, 58)
    _spray(pen, -14, 13)


DRAWINGS = {
    "bench": (_park_bench, _log_bench, _garden_bench),
    "fence": (_picket_fence, _rail_fence, _gate_fence),
    "snowman": (_snowman, _top_hat_snowman, _small_snowman),
    "waterfall": (_waterfall, _cascade, _narrow_fall),
}
