"""Houses, villages, churches, castles, towers, lighthouses, windmills and tents."""

from __future__ import annotations

import numpy as np

from ..pen import (
    BELOW,
    CREAM,
    DARK,
    DARK_WOOD,
    HIGH,
    LIT,
    PALE_STONE,
    PLANK,
    SLATE,
    STONE,
    THATCH,
    TILES,
    WIDE,
    WOOD,
    Colour,
    Pen,
    rounded,
    tinted,
)


def _door(pen: Pen, x: float, wide: float, high: float, y: float = 0) -> None:
    """A door with a round top, its middle at x."""
    half = wide / 2
    pen.disc(x, y + high, half + 1.6, CREAM, plump=0)
    pen.box(x - half - 1.6, y, x + half + 1.6, y + high, CREAM, plump=0)
    pen.disc(x, y + high, half, DARK_WOOD, plump=0)
    pen.box(x - half, y, x + half, y + high, DARK_WOOD, plump=1)
    pen.disc(x + 0.5 * half, y + 0.5 * high, 1.1, LIT, plump=0)


def _roof(pen: Pen, x0: float, x1: float, eaves: float, peak: float, trim: Colour,
          top: tuple[float, float] | None = None) -> None:
    """A roof seen from its long side, with rows of tiles. top: the ends of its ridge."""
    a, b = top or (x0 + 0.12 * (x1 - x0), x1 - 0.12 * (x1 - x0))
    pen.shape([(x0, eaves), (a, peak), (b, peak), (x1, eaves)], trim, plump=4)
    for n in (1, 2, 3):
        y = eaves + n * (peak - eaves) / 4
        share = n / 4
        pen.line([(x0 + (a - x0) * share + 1, y), (x1 + (b - x1) * share - 1, y)], 1, trim, 0.86, 0)
    pen.line([(x0, eaves), (x1, eaves)], 2.4, trim, 0.72, 0)


def _chimney(pen: Pen, x: float, low: float, high: float, wide: float = 9) -> None:
    pen.box(x, low, x + wide, high, TILES, 0.86)
    pen.box(x - 1.5, high - 3, x + wide + 1.5, high + 1, STONE, plump=1)


def _gable(pen: Pen, x0: float, x1: float, eaves: float, peak: float, trim: Colour,
           tint: float = 1.0) -> None:
    """A front under a pointed roof whose edges are seen."""
    middle = (x0 + x1) / 2
    pen.shape([(x0, 0), (x0, eaves), (middle, peak), (x1, eaves), (x1, 0)], tint=tint, plump=3)
    slope = (peak - eaves) / (middle - x0)
    over = 5
    pen.line([(x0 - over, eaves - over * slope), (middle, peak + 1), (x1 + over,
             eaves - over * slope)], 5.5, trim, plump=2)


def _cottage(pen: Pen) -> None:
    """A low house with a long roof, a gable in front and a chimney."""
    _chimney(pen, 22, 60, 88)
    pen.box(-48, 0, 48, 42, tint=0.93, plump=3)
    _roof(pen, -56, 56, 40, 76, SLATE)
    _gable(pen, -42, -4, 44, 72, SLATE)
    pen.window(-29, 20, 12, 15)
    _door(pen, 13, 13, 22)
    pen.window(28, 15, 12, 14)
    pen.disc(-23, 53, 4, CREAM, plump=0)
    pen.box(-50, -1, 50, 4, STONE, 0.92, 1)
    for x, r in ((-44, 6), (-38, 4.5), (45, 5.5)):
        pen.disc(x, 4, r, (74, 132, 66))


def _townhouse(pen: Pen) -> None:
    """A tall gabled house, front and side."""
    _chimney(pen, 20, 74, 104)
    pen.box(4, 0, 44, 58, tint=pen.right, plump=3)
    pen.shape([(-18, 100), (22, 100), (52, 56), (8, 56)], TILES, plump=4)
    for n in (1, 2, 3):
        pen.line([(-18 + 7 * n, 100 - 11 * n), (22 + 7.5 * n, 100 - 11 * n)], 1, TILES, 0.85, 0)
    _gable(pen, -42, 8, 58, 98, tinted(TILES, 0.85))
    for x in (-34, -12):
        pen.window(x, 34, 10, 15)
    pen.window(-22.5, 66, 11, 13)
    _door(pen, -17, 13, 20)
    for y in (12, 36):
        pen.window(16, y, 8, 13)
        pen.window(31, y, 8, 13)


