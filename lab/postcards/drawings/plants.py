"""Trees, groves, pines, palms, and flowers large enough to be things."""

from __future__ import annotations

import numpy as np

from ..pen import DARK_WOOD, DEEP_LEAF, LEAF, WOOD, Pen, Points


def _leaves(pen: Pen, x: float, y: float, radius: float, seed: int = 0, tall: float = 1.0) -> None:
    """A round crown of leaves in tufts, the lit ones last."""
    rng = np.random.default_rng(seed)
    lit = pen.look.lit * (-1 if pen.look.flip else 1)
    pen.disc(x, y, 0.86 * radius, tint=0.84, tall=tall, plump=0.5 * radius)
    around = np.linspace(0, 2 * np.pi, 9, endpoint=False) + rng.uniform(0, 0.6)
    for angle in sorted(around, key=lambda a: np.sin(a) + 0.6 * lit * np.cos(a)):
        away = radius * rng.uniform(0.58, 0.7)
        dx, dy = away * np.cos(angle), away * np.sin(angle) * tall
        bright = 0.96 + 0.14 * (np.sin(angle) + 0.7 * lit * np.cos(angle)) / 1.7
        pen.disc(x + dx, y + dy, radius * rng.uniform(0.34, 0.42), tint=bright,
                 plump=0.3 * radius)
    pen.disc(x + 0.1 * lit * radius, y + 0.12 * radius * tall, 0.56 * radius, tint=1.0,
             plump=0.4 * radius)
    for _ in range(12):
        angle, away = rng.uniform(0, 2 * np.pi), radius * rng.uniform(0.15, 0.85)
        dx, dy = away * np.cos(angle), away * np.sin(angle) * tall
        pen.disc(x + dx, y + dy, 0.13 * radius, plump=0, tall=0.75,
                 tint=0.98 + 0.12 * np.sign(dy + 0.7 * lit * dx))


def _trunk(pen: Pen, x: float, low: float, high: float, foot: float, forks: bool = True) -> None:
    pen.shape([(x - foot, low), (x - 0.5 * foot, low + 5), (x - 0.4 * foot, high),
               (x + 0.4 * foot, high), (x + 0.5 * foot, low + 5), (x + foot, low)], WOOD,
              plump=0.5 * foot)
    if forks:
        for side in (-1, 1):
            pen.line([(x, high - 12), (x + side * 2.2 * foot, high + 5)], 0.4 * foot, WOOD)


def _oak(pen: Pen) -> None:
    _trunk(pen, 0, 0, 44, 9)
    for x, y, radius, seed in ((-26, 58, 25, 1), (27, 60, 24, 2), (0, 80, 33, 3), (2, 58, 26, 4)):
        _leaves(pen, x, y, radius, seed)


def _round_tree(pen: Pen) -> None:
    _trunk(pen, 0, 0, 40, 7)
    _leaves(pen, 0, 72, 41, 5)


def _poplar(pen: Pen) -> None:
    """A slender tree."""
    _trunk(pen, 0, 0, 30, 6, forks=False)
    for y, radius, seed in ((36, 19, 6), (58, 23, 7), (82, 19, 8), (100, 12, 9)):
        _leaves(pen, 0, y, radius, seed, 1.12)


def _umbrella_tree(pen: Pen) -> None:
    """A leaning tree with flat layers of leaves."""
    pen.line([(-4, 0), (0, 24), (-10, 46), (-24, 62)], 6, WOOD, plump=3, smooth=True)
    pen.line([(0, 24), (10, 46), (26, 66)], 5, WOOD, plump=3, smooth=True)
    for x, y, radius, seed in ((-28, 66, 22, 11), (30, 70, 23, 12), (0, 88, 27, 13)):
        _leaves(pen, x, y, radius, seed, 0.68)


def _grove(pen: Pen) -> None:
    for x, low, y, radius, seed in ((2, 5, 66, 27, 21), (-34, 0, 46, 24, 22), (36, 1, 50, 24, 23)):
        _trunk(pen, x, low, y - 10, 5)
        _leaves(pen, x, y, radius, seed)


def _row_of_trees(pen: Pen) -> None:
    for x, y, seed in ((-44, 44, 24), (-15, 50, 25), (15, 46, 26), (45, 52, 27)):
        _trunk(pen, x, 0, y - 8, 4, forks=False)
        _leaves(pen, x, y, 18, seed, 1.35)


def _copse(pen: Pen) -> None:
    """A large tree and two small ones."""
    _trunk(pen, -16, 2, 50, 7)
    _leaves(pen, -16, 74, 33, 28)
    for x, y, radius, seed in ((28, 40, 25, 29), (-46, 30, 17, 30)):
        _trunk(pen, x, -1, y - 10, 4)
        _leaves(pen, x, y, radius, seed)


