"""Cars, trains, bicycles and rockets."""

from __future__ import annotations

import numpy as np

from ..pen import CREAM, DARK, LIT, PANE, PLANK, SNOW, STEEL, TYRE, WOOD, Pen, rounded

_FIRE = ((250, 120, 40), (255, 188, 60), (255, 240, 170))


def _wheel(pen: Pen, x: float, y: float, radius: float) -> None:
    pen.disc(x, y, radius, TYRE, plump=0.3 * radius)
    pen.disc(x, y, 0.58 * radius, STEEL, plump=0.25 * radius)
    for turn in range(5):
        a = 2 * np.pi * turn / 5 + 0.3
        pen.line([(x, y), (x + 0.5 * radius * np.cos(a), y + 0.5 * radius * np.sin(a))],
                 0.12 * radius, STEEL, 0.7, 0)
    pen.disc(x, y, 0.16 * radius, DARK, plump=0)


def _glass(pen: Pen, points: list[tuple[float, float]]) -> None:
    """A car's window with a streak of sky in it."""
    pen.shape(points, PANE, 0.8, 1)
    (x0, y0), (x1, y1) = points[0], points[1]
    x2 = points[2][0]
    pen.shape([(x0 + 0.2 * (x2 - x0), y0), (x1 + 0.25 * (x2 - x1), y1), (x1 + 0.45 * (x2 - x1), y1),
               (x0 + 0.42 * (x2 - x0), y0)], PANE, 1.35, 0)


def _lamps(pen: Pen, front: tuple[float, float], rear: tuple[float, float]) -> None:
    pen.disc(*front, 4, (255, 246, 214) if not pen.look.night else LIT, tall=1.2, plump=1)
    if pen.look.night:
        pen.disc(*front, 3.4, LIT, tall=1.2, plump=0)
    pen.box(rear[0] - 2, rear[1] - 4, rear[0] + 2, rear[1] + 4, (206, 48, 46), plump=1)


def _small_car(pen: Pen) -> None:
    """A round little car."""
    pen.blob([(-56, 14), (-56, 34), (-46, 44), (-20, 46), (22, 46), (46, 40), (57, 28), (57, 14),
              (0, 11)], plump=10)
    pen.shape([*rounded([(-42, 42), (-36, 64), (-16, 74), (10, 74), (28, 64), (38, 42)],
                        closed=False)], plump=8)
    _glass(pen, [(-35, 45), (-29, 62), (-4, 68), (-4, 45)])
    _glass(pen, [(1, 45), (1, 68), (23, 61), (31, 45)])
    pen.line([(-1.5, 16), (-1.5, 45), (-1.5, 68)], 1.2, tint=0.7, plump=0)
    pen.line([(-50, 32), (52, 31)], 1.2, tint=0.78, plump=0)
    pen.box(-14, 36, -6, 38.5, STEEL, plump=0)
    pen.line([(-57, 14), (57, 14)], 5, STEEL, 0.86, 2)
    for x in (-33, 34):
        pen.disc(x, 15, 17, tint=0.62, plump=0)
        _wheel(pen, x, 13, 14)
    _lamps(pen, (54, 28), (-55, 30))


def _saloon(pen: Pen) -> None:
    """A long, low car."""
    pen.shape([*rounded([(-62, 12), (-62, 32), (-54, 40), (-30, 42), (30, 40), (54, 34), (63, 26),
                         (63, 12)], closed=False)], plump=8)
    pen.shape([*rounded([(-40, 40), (-26, 60), (-12, 63), (10, 62), (34, 40)], closed=False)],
              plump=5)
    _glass(pen, [(-32, 41), (-21, 57), (-6, 59), (-6, 41)])
    _glass(pen, [(-2, 41), (-2, 59), (10, 57), (26, 41)])
    for x in (-4, 22, -34):
        pen.line([(x, 16), (x, 40)], 1, tint=0.76, plump=0)
    pen.line([(-60, 28), (60, 25)], 1.6, tint=1.2, plump=0)
    pen.box(-16, 33, -9, 35.4, STEEL, plump=0)
    pen.box(12, 32, 19, 34.4, STEEL, plump=0)
    pen.line([(-63, 12), (63, 12)], 4, DARK, 1.2, 1)
    for x in (-37, 38):
        pen.disc(x, 13, 15.5, tint=0.6, plump=0)
        _wheel(pen, x, 12, 13)
    _lamps(pen, (60, 24), (-60, 29))