def _barn(pen: Pen) -> None:
    """A barn under a bent roof with white boards."""
    pen.shape([(-46, 0), (-46, 50), (-30, 78), (0, 92), (30, 78), (46, 50), (46, 0)], plump=4)
    for x in range(-40, 46, 8):
        pen.line([(x, 2), (x, 52)], 0.9, tint=0.86, plump=0)
    pen.line([(-53, 42), (-33, 80), (0, 95), (33, 80), (53, 42)], 6, SLATE, plump=3)
    pen.box(-19, 0, 19, 38, CREAM, plump=1)
    pen.box(-16, 0, 16, 35, tint=0.84, plump=0)
    for a, b in ((-16, 16), (16, -16)):
        pen.line([(a, 0), (b, 35)], 2.6, CREAM, plump=0)
    pen.line([(0, 0), (0, 35)], 1.4, CREAM, plump=0)
    pen.window(-8, 56, 16, 14)
    pen.box(-48, -1, 48, 3, STONE, plump=1)


def _cabin(pen: Pen) -> None:
    """A cabin of logs with a porch, its roof in thatch."""
    _chimney(pen, -34, 58, 92, 11)
    for n in range(6):
        pen.box(-46, 7 * n, 46, 7 * n + 7, tint=1.0 - 0.05 * (n % 2), plump=3)
    _roof(pen, -58, 58, 40, 82, THATCH, (-40, 40))
    _gable(pen, -6, 40, 38, 66, tinted(THATCH, 0.84))
    _door(pen, 17, 14, 22)
    pen.window(-36, 16, 17, 14, PLANK)
    pen.pane(13, 46, 8, 7)
    for x in (-4, 38):
        pen.line([(x, 0), (x, 36)], 3.4, WOOD)
    pen.box(-10, -2, 44, 3, PLANK, 0.9, 1)


def _small_house(pen: Pen, x: float, wide: float, high: float, trim: Colour, lights: int = 1,
                 tint: float = 1.0) -> None:
    """A house of a village, its gable at x and its roof to the right of it."""
    peak = high + 0.36 * wide
    pen.box(x + 0.5 * wide, 0, x + wide, high, tint=tint * pen.right, plump=2)
    pen.shape([(x + 0.27 * wide, peak), (x + 0.8 * wide, peak), (x + 1.05 * wide, high - 1),
               (x + 0.54 * wide, high - 1)], trim, plump=3)
    _gable(pen, x, x + 0.54 * wide, high, peak, tinted(trim, 0.86), tint)
    pen.box(x + 0.2 * wide, 0, x + 0.34 * wide, 0.55 * high, DARK_WOOD, plump=0)
    pen.pane(x + 0.2 * wide, high * 0.78, 0.14 * wide, 0.22 * high)
    for n in range(lights):
        pen.pane(x + (0.62 + 0.17 * n) * wide, 0.36 * high, 0.1 * wide, 0.32 * high)


def _village(pen: Pen) -> None:
    _small_house(pen, -24, 48, 52, TILES, 2, 0.92)
    _small_house(pen, -62, 50, 34, SLATE, 2)
    _small_house(pen, 6, 54, 30, TILES, 2)


def _street(pen: Pen) -> None:
    """Gabled houses side by side."""
    for n, (x, wide, eaves, trim) in enumerate(((-60, 30, 44, TILES), (-29, 27, 60, SLATE),
                                                (-1, 31, 50, TILES), (31, 29, 38, SLATE))):
        _gable(pen, x, x + wide, eaves, eaves + 22, trim, (1.0, 0.88, 1.05, 0.94)[n])
        for y in range(20, eaves - 8, 18):
            pen.window(x + 4.5, y, 6, 10)
            pen.window(x + wide - 10.5, y, 6, 10)
        pen.box(x + wide / 2 - 4, 0, x + wide / 2 + 4, 14, DARK_WOOD, plump=0)
        pen.pane(x + wide / 2 - 3, eaves, 6, 8)