def _tier(pen: Pen, y: float, half: float, high: float, droop: float = 5) -> None:
    """A layer of branches of a conifer, its lower edge jagged, half of it in the shade."""
    teeth = 7
    edge = [(half * (2 * n / teeth - 1), y - (droop if n % 2 else 0) * (1 - abs(2 * n / teeth - 1)))
            for n in range(teeth + 1)]
    pen.shape([*edge, (0.1 * half, y + high), (-0.1 * half, y + high)], plump=0.3 * half)
    pen.shape([p for p in edge if p[0] > -0.2 * half] + [(0.1 * half, y + high), (0, y + high)],
              tint=pen.right + 0.08 if pen.right < 1 else 1.0, plump=0.15 * half)
    pen.shape([p for p in edge if p[0] < 0.2 * half] + [(0, y + high), (-0.1 * half, y + high)],
              tint=pen.left + 0.08 if pen.left < 1 else 1.0, plump=0.15 * half)


def _fir(pen: Pen) -> None:
    _trunk(pen, 0, 0, 20, 5.5, forks=False)
    for y, half, high in ((14, 36, 40), (36, 30, 36), (58, 23, 32), (78, 15, 36)):
        _tier(pen, y, half, high)


def _spruce(pen: Pen) -> None:
    """A slender conifer of many layers."""
    _trunk(pen, 0, 0, 16, 4.5, forks=False)
    for n in range(7):
        _tier(pen, 9 + 14 * n, 27 - 3.2 * n, 24, 4)


def _stone_pine(pen: Pen) -> None:
    """A tall pine with round clouds of needles on bare branches."""
    pen.line([(2, 0), (-2, 34), (3, 66), (0, 96)], 6, WOOD, plump=3, smooth=True)
    for a, b in (((0, 40), (-28, 52)), ((1, 54), (28, 66)), ((1, 66), (-22, 78))):
        pen.line([a, b], 3, WOOD)
    for x, y, radius, seed in ((-30, 55, 17, 31), (30, 68, 18, 32), (-22, 82, 17, 33),
                               (3, 99, 19, 34)):
        _leaves(pen, x, y, radius, seed, 0.58)


def _frond(pen: Pen, x: float, y: float, reach: float, angle: float, tint: float) -> None:
    """A leaf of a palm that bends down."""
    ways = np.linspace(0, 1, 9)
    spine = [(x + reach * np.cos(angle) * t, y + reach * (np.sin(angle) * t - 0.62 * t * t))
             for t in ways]
    upper = [(px, py + 0.14 * reach * np.sin(np.pi * t**0.7)) for (px, py), t in zip(
        spine, ways, strict=True)]
    lower = []
    for n, ((px, py), t) in enumerate(zip(spine, ways, strict=True)):
        deep = 0.27 * reach * np.sin(np.pi * min(1, t * 1.02) ** 0.8)
        lower.append((px, py - deep * (1.0 if n % 2 else 0.45)))
    pen.shape([*upper, *lower[::-1]], tint=tint, plump=2.5)
    pen.line(spine, 1, tint=tint * 0.84, plump=0)


def _crown_of_fronds(pen: Pen, x: float, y: float, reach: float) -> None:
    for angle, far, tint in ((2.5, 1.0, 0.8), (0.65, 1.0, 0.82), (3.35, 0.95, 0.9),
                             (-0.2, 0.95, 0.88), (2.0, 0.86, 0.96), (1.15, 0.86, 0.98),
                             (2.9, 0.92, 1.06), (0.25, 0.92, 1.0), (1.57, 0.6, 1.1)):
        _frond(pen, x, y, reach * far, angle, tint)
    for dx, dy in ((-4, -4), (4, -5), (0, -8)):
        pen.disc(x + dx, y + dy, 4, DARK_WOOD)


def _palm_trunk(pen: Pen, points: Points, width: float) -> None:
    pen.line(points, width, (160, 118, 82), plump=0.5 * width, smooth=True)
    (x0, y0), (x1, y1), (x2, y2) = points
    for t in np.linspace(0.08, 0.94, 10):
        x = (1 - t) ** 2 * x0 + 2 * t * (1 - t) * (2 * x1 - 0.5 * x0 - 0.5 * x2) + t * t * x2
        y = (1 - t) ** 2 * y0 + 2 * t * (1 - t) * (2 * y1 - 0.5 * y0 - 0.5 * y2) + t * t * y2
        pen.line([(x - 0.4 * width, y), (x + 0.4 * width, y + 0.6)], 1, DARK_WOOD, plump=0)


