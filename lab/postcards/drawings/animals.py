"""Dogs, cats, horses and sheep."""

from __future__ import annotations

import numpy as np

from ..pen import CREAM, DARK, DARK_WOOD, Pen

_NOSE, _PINK = (44, 36, 42), (232, 150, 150)


def _eye(pen: Pen, x: float, y: float, radius: float = 2.6) -> None:
    pen.disc(x, y, radius, DARK, plump=0)
    pen.disc(x + 0.35 * radius, y + 0.4 * radius, 0.36 * radius, (250, 250, 250), plump=0)


def _leg(pen: Pen, points: tuple[tuple[float, float], ...], width: float, tint: float = 1.0,
         paw: float = 1.25) -> None:
    """A leg whose last point is its foot."""
    pen.line(points, width, tint=tint, plump=0.45 * width, smooth=True)
    x, y = points[-1]
    pen.disc(x + 0.35 * width, y + 0.25 * width, 0.55 * width * paw, tint=tint * 1.03, tall=0.7,
             plump=0.3 * width)


def _collar(pen: Pen, a: tuple[float, float], b: tuple[float, float]) -> None:
    red = min(pen.look.colour[1:]) < 60 and pen.look.colour[0] > 150
    pen.line([a, b], 4.4, (52, 104, 190) if red else (206, 44, 48), plump=1)
    pen.disc((a[0] + b[0]) / 2 + 1, (a[1] + b[1]) / 2 - 3.4, 2.4, (250, 206, 70))


def _dog_head(pen: Pen, x: float, y: float, size: float = 1.0) -> None:
    """A dog's head from the side, its muzzle to the right; (x, y): the middle of the skull."""
    def at(*points: tuple[float, float]) -> list[tuple[float, float]]:
        return [(x + a * size, y + b * size) for a, b in points]

    pen.disc(x, y, 17 * size, plump=9 * size)
    pen.blob(at((4, 6), (16, 3), (29, 0), (31, -7), (24, -13), (8, -14)), tint=1.1, plump=6 * size)
    pen.line(at((12, -9), (20, -10), (27, -8)), 1.3 * size, tint=0.6, plump=0, smooth=True)
    pen.disc(x + 30 * size, y - 1 * size, 3.8 * size, _NOSE, tall=0.85)
    _eye(pen, x + 9 * size, y + 5 * size, 2.7 * size)
    pen.blob(at((-8, 14), (-18, 8), (-21, -10), (-12, -18), (-5, -6), (0, 8)), tint=0.72,
             plump=4 * size)


def _standing_dog(pen: Pen) -> None:
    _leg(pen, ((-32, 34), (-38, 18), (-32, 2)), 10, 0.76)
    _leg(pen, ((18, 32), (20, 14), (19, 2)), 9.5, 0.76)
    pen.line([(-42, 50), (-56, 62), (-58, 78)], 7, tint=0.95, plump=3, smooth=True)
    pen.blob([(-46, 40), (-40, 58), (-10, 58), (18, 62), (32, 52), (26, 32), (-4, 26), (-30, 28)],
             plump=13)
    _leg(pen, ((-36, 40), (-42, 20), (-38, 2)), 12)
    _leg(pen, ((22, 38), (25, 18), (24, 2)), 11)
    pen.blob([(10, 52), (22, 74), (38, 72), (34, 48)], plump=8)
    pen.blob([(22, 54), (33, 58), (31, 40), (22, 34)], tint=1.14, plump=5)
    _dog_head(pen, 31, 82, 0.98)
    _collar(pen, (17, 66), (37, 62))


def _sitting_dog(pen: Pen) -> None:
    pen.line([(-26, 8), (-46, 8), (-56, 22)], 7, tint=0.92, plump=3, smooth=True)
    pen.blob([(-30, 4), (-34, 24), (-20, 50), (0, 70), (22, 66), (26, 40), (20, 10), (0, 2)],
             plump=14)
    pen.blob([(-30, 2), (-33, 18), (-18, 30), (0, 22), (6, 4)], tint=0.96, plump=9)
    pen.blob([(6, 2), (-4, 8), (12, 9), (16, 3)], tint=1.08, plump=3)
    _leg(pen, ((10, 50), (14, 24), (12, 2)), 9.5, 0.8)
    pen.blob([(12, 62), (26, 56), (27, 32), (16, 28)], tint=1.16, plump=7)
    _leg(pen, ((20, 48), (23, 24), (22, 2)), 10)
    _dog_head(pen, 14, 84, 1.12)
    _collar(pen, (0, 66), (26, 63))