def _van(pen: Pen) -> None:
    """A camper van with a white roof."""
    pen.shape([*rounded([(-58, 12), (-60, 44), (-54, 70), (-40, 78), (24, 78), (42, 70), (54, 46),
                         (58, 30), (57, 12)], closed=False)], CREAM, plump=9)
    pen.shape([*rounded([(-58, 12), (-60, 28), (-59, 42)], closed=False), (30, 42),
               *rounded([(54, 42), (59, 28), (57, 12)], closed=False)], plump=6)
    pen.line([(-59, 43), (54, 43)], 2.4, STEEL, plump=0.5)
    for x in (-50, -25, 0):
        _glass(pen, [(x, 48), (x, 68), (x + 21, 68), (x + 21, 48)])
    _glass(pen, [(27, 48), (27, 68), (38, 68), (50, 48)])
    pen.line([(-2, 14), (-2, 72)], 1, tint=0.7, plump=0)
    pen.line([(24, 14), (24, 72)], 1, tint=0.7, plump=0)
    pen.line([(-58, 12), (57, 12)], 4.6, STEEL, 0.86, 2)
    for x in (-34, 35):
        pen.disc(x, 14, 16, tint=0.6, plump=0)
        _wheel(pen, x, 12, 13)
    _lamps(pen, (56, 27), (-58, 30))


def _rails(pen: Pen) -> None:
    for x in range(-60, 64, 12):
        pen.box(x - 4, -5, x + 4, -2, WOOD, 0.8, 1)
    pen.line([(-64, -1), (64, -1)], 2.4, STEEL, 0.7, 0.6)


def _puff(pen: Pen, spots: tuple[tuple[float, float, float], ...]) -> None:
    for x, y, radius in spots:
        pen.disc(x, y, radius, (232, 232, 238), plump=0.7 * radius)


def _steam_train(pen: Pen) -> None:
    """An engine under steam and its waggon."""
    _rails(pen)
    _puff(pen, ((32, 80, 8), (22, 92, 10), (6, 100, 12), (-14, 106, 10)))
    pen.box(-62, 16, -14, 54, tint=0.92, plump=4)
    pen.box(-64, 52, -12, 58, DARK, 1.2, 2)
    for x in (-57, -42, -27):
        pen.window(x, 30, 9, 14)
    pen.box(-8, 16, 16, 62, plump=4)
    pen.box(-11, 60, 19, 66, DARK, 1.2, 2)
    pen.window(-1, 38, 11, 15)
    pen.box(14, 22, 52, 48, plump=11)
    for x in (26, 38):
        pen.box(x - 1.4, 22, x + 1.4, 48, (214, 176, 84), plump=1)
    pen.disc(52, 35, 12.6, DARK, 1.15, plump=5)
    pen.shape([(38, 47), (35, 68), (47, 68), (44, 47)], DARK, 1.1, 3)
    pen.box(33, 66, 49, 70, DARK, 1.25, 1.5)
    pen.disc(24, 49, 6, (214, 176, 84), plump=3)
    pen.disc(56, 42, 3.6, LIT if pen.look.night else CREAM, plump=1)
    pen.shape([(48, 14), (50, 21), (63, 3), (50, 3)], DARK, 1.2, 2)
    pen.box(-64, 12, 54, 18, DARK, 1.15, 1.5)
    for x, radius in ((-52, 8), (-24, 8), (2, 12), (27, 10), (45, 8)):
        _wheel(pen, x, radius, radius)
    pen.line([(2, 9), (27, 8), (45, 7)], 2.4, STEEL, plump=1)