def _hamlet(pen: Pen) -> None:
    """Houses and a church tower, one behind the other."""
    pen.box(2, 0, 20, 76, tint=0.9)
    pen.shape([(-1, 76), (11, 108), (23, 76)], SLATE, plump=3)
    pen.pane(8, 60, 6, 9)
    _small_house(pen, -56, 44, 40, SLATE, 2, 0.92)
    _small_house(pen, 20, 42, 36, TILES, 2, 0.94)
    _small_house(pen, -20, 44, 24, TILES, 2)


def _cross(pen: Pen, x: float, y: float) -> None:
    pen.box(x - 1.3, y, x + 1.3, y + 13, DARK, plump=0)
    pen.box(x - 4.5, y + 7, x + 4.5, y + 9.6, DARK, plump=0)


def _church(pen: Pen) -> None:
    """A church with a pointed steeple at its front and a nave behind."""
    pen.box(-14, 0, 52, 34, tint=pen.right, plump=3)
    _roof(pen, -20, 58, 34, 58, SLATE, (-16, 46))
    for x in (0, 17, 34):
        pen.disc(x + 4, 22, 5.4, CREAM, plump=0)
        pen.box(x - 1.4, 8, x + 9.4, 22, CREAM, plump=0)
        pen.disc(x + 4, 22, 4, LIT if pen.look.night else (84, 112, 156), plump=0)
        pen.pane(x, 8, 8, 14)
    pen.box(-50, 0, -14, 66, plump=4)
    pen.box(-52, 62, -12, 66, PALE_STONE, plump=1)
    pen.shape([(-55, 66), (-32, 112), (-9, 66)], SLATE, plump=5)
    _cross(pen, -32, 108)
    pen.disc(-32, 50, 7.5, CREAM, plump=0)
    pen.disc(-32, 50, 5.6, LIT if pen.look.night else PALE_STONE, plump=0)
    pen.line([(-32, 50), (-32, 54)], 1.2, DARK, plump=0)
    pen.line([(-32, 50), (-29, 49)], 1.2, DARK, plump=0)
    _door(pen, -32, 15, 19)


def _chapel(pen: Pen) -> None:
    """A chapel seen from its front, with a bell in a small turret."""
    _gable(pen, -34, 34, 44, 80, SLATE)
    pen.box(-10, 74, 10, 98, tint=1.03)
    pen.shape([(-14, 97), (0, 113), (14, 97)], SLATE)
    _cross(pen, 0, 109)
    pen.disc(0, 90, 5, DARK, plump=0)
    pen.box(-5, 82, 5, 90, DARK, plump=0)
    pen.disc(0, 83.5, 3.4, LIT, 0.9)
    pen.disc(0, 54, 8.5, CREAM, plump=0)
    pen.disc(0, 54, 6.5, LIT if pen.look.night else (84, 112, 156), plump=0)
    for a in (-1, 1):
        pen.line([(-6 * a, 54 - 4), (6 * a, 54 + 4)], 1.2, CREAM, plump=0)
        pen.window(23 * a - 4, 16, 8, 18)
    _door(pen, 0, 18, 24)
    pen.box(-38, -1, 38, 3, STONE, plump=1)


def _dome_church(pen: Pen) -> None:
    """A church with a dome between two slender towers."""
    pen.disc(0, 62, 25, (94, 138, 140), 0.95, 1.02)
    pen.box(-24, 52, 24, 64, tint=0.92)
    pen.line([(0, 86), (0, 93)], 4, (94, 138, 140))
    _cross(pen, 0, 94)
    pen.box(-44, 0, 44, 54, plump=3)
    pen.box(-46, 50, 46, 55, PALE_STONE, plump=1)
    for side in (-1, 1):
        pen.box(side * 40 - 10, 0, side * 40 + 10, 78, tint=pen.left if side < 0 else pen.right)
        pen.shape([(side * 40 - 13, 78), (side * 40, 101), (side * 40 + 13, 78)],
                  (94, 138, 140), plump=3)
        pen.pane(side * 40 - 3, 58, 6, 12)
        pen.pane(side * 40 - 3, 26, 6, 12)
    for x in (-19, 19):
        pen.disc(x, 32, 4.6, CREAM, plump=0)
        pen.window(x - 3, 18, 6, 14)
    _door(pen, 0, 16, 24)


