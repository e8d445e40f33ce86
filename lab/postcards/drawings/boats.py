"""Boats and bridges, which stand in the water."""

from __future__ import annotations

import numpy as np

from ..pen import (
    CREAM,
    DARK,
    DARK_WOOD,
    PALE_STONE,
    PLANK,
    STEEL,
    STONE,
    WOOD,
    Pen,
    rounded,
)


def _hull(pen: Pen, x: float, half: float, high: float, trim: tuple[int, int, int] | None = WOOD,
          stripe: bool = True) -> None:
    """A hull from (x - half, high) to (x + half, high), its bow on the right."""
    keel = rounded([(x - 0.86 * half, 0.92 * high), (x - 0.74 * half, 0.3 * high),
                    (x - 0.55 * half, -4), (x + 0.5 * half, -4), (x + 0.8 * half, 0.45 * high),
                    (x + half, 1.15 * high)], closed=False)
    pen.shape([(x - 0.9 * half, high), *keel, (x + 0.4 * half, high)], trim, plump=0.35 * high)
    if stripe:
        pen.line([(x - 0.9 * half, 0.9 * high), (x + 0.4 * half, 0.9 * high),
                  (x + 0.97 * half, 1.06 * high)], 0.18 * high, CREAM, plump=0)


def _sail(pen: Pen, tack: tuple[float, float], clew: tuple[float, float],
          head: tuple[float, float], belly: float, tint: float = 1.0) -> None:
    """A filled three-cornered sail with seams."""
    (tx, ty), (cx, cy), (hx, hy) = tack, clew, head
    leech = [(cx + (hx - cx) * t + belly * np.sin(np.pi * t), cy + (hy - cy) * t)
             for t in np.linspace(0, 1, 10)]
    pen.shape([(tx, ty), *leech], tint=tint, plump=6)
    for t in (0.25, 0.5, 0.72):
        x = cx + (hx - cx) * t + belly * np.sin(np.pi * t)
        pen.line([(tx + (hx - tx) * t, ty + (hy - ty) * t), (x, cy + (hy - cy) * t)], 0.9,
                 tint=tint * 0.84, plump=0)


def _sloop(pen: Pen, x: float = 0, size: float = 1.0) -> None:
    """A boat with a mainsail and a jib; size 1 fills the drawing."""
    def at(dx: float, dy: float) -> tuple[float, float]:
        return x + dx * size, dy * size

    pen.line([at(-2, 18), at(-2, 114)], 2.6 * size, DARK_WOOD, plump=0.5)
    _sail(pen, at(1, 28), at(44, 26), at(1, 108), 7 * size, 0.92)
    _sail(pen, at(-5, 28), at(-40, 30), at(-5, 92), -5 * size)
    pen.line([at(-2, 26), at(45, 25)], 2.2 * size, DARK_WOOD, plump=0)
    pen.shape([at(-2, 119), at(-14, 115), at(-2, 111)], (214, 60, 58), plump=0)
    _hull(pen, x, 54 * size, 20 * size)


def _fishing_boat(pen: Pen) -> None:
    """A motor boat with a wheel house; its hull has the colour."""
    pen.line([(-22, 40), (-22, 90)], 2.2, DARK_WOOD, plump=0)
    pen.line([(-22, 84), (-46, 34)], 1, DARK, plump=0)
    pen.line([(-22, 84), (40, 30)], 1, DARK, plump=0)
    pen.box(-16, 26, 22, 58, CREAM, plump=3)
    pen.shape([(-20, 58), (-16, 64), (24, 64), (28, 58)], tint=0.8, plump=2)
    pen.window(-10, 42, 10, 10, STEEL)
    pen.window(7, 42, 10, 10, STEEL)
    pen.shape(rounded([(-52, 30), (-48, 8), (-40, -4), (36, -4), (50, 14), (60, 40)], closed=False)
              + [(40, 32), (20, 28), (-30, 28)], plump=8)
    pen.line([(-51, 29), (-20, 27), (22, 27), (42, 31), (59, 39)], 4, CREAM, plump=1, smooth=True)
    pen.line([(-46, 3), (44, 3)], 3, tint=0.66, plump=0)
    for x in (-34, -14, 6):
        pen.ring(x, 15, 4.2, 2.2, DARK)