def _running_dog(pen: Pen) -> None:
    """A slender dog with pointed ears that runs."""
    _leg(pen, ((-24, 40), (-40, 24), (-56, 20)), 8, 0.76, 1.1)
    _leg(pen, ((22, 40), (40, 28), (52, 12)), 8, 0.76, 1.1)
    pen.line([(-36, 52), (-52, 62), (-62, 60)], 6, tint=0.95, plump=3, smooth=True)
    pen.blob([(-42, 46), (-32, 60), (-4, 56), (20, 62), (34, 54), (28, 38), (4, 38), (-22, 36)],
             plump=11)
    _leg(pen, ((-32, 46), (-40, 24), (-30, 6)), 10, 1.0, 1.1)
    _leg(pen, ((24, 46), (34, 24), (26, 8)), 9, 1.0, 1.1)
    pen.blob([(16, 56), (28, 76), (42, 70), (36, 48)], plump=7)
    pen.shape([(26, 84), (26, 102), (36, 92)], tint=0.8)
    pen.disc(36, 80, 13.5, plump=7)
    pen.blob([(38, 84), (50, 80), (60, 76), (59, 70), (46, 68), (36, 70)], tint=1.1, plump=4)
    pen.shape([(33, 90), (38, 106), (45, 90)], tint=0.92)
    pen.disc(60, 76, 3, _NOSE)
    _eye(pen, 43, 83, 2.3)
    pen.line([(46, 70), (54, 71)], 1.2, tint=0.6, plump=0)
    _collar(pen, (24, 68), (38, 63))


def _cat_head(pen: Pen, x: float, y: float, size: float = 1.0) -> None:
    """A cat's head from the front."""
    def at(*points: tuple[float, float]) -> list[tuple[float, float]]:
        return [(x + a * size, y + b * size) for a, b in points]

    for side in (-1, 1):
        pen.shape(at((4 * side, 13), (16 * side, 28), (20 * side, 4)), plump=3)
        pen.shape(at((8 * side, 13), (15 * side, 22), (17 * side, 8)), _PINK, 0.92, 1)
    pen.disc(x, y, 20 * size, tall=0.86, plump=10 * size)
    for side in (-1, 0, 1):
        pen.line(at((4.6 * side, 16 - abs(side)), (3.4 * side, 9)), 2.2 * size, tint=0.66, plump=0)
    pen.blob(at((-8, -3), (0, -1), (8, -3), (6, -11), (-6, -11)), tint=1.24, plump=3 * size)
    green = (142, 190, 74)
    for side in (-1, 1):
        pen.disc(x + 8.5 * side * size, y + 2.5 * size, 4.3 * size, green, 1.06, plump=0)
        pen.disc(x + 8.5 * side * size, y + 2.5 * size, 1.7 * size, _NOSE, tall=2.2, plump=0)
        for rise in (-1, 2):
            pen.line(at((7 * side, -6 + rise), (25 * side, -8 + 3 * rise)), 0.7 * size, CREAM,
                     plump=0)
    pen.shape(at((-3, -2), (3, -2), (0, -5.5)), (214, 104, 108), plump=0)
    for side in (-1, 1):
        pen.line(at((0, -5), (1.4 * side, -8.4), (5.4 * side, -7.4)), 1.1 * size, tint=0.5, plump=0,
                 smooth=True)


def _stripes(pen: Pen, lines: tuple[tuple[tuple[float, float], ...], ...]) -> None:
    for line in lines:
        pen.line(line, 3, tint=0.74, plump=0, smooth=True)