def _battlements(pen: Pen, x0: float, x1: float, y: float, tint: float = 1.0) -> None:
    count = max(2, int((x1 - x0) // 9))
    step = (x1 - x0) / (2 * count - 1)
    for i in range(count):
        pen.box(x0 + 2 * i * step, y - 1, x0 + (2 * i + 1) * step, y + 6, tint=tint, plump=1.5)


def _flag(pen: Pen, x: float, y: float) -> None:
    pen.line([(x, y), (x, y + 15)], 1.4, DARK, plump=0)
    pen.shape([(x, y + 15), (x + 12, y + 11.5), (x, y + 7)], (214, 60, 58), plump=1)


def _turret(pen: Pen, x: float, half: float, high: float, top: float, trim: Colour | None) -> None:
    """A round tower; a roof of colour `trim` on it, or battlements."""
    pen.box(x - half, 0, x + half, high, plump=0.7 * half)
    pen.box(x - half - 2, high - 6, x + half + 2, high, tint=0.95, plump=2)
    if trim:
        pen.shape([(x - half - 4, high), (x, top), (x + half + 4, high)], trim, plump=0.6 * half)
        _flag(pen, x, top - 1)
    else:
        _battlements(pen, x - half - 2, x + half + 2, high)
    pen.pane(x - 2.5, high - 22, 5, 10)


def _gate(pen: Pen, x: float, wide: float, high: float) -> None:
    half = wide / 2
    pen.disc(x, high, half + 3, tint=0.8, plump=0)
    pen.box(x - half - 3, 0, x + half + 3, high, tint=0.8, plump=0)
    pen.disc(x, high, half, DARK, plump=0)
    pen.box(x - half, 0, x + half, high, DARK, plump=0)
    for n in range(1, 4):
        gx = x - half + n * wide / 4
        pen.line([(gx, 2), (gx, high + half - 2)], 0.9, STONE, plump=0)


def _courses(pen: Pen, spots: tuple[tuple[float, float], ...]) -> None:
    """Stones that show in a wall."""
    for x, y in spots:
        pen.line([(x - 3, y), (x + 3, y)], 1.1, tint=0.84, plump=0)


def _castle(pen: Pen) -> None:
    _turret(pen, 0, 14, 78, 104, SLATE)
    pen.box(-38, 0, 38, 50, tint=0.9, plump=3)
    _battlements(pen, -36, 36, 50, 0.9)
    _turret(pen, -44, 14, 66, 96, SLATE)
    _turret(pen, 44, 14, 66, 96, SLATE)
    _gate(pen, 0, 18, 20)
    _courses(pen, ((-22, 36), (-14, 30), (20, 38), (26, 28), (-48, 22), (-40, 34), (44, 24),
                   (40, 14), (-22, 14), (24, 12)))


def _palace(pen: Pen) -> None:
    """A fairy-tale castle of slender towers."""
    for x, half, high, top in ((-14, 10, 78, 105), (22, 8, 70, 96)):
        _turret(pen, x, half, high, top, (64, 92, 150))
    pen.box(-36, 0, 40, 58, tint=0.94, plump=3)
    pen.shape([(-40, 58), (-26, 78), (10, 78), (24, 58)], (64, 92, 150), plump=4)
    for x, half, high, top in ((-46, 9, 56, 88), (46, 10, 62, 98)):
        _turret(pen, x, half, high, top, (64, 92, 150))
    pen.box(-8, 0, 24, 44, tint=1.04, plump=3)
    pen.shape([(-11, 44), (8, 62), (27, 44)], (64, 92, 150), plump=3)
    _gate(pen, 8, 15, 18)
    for x in (-28, -16, 30):
        pen.pane(x, 28, 5, 11)
    pen.disc(8, 38, 3.4, LIT if pen.look.night else CREAM, plump=0)


def _fortress(pen: Pen) -> None:
    """A keep behind a wall with a gate house."""
    pen.box(-26, 0, 26, 92, tint=0.95, plump=5)
    pen.box(-29, 86, 29, 93, tint=0.9, plump=1)
    _battlements(pen, -29, 29, 93)
    _flag(pen, 0, 96)
    for x in (-14, 8):
        pen.pane(x, 66, 6, 12)
    pen.box(-58, 0, 58, 38, tint=0.88, plump=3)
    _battlements(pen, -58, 58, 38, 0.88)
    for x in (-52, 52):
        _turret(pen, x, 10, 52, 0, None)
    pen.box(-17, 0, 17, 48, tint=1.02, plump=3)
    _battlements(pen, -17, 17, 48)
    _gate(pen, 0, 16, 16)
    _courses(pen, ((-34, 24), (-28, 14), (32, 26), (36, 12), (-8, 40), (8, 36), (-18, 60),
                   (18, 58), (2, 80)))


def _tower(pen: Pen) -> None:
    """A square tower with battlements."""
    pen.box(-20, 0, 20, 92, plump=3)
    pen.box(8, 0, 20, 92, tint=pen.right, plump=2)
    pen.box(-26, 88, 26, 104, tint=0.95, plump=2)
    _battlements(pen, -26, 26, 104, 0.95)
    for y in (34, 64):
        pen.window(-11, y, 9, 15, PALE_STONE)
    _door(pen, -6, 14, 16)
    _courses(pen, ((-14, 28), (-2, 56), (-14, 60), (-12, 82), (2, 84), (14, 40), (14, 70)))


def _round_tower(pen: Pen) -> None:
    """A round tower under a pointed roof."""
    pen.shape([(-21, 0), (-18, 84), (18, 84), (21, 0)], plump=11)
    pen.shape([(-18, 78), (-24, 88), (24, 88), (18, 78)], tint=0.9, plump=3)
    pen.shape([(-28, 87), (0, 118), (28, 87)], TILES, plump=9)
    for x, y in ((-3, 60), (5, 32), (-3, 92)):
        pen.pane(x - 3, y, 6, 12) if y < 90 else pen.disc(x + 3, y + 3, 3, DARK, plump=0)
    _door(pen, -4, 14, 16)
    _courses(pen, ((-11, 44), (-8, 74), (10, 52), (9, 20), (-12, 24), (8, 72)))


def _clock_tower(pen: Pen) -> None:
    """A bell tower with a clock and a steep roof."""
    pen.box(-17, 0, 17, 78, plump=4)
    pen.box(-21, 40, 21, 44, PALE_STONE, plump=1)
    pen.box(-20, 76, 20, 98, tint=0.96, plump=3)
    pen.box(-23, 95, 23, 99, PALE_STONE, plump=1)
    pen.shape([(-23, 98), (-8, 116), (8, 116), (23, 98)], SLATE, plump=4)
    pen.disc(0, 86, 8.4, CREAM)
    pen.disc(0, 86, 6.6, LIT if pen.look.night else (250, 248, 240), plump=0)
    pen.line([(0, 86), (0, 91)], 1.3, DARK, plump=0)
    pen.line([(0, 86), (3.4, 84.5)], 1.3, DARK, plump=0)
    pen.window(-5, 52, 10, 16, PALE_STONE)
    _door(pen, 0, 14, 18)


def _ringed(pen: Pen, low: float, high: float, foot: float, neck: float, bands: int) -> None:
    """The round body of a lighthouse, in turns in its own colour and in another."""
    other = STONE if min(pen.look.colour) > 200 else (250, 246, 238)
    for n in range(bands):
        a, b = (low + (high - low) * (n + part) / bands for part in (0, 1))
        wa, wb = (foot + (neck - foot) * (y - low) / (high - low) for y in (a, b))
        pen.shape([(-wa, a), (-wb, b), (wb, b), (wa, a)], None if n % 2 == 0 else other, plump=0)
    middle = (foot + neck) / 2
    half = pen.light[:, :]
    rows, columns = half.shape
    x = (np.arange(columns) / pen.k - WIDE / 2) / middle * -pen.look.lit
    shade = np.clip(-0.72 * x, -0.8, 0.45)
    y = HIGH - BELOW - np.arange(rows)[:, None] / pen.k
    inside = (y > low) & (y < high) & (np.abs(x) < foot / middle)
    half[:] = np.where(inside & (pen.cover > 0), shade, half)


def _lantern(pen: Pen, y: float, half: float) -> None:
    """The lamp of a lighthouse between its gallery and its roof."""
    pen.box(-half - 6, y, half + 6, y + 4, DARK, plump=1)
    for x in (-half - 5, half + 5):
        pen.line([(x, y + 4), (x, y + 10)], 1.2, DARK, plump=0)
    pen.line([(-half - 5, y + 10), (half + 5, y + 10)], 1.2, DARK, plump=0)
    pen.box(-half, y + 4, half, y + 19, LIT, plump=0, glows=True)
    for x in (-half, 0, half):
        pen.line([(x, y + 4), (x, y + 19)], 1.3, DARK, plump=0)
    pen.disc(0, y + 19, half + 3, (176, 52, 50), tall=0.9)
    pen.box(-half - 4, y + 17.5, half + 4, y + 20, DARK, plump=0)
    pen.line([(0, y + 28), (0, y + 34)], 1.5, DARK, plump=0)


def _lighthouse(pen: Pen) -> None:
    pen.disc(0, -1, 30, STONE, tall=0.26)
    _ringed(pen, 0, 84, 20, 12, 5)
    _lantern(pen, 84, 8)
    for y in (30, 62):
        pen.pane(-2.5, y, 5, 9)
    _door(pen, 0, 10, 13)


def _lighthouse_and_house(pen: Pen) -> None:
    pen.box(8, 0, 56, 28, CREAM, pen.right, 3)
    _roof(pen, 2, 62, 27, 46, TILES)
    pen.window(26, 9, 9, 11)
    pen.window(42, 9, 9, 11)
    _ringed(pen, 0, 82, 17, 11, 3)
    _lantern(pen, 82, 7.5)
    pen.pane(-2.5, 34, 5, 9)
    _door(pen, -2, 10, 13)


def _plain_lighthouse(pen: Pen) -> None:
    """A slender lighthouse on a rock."""
    pen.blob([(-46, -4), (-36, 12), (-16, 18), (14, 17), (34, 12), (46, -4)], STONE, 0.9, 8)
    pen.blob([(-26, 0), (-14, 14), (4, 8), (0, -2)], STONE, 1.08, 4)
    _ringed(pen, 12, 88, 14, 9.5, 1)
    for y in (20, 52):
        pen.box(-13 + y / 20, y, 13 - y / 20, y + 10, CREAM, plump=4)
    _lantern(pen, 87, 7)
    pen.pane(-2.5, 70, 5, 8)


def _sails(pen: Pen, x: float, y: float, reach: float, turn: float, lattice: bool = True) -> None:
    """Four sails of a windmill around (x, y). turn: of the first one, in degrees."""
    for quarter in range(4):
        angle = np.radians(turn + 90 * quarter)
        along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle),
                                                                            np.cos(angle)])

        def at(far: float, side: float, along=along, across=across) -> tuple[float, float]:
            px, py = np.array([x, y]) + along * far * reach + across * side * reach
            return float(px), float(py)

        if lattice:
            pen.shape([at(0.24, 0.02), at(0.24, 0.26), at(0.98, 0.26), at(0.98, 0.02)],
                      (250, 242, 222), plump=1.5)
            for far in (0.42, 0.6, 0.78):
                pen.line([at(far, 0.02), at(far, 0.26)], 0.8, PLANK, plump=0)
        else:
            pen.shape([at(0.1, 0), at(0.9, 0.24), at(0.98, 0)], (250, 242, 222), plump=1.5)
        pen.line([at(0, 0), at(1, 0)], 2.6, DARK_WOOD, plump=0)
    pen.disc(x, y, 4, DARK_WOOD)