def _express(pen: Pen) -> None:
    """A fast train with a pointed nose."""
    _rails(pen)
    pen.shape([(-64, 8), (-64, 56), *rounded([(10, 56), (32, 50), (50, 34), (63, 18), (58, 9)],
                                             closed=False)], plump=9)
    pen.shape([(-64, 16), (-64, 24), (56, 24), (62, 16)], CREAM, plump=1)
    for x in range(-60, 14, 14):
        pen.shape([(x, 34), (x, 46), (x + 10, 46), (x + 10, 34)], LIT if pen.look.night else PANE,
                  plump=0, glows=pen.look.night)
    _glass(pen, [(18, 36), (18, 50), (30, 46), (44, 36)])
    pen.line([(-18, 10), (-18, 54)], 1.4, tint=0.68, plump=0)
    pen.box(-64, 4, 54, 10, DARK, 1.2, 1)
    for x in (-52, -36, 0, 16, 40):
        _wheel(pen, x, 5, 5.4)
    pen.disc(57, 20, 3, LIT if pen.look.night else (255, 246, 214), plump=0)
    pen.line([(-40, 56), (-34, 66), (-44, 72), (-28, 72)], 1.4, DARK, plump=0)


def _tram(pen: Pen) -> None:
    """A railcar, front at the right, with a white band."""
    _rails(pen)
    pen.box(-62, 10, 58, 66, plump=6)
    pen.shape([(-62, 64), (-54, 73), (50, 73), (58, 64)], STEEL, 0.9, 3)
    pen.box(-62, 34, 58, 58, CREAM, plump=1)
    for x in range(-57, 36, 16):
        pen.shape([(x, 37), (x, 55), (x + 12, 55), (x + 12, 37)], LIT if pen.look.night else PANE,
                  plump=0, glows=pen.look.night)
        pen.line([(x + 3, 38), (x + 8, 54)], 1.6, CREAM if not pen.look.night else LIT, 0.9, 0)
    _glass(pen, [(42, 36), (42, 56), (55, 56), (58, 36)])
    for x in (-30, 8):
        pen.box(x - 6, 12, x + 6, 58, tint=0.82, plump=1)
        pen.shape([(x - 4, 32), (x - 4, 54), (x + 4, 54), (x + 4, 32)],
                  LIT if pen.look.night else PANE, plump=0, glows=pen.look.night)
    pen.box(-62, 27, 58, 30, tint=1.25, plump=0)
    pen.box(-60, 5, 56, 11, DARK, 1.2, 1)
    for x in (-48, -30, 26, 44):
        _wheel(pen, x, 6, 6.4)
    pen.disc(55, 20, 4, LIT if pen.look.night else (255, 246, 214), plump=1)
    for a, b in (((-10, 73), (4, 88)), ((4, 88), (-10, 98)), ((-16, 98), (-2, 98))):
        pen.line([a, b], 1.6, DARK, plump=0)


def _cycle_wheel(pen: Pen, x: float, radius: float) -> None:
    for n in range(9):
        a = np.pi * n / 9
        pen.line([(x - radius * np.cos(a), radius * (1 - np.sin(a))),
                  (x + radius * np.cos(a), radius * (1 + np.sin(a)))], 0.7, STEEL, plump=0)
    pen.ring(x, radius, radius - 1.8, 4, TYRE)
    pen.ring(x, radius, radius - 4.6, 1.8, STEEL, 1.1)
    pen.disc(x, radius, 3, DARK, plump=0)
    turn = np.linspace(0.15, np.pi - 0.15, 16)
    pen.line([(x + (radius + 2.6) * np.cos(a), radius + (radius + 2.6) * np.sin(a)) for a in turn],
             4.2, plump=1.5)