def _rowing_boat(pen: Pen) -> None:
    """A rowing boat with its oars."""
    pen.line([(-8, 26), (-46, -5)], 2.2, PLANK, plump=0)
    pen.shape(rounded([(-58, 34), (-30, 24), (0, 21), (30, 24), (58, 34)], closed=False), DARK_WOOD,
              plump=2)
    for x in (-22, 14):
        pen.box(x - 7, 23, x + 7, 27, PLANK, plump=1)
    pen.shape([*rounded([(-59, 35), (-30, 25), (0, 22), (30, 25), (59, 35)], closed=False),
               *rounded([(50, 8), (30, -5), (-30, -5), (-50, 8)], closed=False)], plump=7)
    pen.line([(-58, 34), (-30, 25), (0, 22), (30, 25), (58, 34)], 3.4, CREAM, plump=1, smooth=True)
    pen.line([(-50, 14), (0, 6), (50, 14)], 1.4, tint=0.74, plump=0, smooth=True)
    pen.line([(10, 28), (44, 2)], 2.4, PLANK, plump=0)
    pen.blob([(40, 7), (51, 1), (54, -5), (44, -1)], PLANK, plump=1)


def _old_ship(pen: Pen) -> None:
    """A ship with square sails on two masts."""
    for x, top in ((-20, 104), (20, 112)):
        pen.line([(x, 20), (x, top)], 2.8, DARK_WOOD, plump=0.5)
        pen.shape([(x, top + 6), (x - 12, top + 2), (x, top - 1)], (214, 60, 58), plump=0)
        for low, high, half in ((30, 56, 20), (59, 79, 16), (82, 96, 11)):
            pen.shape([*rounded([(x - half, low), (x - 0.86 * half, (low + high) / 2),
                                 (x - 0.8 * half, high)], closed=False),
                       *rounded([(x + 0.8 * half, high), (x + 0.9 * half, (low + high) / 2),
                                 (x + half, low)], closed=False),
                       (x, low + 5)], plump=6)
            pen.line([(x - 0.85 * half, high), (x + 0.85 * half, high)], 1.7, DARK_WOOD, plump=0)
    pen.line([(40, 26), (62, 44)], 2.2, DARK_WOOD, plump=0)
    pen.shape(rounded([(-54, 40), (-50, 10), (-40, -4), (38, -4), (50, 12), (54, 32)],
                      closed=False) + [(44, 26), (-34, 26), (-36, 40)], WOOD, plump=8)
    pen.line([(-53, 37), (-36, 37)], 3, PLANK, plump=0)
    pen.line([(-51, 20), (0, 15), (53, 24)], 2.6, PLANK, plump=0, smooth=True)
    for x in (-26, -8, 10, 28):
        pen.disc(x, 10, 2.4, DARK, plump=0)


def _two_boats(pen: Pen) -> None:
    _sloop(pen, 27, 0.68)
    _sloop(pen, -30, 0.5)


def _three_boats(pen: Pen) -> None:
    _sloop(pen, 2, 0.42)
    _sloop(pen, 38, 0.52)
    _sloop(pen, -34, 0.6)


def _moored_boats(pen: Pen) -> None:
    """A sailing boat and a rowing boat beside it."""
    _sloop(pen, -16, 0.74)
    pen.shape([*rounded([(10, 18), (34, 12), (60, 19)], closed=False),
               *rounded([(52, 2), (34, -5), (18, 2)], closed=False)], plump=4)
    pen.line([(10, 18), (34, 12), (60, 19)], 2.2, CREAM, plump=0.5, smooth=True)


def _opening(x: float, half: float, high: float, foot: float = -8) -> list[tuple[float, float]]:
    """The outline of an arch from its left foot over its top to its right foot."""
    turn = np.linspace(np.pi, 0, 16)
    return [(x - half, foot), *((float(x + half * np.cos(a)), float(high * np.sin(a)))
                                for a in turn), (x + half, foot)]


def _arched(pen: Pen, arches: tuple[tuple[float, float, float], ...], top: list[tuple[float, float]]
            ) -> None:
    """A bridge of stone: what is below its `top`, without its arches, which are open."""
    ends = [(top[-1][0], -8.0), (top[0][0], -8.0)]
    under: list[tuple[float, float]] = []
    for arch in sorted(arches, reverse=True):
        under += reversed(_opening(*arch))
    pen.shape([*top, ends[0], *under, ends[1]], plump=4)
    for x, half, high in arches:
        turn = np.linspace(np.pi, 0, 12)
        outer = [(float(x + (half + 2.2) * np.cos(a)), float((high + 2.2) * np.sin(a)))
                 for a in turn]
        pen.line(outer, 3.6, tint=0.8, plump=1)
        for a in turn[1:-1:2]:
            pen.line([(x + (half + 0.6) * np.cos(a), (high + 0.6) * np.sin(a)),
                      (x + (half + 4) * np.cos(a), (high + 4) * np.sin(a))], 0.8, tint=0.62,
                     plump=0)