def _palm(pen: Pen) -> None:
    _palm_trunk(pen, ((-14, 0), (-4, 40), (8, 80)), 7.5)
    _crown_of_fronds(pen, 9, 84, 54)


def _straight_palm(pen: Pen) -> None:
    _palm_trunk(pen, ((2, 0), (-2, 42), (0, 84)), 8)
    _crown_of_fronds(pen, 0, 86, 50)


def _two_palms(pen: Pen) -> None:
    _palm_trunk(pen, ((4, 0), (16, 28), (28, 54)), 5.5)
    _crown_of_fronds(pen, 28, 57, 35)
    _palm_trunk(pen, ((-2, 0), (-8, 42), (-18, 84)), 6.5)
    _crown_of_fronds(pen, -18, 87, 43)


def _leaf(pen: Pen, x: float, y: float, reach: float, rise: float, tint: float = 1.0,
          wide: float = 0.3) -> None:
    """A leaf from (x, y) to the side."""
    tip, side = (x + reach, y + rise), wide * abs(reach)
    pen.blob([(x, y), (x + 0.4 * reach, y + 0.5 * rise + side), tip,
              (x + 0.55 * reach, y + 0.4 * rise - 0.7 * side)], LEAF, tint, 3)


def _sunflower_head(pen: Pen, x: float, y: float, radius: float) -> None:
    for ring, share, tint in ((0, 1.0, 0.86), (0.5, 0.9, 1.0)):
        for n in range(14):
            a = 2 * np.pi * (n + ring) / 14
            tip = x + share * radius * np.cos(a), y + share * radius * np.sin(a)
            left, right = ((x + 0.66 * radius * np.cos(a + d), y + 0.66 * radius * np.sin(a + d))
                           for d in (-0.24, 0.24))
            pen.shape([(x, y), left, tip, right], tint=tint, plump=1.5)
    pen.disc(x, y, 0.47 * radius, (92, 54, 34), plump=0.25 * radius)
    pen.disc(x, y, 0.28 * radius, (64, 38, 30), plump=0.1 * radius)


def _stem(pen: Pen, x: float, top: float, lean: float = 0, width: float = 4) -> None:
    pen.line([(x, -2), (x + 0.3 * lean, 0.5 * top), (x + lean, top)], width, LEAF, 0.86,
             0.5 * width, smooth=True)


def _sunflower(pen: Pen) -> None:
    _stem(pen, -3, 72, 5, 5)
    _leaf(pen, -2, 22, -34, 14)
    _leaf(pen, 0, 38, 32, 16, 0.9)
    _sunflower_head(pen, 2, 78, 36)


def _three_sunflowers(pen: Pen) -> None:
    for x, top, radius, lean in ((-30, 54, 24, -4), (30, 48, 23, 5), (0, 80, 28, 0)):
        _stem(pen, x * 0.7, top, x * 0.3 + lean, 4)
        _leaf(pen, x * 0.75, 18, -22, 10)
        _leaf(pen, x * 0.75, 26, 21, 12, 0.9)
        _sunflower_head(pen, x + lean, top + 4, radius)


def _two_sunflowers(pen: Pen) -> None:
    _stem(pen, 14, 54, 10)
    _leaf(pen, 16, 20, 28, 12, 0.9)
    _sunflower_head(pen, 26, 58, 25)
    _stem(pen, -10, 76, -6, 5)
    _leaf(pen, -10, 26, -30, 14)
    _leaf(pen, -12, 44, 22, 12, 0.92)
    _sunflower_head(pen, -17, 82, 32)


def _tulip_head(pen: Pen, x: float, y: float, size: float) -> None:
    """A cup of three petals that stands on (x, y)."""
    def at(*points: tuple[float, float]) -> Points:
        return [(x + a * size, y + b * size) for a, b in points]

    pen.blob(at((-8, 6), (-14, 22), (-13, 38), (-4, 28), (0, 10)), tint=0.86, plump=4 * size)
    pen.blob(at((8, 6), (14, 22), (13, 38), (4, 28), (0, 10)), tint=0.82, plump=4 * size)
    pen.blob(at((0, 0), (-11, 8), (-11, 24), (0, 37), (11, 24), (11, 8)), plump=6 * size)


def _tulips(pen: Pen, flowers: tuple[tuple[float, float, float], ...]) -> None:
    for x, top, _ in flowers:
        _stem(pen, 0.55 * x, top + 3, 0.45 * x, 3.4)
        tip = 0.5 * top
        for side in (-1, 1):
            pen.blob([(0.6 * x, -2), (0.6 * x + side * 9, 0.4 * tip),
                      (0.7 * x + side * 13, tip + 8), (0.6 * x + side * 3, 0.6 * tip)],
                     LEAF, 0.94 + 0.08 * side, 3)
    for x, top, size in flowers:
        _tulip_head(pen, x, top, size)