def _bicycle_frame(pen: Pen, rear: float, front: float, radius: float, step: bool) -> None:
    """Frame, saddle, pedals and handlebar between the wheels' axles."""
    crank, seat = ((rear + front) / 2 - 3, radius - 3), (rear + 17, radius + 32)
    head, neck = (front - 11, radius + 36), (front - 8, radius + 26)
    for a, b in (((rear, radius), crank), ((rear, radius), (seat[0] + 3, seat[1] - 5)),
                 (crank, seat), (crank, neck), (neck, (front, radius))):
        pen.line([a, b], 5.4, plump=2)
    if step:
        pen.line([neck, (crank[0] + 6, radius + 10), (seat[0] + 7, radius + 14)], 5, plump=2,
                 smooth=True)
    else:
        pen.line([(seat[0] + 2, seat[1] - 6), (head[0] + 1, head[1] - 4)], 5.4, plump=2)
    pen.line([neck, head, (head[0] - 2, head[1] + 8)], 4.6, plump=1.5)
    pen.line([(head[0] - 2, head[1] + 8), (head[0] - 14, head[1] + 10)], 3.4, DARK, plump=1)
    pen.line([(seat[0] - 3, seat[1] + 6), seat], 3, STEEL, plump=1)
    pen.blob([(seat[0] - 16, seat[1] + 9), (seat[0] - 4, seat[1] + 11), (seat[0] + 8, seat[1] + 8),
              (seat[0] - 4, seat[1] + 4)], DARK, plump=3)
    pen.disc(*crank, 6, STEEL, 0.9)
    pen.line([(crank[0] - 5, crank[1] - 9), (crank[0] + 5, crank[1] + 9)], 2.4, DARK, plump=0)
    for side in (-1, 1):
        pen.box(crank[0] + 5 * side - 4, crank[1] + 9 * side - 1.4, crank[0] + 5 * side + 4,
                crank[1] + 9 * side + 1.4, DARK, plump=0)


def _basket(pen: Pen, x: float, y: float) -> None:
    pen.shape([(x - 11, y + 16), (x - 8, y), (x + 9, y), (x + 12, y + 16)], PLANK, plump=4)
    for n in (4, 8, 12):
        pen.line([(x - 10, y + n), (x + 11, y + n)], 0.8, WOOD, plump=0)


def _bicycle(pen: Pen) -> None:
    for x in (-34, 34):
        _cycle_wheel(pen, x, 24)
    _bicycle_frame(pen, -34, 34, 24, False)


def _basket_bicycle(pen: Pen) -> None:
    """A bicycle with a low frame, flowers in its basket."""
    for x in (-33, 33):
        _cycle_wheel(pen, x, 24)
    _bicycle_frame(pen, -33, 33, 24, True)
    for dx, dy, colour in ((30, 76, (244, 130, 170)), (38, 79, (255, 226, 90)),
                           (45, 75, (250, 250, 250))):
        pen.disc(dx, dy, 5, colour)
    _basket(pen, 38, 56)


def _loaded_bicycle(pen: Pen) -> None:
    """A bicycle with a bag over its rear wheel."""
    for x in (-34, 35):
        _cycle_wheel(pen, x, 23)
    _bicycle_frame(pen, -34, 35, 23, False)
    pen.line([(-52, 52), (-20, 52)], 2.4, STEEL, plump=0)
    pen.blob([(-52, 50), (-54, 34), (-46, 27), (-32, 28), (-27, 38), (-29, 50)], tint=0.92, plump=5)
    pen.line([(-53, 44), (-28, 44)], 1.6, tint=0.66, plump=0)
    pen.box(-43, 40, -38, 46, (214, 176, 84), plump=1)


def _flame(pen: Pen, x: float, top: float, half: float, reach: float) -> None:
    for colour, share in zip(_FIRE, (1.0, 0.72, 0.4), strict=True):
        w, r = half * share, reach * share
        pen.blob([(x - w, top - 2), (x - 0.8 * w, top - 0.5 * r), (x, top - r),
                  (x + 0.8 * w, top - 0.5 * r), (x + w, top - 2), (x, top + 2)], colour, plump=0)