def _windmill(pen: Pen) -> None:
    pen.shape([(-27, 0), (-15, 66), (15, 66), (27, 0)], plump=9)
    pen.disc(0, 66, 16.5, WOOD, tall=0.9)
    pen.box(-24, 26, 24, 29, DARK_WOOD, plump=1)
    for x in (-22, -11, 11, 22):
        pen.line([(x, 29), (x, 35)], 1.2, DARK_WOOD, plump=0)
    pen.line([(-24, 35), (24, 35)], 1.3, DARK_WOOD, plump=0)
    _door(pen, 0, 13, 15)
    pen.window(-5, 42, 10, 12)
    _sails(pen, 0, 68, 45, 38)


def _tower_mill(pen: Pen) -> None:
    """A white-sailed mill with a pointed cap, on a stone foot."""
    pen.shape([(-21, 0), (-18, 62), (18, 62), (21, 0)], plump=10)
    pen.shape([(-22, 0), (-21, 16), (21, 16), (22, 0)], STONE, plump=8)
    pen.shape([(-23, 60), (0, 92), (23, 60)], THATCH, plump=7)
    _door(pen, 0, 12, 16)
    for x in (-10, 4):
        pen.pane(x, 40, 6, 10)
    _sails(pen, 0, 66, 46, 14, lattice=False)