def _sitting_cat(pen: Pen) -> None:
    pen.line([(20, 8), (42, 8), (50, 26), (42, 42)], 8, tint=0.92, plump=3.5, smooth=True)
    pen.blob([(-27, 4), (-30, 22), (-20, 46), (-8, 62), (10, 62), (20, 46), (30, 22), (26, 4),
              (0, 1)], plump=13)
    _stripes(pen, (((27, 30), (20, 32), (15, 30)), ((29, 20), (22, 21), (17, 19)),
                   ((-27, 30), (-20, 32), (-16, 30)), ((-29, 20), (-22, 21), (-18, 19))))
    pen.blob([(-9, 56), (9, 56), (8, 34), (0, 28), (-8, 34)], tint=1.2, plump=5)
    for side in (-1, 1):
        pen.line([(7 * side, 40), (7.5 * side, 5)], 10, plump=4)
        pen.disc(8 * side, 3.5, 7, tint=1.12, tall=0.66)
    _cat_head(pen, 0, 76, 1.12)


def _walking_cat(pen: Pen) -> None:
    """A cat that walks with its tail up and looks at us."""
    _leg(pen, ((-26, 32), (-22, 16), (-26, 2)), 8, 0.76)
    _leg(pen, ((22, 32), (18, 16), (21, 2)), 8, 0.76)
    pen.line([(-36, 46), (-52, 58), (-50, 80), (-58, 94)], 7.5, tint=0.96, plump=3.5, smooth=True)
    pen.blob([(-44, 38), (-36, 54), (-8, 52), (20, 56), (32, 48), (28, 32), (0, 26), (-30, 28)],
             plump=11)
    _stripes(pen, (((-24, 53), (-23, 46), (-26, 40)), ((-10, 51), (-9, 44), (-12, 38)),
                   ((4, 52), (5, 45), (2, 39))))
    _leg(pen, ((-34, 36), (-38, 18), (-34, 2)), 9.5)
    _leg(pen, ((24, 36), (29, 18), (31, 2)), 9)
    _cat_head(pen, 32, 66, 0.94)


def _lying_cat(pen: Pen) -> None:
    """A cat that lies curled on its paws."""
    pen.line([(-40, 10), (-58, 12), (-50, 4), (-16, 2)], 8.5, tint=0.9, plump=4, smooth=True)
    pen.blob([(-48, 4), (-50, 22), (-34, 42), (-4, 46), (26, 38), (34, 18), (28, 3), (-10, 0)],
             plump=15)
    pen.blob([(-48, 3), (-46, 20), (-30, 30), (-14, 20), (-12, 4)], tint=0.95, plump=9)
    _stripes(pen, (((-32, 42), (-31, 34), (-34, 30)), ((-18, 45), (-17, 37), (-20, 33)),
                   ((-4, 45), (-3, 37), (-6, 33))))
    for x in (22, 40):
        pen.line([(x - 12, 6), (x, 4)], 9, tint=1.08, plump=4)
    _cat_head(pen, 30, 46, 1.08)


def _horse_leg(pen: Pen, points: tuple[tuple[float, float], ...], tint: float = 1.0) -> None:
    (x0, y0), (x1, y1), (x2, y2) = points
    pen.line([(x0, y0), (x1, y1)], 9, tint=tint, plump=4)
    pen.line([(x1, y1), (x2, y2 + 4)], 6, tint=tint, plump=2.5)
    pen.shape([(x2 - 3.6, y2 + 5), (x2 + 3.4, y2 + 5), (x2 + 5.6, y2), (x2 - 4.6, y2)], DARK,
              plump=1)


def _mane_colour(pen: Pen) -> tuple[int, int, int]:
    return (206, 196, 180) if max(pen.look.colour) < 90 else DARK_WOOD


def _horse_head(pen: Pen, x: float, y: float, down: bool = False) -> None:
    """A horse's head at the end of its neck, its muzzle to the right."""
    def at(*points: tuple[float, float]) -> list[tuple[float, float]]:
        return [(x + a, y + b * (1 if not down else 1)) for a, b in points]

    pen.shape(at((-7, 8), (-6, 22), (1, 10)), tint=0.9)
    pen.blob(at((-10, 8), (2, 12), (14, 4), (26, -10), (27, -19), (18, -22), (6, -12), (-8, -8)),
             plump=6)
    pen.blob(at((17, -8), (26, -10), (28, -18), (20, -22), (15, -16)), tint=0.8, plump=3)
    pen.disc(x + 24, y - 14, 1.4, DARK, plump=0)
    pen.line(at((19, -20), (25, -19)), 1, tint=0.5, plump=0)
    _eye(pen, x + 6, y + 3, 2.4)