def _stone_bridge(pen: Pen) -> None:
    """An old bridge with three arches and a bent roadway."""
    top = rounded([(-64, 30), (-34, 42), (0, 48), (34, 42), (64, 30)], closed=False)
    _arched(pen, ((0, 18, 32), (-40, 14, 22), (40, 14, 22)), top)
    pen.line([(x, y + 5) for x, y in top], 5, tint=0.92, plump=2)
    pen.line([(x, y + 9) for x, y in top], 2.6, tint=1.1, plump=1)
    for x in (-20, 20):
        pen.shape([(x - 5, -8), (x - 4, 20), (x, 26), (x + 4, 20), (x + 5, -8)], tint=0.88, plump=3)
    for x, y in ((-56, 20), (-22, 36), (24, 34), (57, 18), (-4, 41), (9, 40), (-30, 33), (33, 34)):
        pen.line([(x - 3, y), (x + 3, y)], 1, tint=0.82, plump=0)


def _one_arch(pen: Pen) -> None:
    """A high, round bridge of one arch with a railing."""
    top = rounded([(-64, 10), (-34, 34), (0, 46), (34, 34), (64, 10)], closed=False)
    _arched(pen, ((0, 34, 34),), top)
    rail = [(x, y + 13) for x, y in top]
    for x, y in top[::4]:
        pen.line([(x, y), (x, y + 13)], 1.8, tint=0.8, plump=0)
    pen.line(rail, 2.8, tint=0.95, plump=1)
    pen.line([(x, y + 1) for x, y in top], 4, tint=1.1, plump=1)


def _viaduct(pen: Pen) -> None:
    """A level bridge on slender piers."""
    _arched(pen, ((-44, 11, 48), (-14.7, 11, 48), (14.7, 11, 48), (44, 11, 48)),
            [(-64, 66), (64, 66)])
    pen.box(-64, 62, 64, 67, tint=1.1, plump=1.5)
    for x in range(-60, 64, 8):
        pen.line([(x, 67), (x, 73)], 1.4, tint=0.8, plump=0)
    pen.line([(-64, 74), (64, 74)], 2.2, tint=0.9, plump=0.5)
    for pier in (-29.3, 0.0, 29.3):
        for y in (6, 18, 30):
            pen.line([(pier - 2.4, y), (pier + 2.4, y)], 0.9, tint=0.82, plump=0)


def _hanging_bridge(pen: Pen) -> None:
    """A suspension bridge between two towers."""
    for a, b, low in ((-64.0, -36.0, 0), (-36.0, 36.0, 1), (36.0, 64.0, 0)):
        ways = np.linspace(0, 1, 13)
        if low:
            cable = [(a + (b - a) * t, 34 + 54 * (2 * t - 1) ** 2) for t in ways]
        else:
            rise = ways if a < 0 else 1 - ways
            cable = [(a + (b - a) * t, 36 + 52 * r**1.5) for t, r in zip(ways, rise, strict=True)]
        for x, y in cable[1:-1]:
            pen.line([(x, 28), (x, y)], 0.9, tint=0.8, plump=0)
        pen.line(cable, 2.4, tint=0.95, plump=0.5)
    for x in (-36, 36):
        pen.box(x - 8, -8, x + 8, 8, STONE, plump=3)
        for dx in (-4.5, 4.5):
            pen.box(x + dx - 2.2, 0, x + dx + 2.2, 92, plump=1.5)
        for y in (46, 68, 88):
            pen.box(x - 6, y, x + 6, y + 4, tint=0.92, plump=1)
    pen.box(-64, 22, 64, 31, plump=2)
    pen.box(-64, 29, 64, 32, PALE_STONE, plump=0)


DRAWINGS = {
    "boat": (_sloop, _fishing_boat, _rowing_boat, _old_ship),
    "boats": (_two_boats, _three_boats, _moored_boats),
    "bridge": (_stone_bridge, _one_arch, _viaduct, _hanging_bridge),
}