def _smoke(pen: Pen, half: float) -> None:
    for x, y, radius in ((-half, 2, 9), (half, 2, 9), (-0.5 * half, 0, 10), (0.5 * half, 0, 10),
                         (0, -1, 9)):
        pen.disc(x, y, radius, (226, 224, 230), tall=0.8, plump=0.7 * radius)


def _fin(pen: Pen, root: float, low: float, high: float, reach: float, tint: float = 0.72) -> None:
    for side in (-1, 1):
        pen.shape([(side * root, high), *rounded([(side * (root + 0.8 * reach), high - 14),
                                                  (side * (root + reach), low)], closed=False),
                   (side * root, low + 8)], tint=tint, plump=3)


def _porthole(pen: Pen, y: float, radius: float) -> None:
    pen.disc(0, y, radius, STEEL, 0.92)
    night = pen.look.night
    pen.disc(0, y, 0.7 * radius, LIT if night else PANE, plump=0)
    pen.disc(-0.2 * radius, y + 0.2 * radius, 0.22 * radius, SNOW, plump=0)


def _rocket(pen: Pen) -> None:
    """A round rocket on three fins, about to start."""
    _smoke(pen, 24)
    _flame(pen, 0, 16, 9, 22)
    _fin(pen, 15, 4, 46, 20)
    pen.shape(rounded([(-14, 16), (-22, 42), (-20, 74), (0, 112), (20, 74), (22, 42), (14, 16)],
                      closed=False), plump=13)
    pen.shape(rounded([(-15, 84), (-8, 100), (0, 113), (8, 100), (15, 84)], closed=False), CREAM,
              plump=7)
    pen.line([(-15.5, 84), (15.5, 84)], 2, tint=0.7, plump=0)
    _porthole(pen, 64, 10)
    pen.box(-12, 12, 12, 18, DARK, 1.2, 2)
    pen.shape([(-4, 8), (-3, 44), (3, 44), (4, 8)], tint=0.74, plump=2)


def _slender_rocket(pen: Pen) -> None:
    """A tall rocket with bands and boosters."""
    _smoke(pen, 26)
    for x in (-17, 0, 17):
        _flame(pen, x, 14, 6, 18)
    for x in (-17, 17):
        pen.shape([(x - 7, 12), (x - 7, 52), (x, 66), (x + 7, 52), (x + 7, 12)], CREAM, plump=5)
        pen.box(x - 7, 24, x + 7, 30, tint=0.9, plump=2)
    pen.shape(rounded([(-12, 14), (-12, 80), (-9, 98), (0, 116), (9, 98), (12, 80), (12, 14)],
                      closed=False), plump=9)
    pen.box(-12, 46, 12, 54, CREAM, plump=5)
    pen.box(-12, 78, 12, 83, CREAM, plump=4)
    _porthole(pen, 67, 6.4)
    pen.line([(0, 112), (0, 119)], 1.6, DARK, plump=0)


def _flying_rocket(pen: Pen) -> None:
    """A rocket above the ground on a long flame."""
    _flame(pen, 0, 34, 12, 42)
    _fin(pen, 13, 26, 62, 22)
    pen.shape(rounded([(-13, 34), (-19, 56), (-17, 84), (0, 117), (17, 84), (19, 56), (13, 34)],
                      closed=False), plump=11)
    for y in (44, 50):
        pen.line([(-16, y), (16, y)], 2.2, CREAM, plump=0)
    _porthole(pen, 76, 8.4)
    pen.box(-10, 29, 10, 36, DARK, 1.2, 2)


DRAWINGS = {
    "car": (_small_car, _saloon, _van),
    "train": (_steam_train, _express, _tram),
    "bicycle": (_bicycle, _basket_bicycle, _loaded_bicycle),
    "rocket": (_rocket, _slender_rocket, _flying_rocket),
}