def _standing_horse(pen: Pen) -> None:
    mane = _mane_colour(pen)
    _horse_leg(pen, ((-28, 42), (-34, 24), (-30, 0)), 0.76)
    _horse_leg(pen, ((16, 42), (18, 22), (17, 0)), 0.76)
    pen.blob([(-44, 64), (-54, 56), (-58, 34), (-52, 14), (-48, 34), (-42, 52)], mane, plump=4)
    pen.blob([(-46, 54), (-40, 68), (-14, 64), (12, 68), (30, 58), (24, 42), (-4, 38), (-34, 38)],
             plump=13)
    _horse_leg(pen, ((-36, 46), (-42, 24), (-40, 0)))
    _horse_leg(pen, ((20, 46), (25, 24), (24, 0)))
    pen.blob([(4, 62), (14, 84), (26, 104), (38, 100), (36, 78), (30, 54)], plump=8)
    pen.blob([(2, 66), (10, 86), (18, 106), (28, 110), (26, 98), (18, 82), (12, 66)], mane, plump=4)
    _horse_head(pen, 33, 100)
    pen.blob([(24, 110), (32, 112), (38, 102), (30, 104)], mane, plump=2)


def _galloping_horse(pen: Pen) -> None:
    mane = _mane_colour(pen)
    _horse_leg(pen, ((-30, 46), (-46, 34), (-58, 16)), 0.76)
    _horse_leg(pen, ((20, 46), (42, 38), (44, 16)), 0.76)
    pen.blob([(-42, 66), (-54, 70), (-64, 60), (-62, 46), (-54, 56), (-44, 56)], mane, plump=4)
    pen.blob([(-46, 56), (-40, 70), (-14, 64), (12, 68), (30, 60), (24, 44), (-4, 42), (-34, 42)],
             plump=13)
    _horse_leg(pen, ((-36, 50), (-38, 28), (-52, 6)))
    _horse_leg(pen, ((22, 50), (44, 48), (52, 28)))
    pen.blob([(4, 64), (16, 84), (30, 100), (42, 94), (36, 76), (30, 56)], plump=8)
    pen.blob([(0, 70), (0, 82), (8, 94), (14, 104), (26, 108), (28, 98), (18, 84), (10, 68)], mane,
             plump=4)
    _horse_head(pen, 37, 95)
    pen.blob([(26, 106), (34, 108), (42, 98), (33, 100)], mane, plump=2)


def _grazing_horse(pen: Pen) -> None:
    mane = _mane_colour(pen)
    _horse_leg(pen, ((-34, 46), (-38, 24), (-34, 0)), 0.76)
    _horse_leg(pen, ((8, 44), (6, 22), (8, 0)), 0.76)
    pen.blob([(-50, 68), (-59, 56), (-60, 32), (-54, 14), (-52, 38), (-46, 56)], mane, plump=4)
    pen.blob([(-52, 58), (-44, 73), (-18, 68), (8, 72), (26, 62), (20, 44), (-8, 40), (-40, 42)],
             plump=14)
    _horse_leg(pen, ((-42, 50), (-48, 26), (-46, 0)))
    _horse_leg(pen, ((14, 48), (18, 24), (16, 0)))
    pen.blob([(6, 68), (24, 70), (44, 52), (50, 30), (40, 26), (28, 40), (14, 46)], plump=8)
    pen.blob([(8, 72), (26, 74), (46, 56), (53, 36), (48, 38), (38, 54), (22, 64)], mane, plump=3)
    pen.shape([(47, 36), (56, 44), (54, 32)], tint=0.9)
    pen.blob([(38, 34), (52, 36), (56, 22), (54, 6), (46, 2), (40, 8), (38, 20)], plump=6)
    pen.blob([(41, 9), (55, 10), (54, 3), (46, 0), (41, 4)], tint=0.8, plump=3)
    _eye(pen, 48, 26, 2.3)
    pen.disc(50, 6, 1.3, DARK, plump=0)