def _three_tulips(pen: Pen) -> None:
    _tulips(pen, ((-27, 46, 0.95), (27, 42, 0.95), (0, 60, 1.1)))


def _five_tulips(pen: Pen) -> None:
    _tulips(pen, ((-40, 34, 0.72), (40, 36, 0.72), (-20, 54, 0.8), (21, 52, 0.8), (0, 68, 0.85)))


def _one_tulip(pen: Pen) -> None:
    _tulips(pen, ((0, 52, 1.55),))


def _rose(pen: Pen, x: float, y: float, radius: float) -> None:
    """A blossom whose petals wind inwards."""
    for n in range(5):
        a = 2 * np.pi * n / 5 + 0.4
        pen.disc(x + 0.5 * radius * np.cos(a), y + 0.5 * radius * np.sin(a), 0.62 * radius,
                 tint=0.9 + 0.06 * (n % 3), plump=0.5 * radius)
    pen.disc(x, y, 0.6 * radius, tint=1.06, plump=0.4 * radius)
    pen.line([(x - 0.34 * radius, y), (x, y + 0.34 * radius), (x + 0.34 * radius, y),
              (x, y - 0.2 * radius)], 0.14 * radius, tint=0.68, plump=0, smooth=True)


def _bush(pen: Pen, clumps: tuple[tuple[float, float, float], ...]) -> None:
    for n, (x, y, radius) in enumerate(clumps):
        pen.disc(x, y, radius, DEEP_LEAF, 0.9 + 0.1 * (n % 3), plump=0.6 * radius)
    rng = np.random.default_rng(len(clumps))
    for x, y, radius in clumps:
        for _ in range(8):
            a, far = rng.uniform(0, 2 * np.pi), radius * rng.uniform(0.3, 0.85)
            lx, ly = x + far * np.cos(a), y + far * np.sin(a)
            pen.blob([(lx - 4, ly), (lx, ly + 3), (lx + 4, ly), (lx, ly - 2.4)], LEAF,
                     0.86 + 0.24 * rng.random(), 1.5)


def _roses_on(pen: Pen, blossoms: tuple[tuple[float, float, float], ...]) -> None:
    for x, y, radius in blossoms:
        _rose(pen, x, y, radius)


def _rose_bush(pen: Pen) -> None:
    _bush(pen, ((-30, 20, 24), (30, 20, 24), (0, 24, 26), (-20, 46, 24), (22, 46, 24), (0, 62, 22)))
    _roses_on(pen, ((-36, 26, 10.5), (-13, 18, 9), (14, 26, 11.5), (40, 24, 10), (-24, 50, 11.5),
                    (4, 50, 10), (29, 52, 11), (-4, 74, 11), (38, 5, 8), (-34, 4, 7.5)))


def _standard_rose(pen: Pen) -> None:
    """A rose tree: a crown of roses on a stem."""
    pen.line([(0, -2), (1, 40)], 5, WOOD, plump=2.5)
    _bush(pen, ((-18, 62, 22), (18, 62, 22), (0, 78, 25), (0, 56, 22)))
    _roses_on(pen, ((-26, 62, 10.5), (-4, 58, 11), (20, 60, 10.5), (-13, 82, 11.5), (12, 84, 10.5),
                    (30, 76, 9)))
    _bush(pen, ((-10, 3, 9), (10, 3, 9)))


def _low_rose_bush(pen: Pen) -> None:
    """A wide, low bush with few large roses."""
    _bush(pen, ((-40, 14, 18), (40, 14, 18), (-18, 26, 24), (20, 26, 24), (0, 34, 22)))
    _roses_on(pen, ((-42, 20, 12), (-16, 34, 14), (14, 46, 13.5), (40, 24, 12.5), (8, 17, 12.5),
                    (-22, 9, 9.5)))


DRAWINGS = {
    "tree": (_oak, _round_tree, _poplar, _umbrella_tree),
    "trees": (_grove, _row_of_trees, _copse),
    "pine": (_fir, _spruce, _stone_pine),
    "palm": (_palm, _straight_palm, _two_palms),
    "sunflower": (_sunflower, _three_sunflowers, _two_sunflowers),
    "tulip": (_three_tulips, _five_tulips, _one_tulip),
    "rosebush": (_rose_bush, _standard_rose, _low_rose_bush),
}