def _post_mill(pen: Pen) -> None:
    """A wooden mill that stands on a trestle."""
    for x in (-24, 24):
        pen.line([(x, 0), (0.2 * x, 26)], 5, DARK_WOOD)
    pen.line([(0, 0), (0, 28)], 6, DARK_WOOD)
    pen.line([(-20, 6), (20, 6)], 3, DARK_WOOD)
    pen.box(-26, 24, 26, 70, plump=4)
    for x in range(-20, 26, 8):
        pen.line([(x, 25), (x, 69)], 0.9, tint=0.86, plump=0)
    pen.shape([(-31, 68), (0, 94), (31, 68)], SLATE, plump=5)
    pen.window(-14, 32, 9, 12)
    pen.window(6, 32, 9, 12)
    _sails(pen, 0, 66, 45, 60)


def _tent(pen: Pen) -> None:
    """A ridge tent with an open front, its side to the right."""
    pen.line([(-20, 62), (-62, -2)], 1.2, CREAM, plump=0)
    pen.line([(40, 58), (64, -3)], 1.2, CREAM, plump=0)
    pen.shape([(-18, 64), (40, 58), (58, 0), (14, 0)], tint=pen.right, plump=4)
    pen.line([(11, 61), (36, 0)], 1.1, tint=0.66, plump=0)
    pen.shape([(-54, 0), (-18, 64), (16, 0)], plump=4)
    night = pen.look.night
    pen.shape([(-35, 0), (-18, 46), (-1, 0)], LIT if night else DARK, plump=0, glows=night)
    pen.shape([(-35, 0), (-18, 46), (-27, 0)], tint=1.12, plump=1)
    pen.shape([(-1, 0), (-18, 46), (-8, 0)], tint=0.86, plump=1)
    pen.line([(-18, 62), (-18, 68)], 2.4, WOOD)