def _wool(pen: Pen, x: float, y: float, wide: float, high: float, seed: int) -> None:
    """A fleece: curls around a body."""
    pen.disc(x, y, wide, tint=0.95, tall=high / wide, plump=0.6 * high)
    rng = np.random.default_rng(seed)
    lit = pen.look.lit * (-1 if pen.look.flip else 1)
    for share, count in ((0.9, 15), (0.56, 10), (0.2, 4)):
        for a in np.linspace(0, 2 * np.pi, count, endpoint=False) + rng.uniform(0, 1):
            dx, dy = share * wide * np.cos(a), share * high * np.sin(a)
            bright = 1.0 + 0.07 * (dy / high + 0.6 * lit * dx / wide)
            pen.disc(x + dx, y + dy, 0.3 * high, tint=bright, plump=0.11 * high)


def _sheep_leg(pen: Pen, x: float, high: float, tint: float = 1.0) -> None:
    pen.line([(x, high), (x, 2)], 6, DARK, 1.25 * tint, plump=2.5)
    pen.box(x - 3.6, 0, x + 4.2, 4, DARK, plump=1)


def _sheep_head(pen: Pen, x: float, y: float) -> None:
    face = (74, 64, 68) if min(pen.look.colour) > 90 else (214, 190, 170)
    for side in (-1, 1):
        pen.blob([(x + 6 * side, y + 7), (x + 19 * side, y + 5), (x + 17 * side, y - 1),
                  (x + 7 * side, y + 1)], face, 0.9, 3)
    pen.blob([(x - 9, y + 8), (x, y + 12), (x + 9, y + 8), (x + 7, y - 9), (x, y - 14),
              (x - 7, y - 9)], face, plump=6)
    for side in (-1, 1):
        pen.disc(x + 4.4 * side, y + 1, 2.5, (250, 246, 238), plump=0)
        pen.disc(x + 4.7 * side, y + 0.6, 1.4, DARK, plump=0)
        pen.disc(x + 2 * side, y - 9, 0.9, DARK, plump=0)
    for dx, dy in ((-7, 12), (0, 15), (7, 12)):
        pen.disc(x + dx, y + dy, 5.6, tint=1.03, plump=2.5)


def _sheep(pen: Pen) -> None:
    for x, tint in ((-22, 0.8), (16, 0.8), (-13, 1.0), (24, 1.0)):
        _sheep_leg(pen, x, 26, tint)
    _wool(pen, -4, 44, 42, 27, 1)
    pen.disc(-46, 46, 6, tint=0.98)
    _sheep_head(pen, 42, 56)


def _grazing_sheep(pen: Pen) -> None:
    for x, tint in ((-26, 0.8), (12, 0.8), (-17, 1.0), (20, 1.0)):
        _sheep_leg(pen, x, 26, tint)
    _wool(pen, -6, 46, 44, 26, 2)
    pen.disc(-50, 48, 6, tint=0.98)
    _sheep_head(pen, 44, 26)


def _ram(pen: Pen) -> None:
    """A sheep with horns that looks at us."""
    for x, tint in ((-22, 0.8), (14, 0.8), (-14, 1.0), (22, 1.0)):
        _sheep_leg(pen, x, 28, tint)
    _wool(pen, 0, 50, 38, 31, 3)
    _sheep_head(pen, 20, 68)
    for side in (-1, 1):
        horn = [(20 + side * dx, 68 + dy) for dx, dy in ((6, 11), (16, 15), (22, 6), (17, -4),
                                                        (12, 0))]
        pen.line(horn, 6, (196, 164, 118), plump=2.5, smooth=True)


DRAWINGS = {
    "dog": (_standing_dog, _sitting_dog, _running_dog),
    "cat": (_sitting_cat, _walking_cat, _lying_cat),
    "horse": (_standing_horse, _galloping_horse, _grazing_horse),
    "sheep": (_sheep, _grazing_sheep, _ram),
}