def _dome_tent(pen: Pen) -> None:
    """A round tent with crossed poles."""
    outline = [(-52, 0), (-46, 26), (-28, 48), (0, 56), (28, 48), (46, 26), (52, 0)]
    pen.shape([*rounded(outline, closed=False)], plump=14)
    for side in (-1, 1):
        pen.line([(-50 * side, 2), (-24 * side, 42), (14 * side, 54), (40 * side, 34)], 2.2,
                 tint=0.68, plump=0, smooth=True)
    night = pen.look.night
    pen.shape([*rounded([(-17, 0), (-12, 24), (0, 36), (12, 24), (17, 0)], closed=False)],
              LIT if night else DARK, plump=0, glows=night)
    pen.shape([(-17, 0), (-12, 24), (0, 36), (-6, 14), (-9, 0)], tint=1.14, plump=1)
    pen.line([(-52, 0), (52, 0)], 2.4, tint=0.7, plump=0)


def _tepee(pen: Pen) -> None:
    """A pointed tent whose poles meet at its top."""
    for x in (-9, -3, 5, 10):
        pen.line([(-0.6 * x, 80), (x, 104)], 2.2, DARK_WOOD, plump=0)
    pen.shape([(-44, 0), (-4, 88), (4, 88), (44, 0)], plump=12)
    pen.shape([(-38, 14), (-33, 25), (33, 25), (38, 14)], CREAM, plump=0)
    for x in range(-30, 34, 10):
        pen.shape([(x - 5, 15), (x, 24), (x + 5, 15)], tint=0.8, plump=0)
    night = pen.look.night
    pen.shape([(-11, 0), (0, 46), (11, 0)], LIT if night else DARK, plump=0, glows=night)
    pen.shape([(-11, 0), (0, 46), (-4, 0)], tint=1.12, plump=0)


DRAWINGS = {
    "house": (_cottage, _townhouse, _barn, _cabin),
    "houses": (_village, _street, _hamlet),
    "church": (_church, _chapel, _dome_church),
    "castle": (_castle, _palace, _fortress),
    "tower": (_tower, _round_tower, _clock_tower),
    "lighthouse": (_lighthouse, _lighthouse_and_house, _plain_lighthouse),
    "windmill": (_windmill, _tower_mill, _post_mill),
    "tent": (_tent, _dome_tent, _tepee),
}
