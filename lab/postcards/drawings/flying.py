"""What is in the sky: hot-air balloons and birds."""

from __future__ import annotations

from ..pen import CREAM, DARK, PLANK, WOOD, Pen, rounded


def _envelope(pen: Pen, half: float = 44) -> None:
    """The balloon itself, round above and narrow at its mouth."""
    pen.blob([(0, 118), (-0.68 * half, 109), (-half, 82), (-0.82 * half, 56), (-0.42 * half, 34),
              (-9, 22), (9, 22), (0.42 * half, 34), (0.82 * half, 56), (half, 82),
              (0.68 * half, 109)], plump=22)


def _gore(pen: Pen, share: float, width: float, tint: float, trim=None, half: float = 44) -> None:
    """A stripe from the top to the mouth at a share of the half width."""
    shape = ((118, 0.1), (109, 0.68), (82, 1.0), (56, 0.82), (34, 0.42), (22, 0.2))
    left = [(half * w * (share - width), y) for y, w in shape]
    right = [(half * w * (share + width), y) for y, w in shape]
    light = pen.light.copy()
    pen.shape([*rounded(left, closed=False), *rounded(right, closed=False)[::-1]], trim, tint, 0)
    pen.light[:] = light


def _ropes(pen: Pen) -> None:
    for x in (-9, 0, 9):
        pen.line([(x, 23), (0.8 * x, 6)], 1, DARK, plump=0)


def _basket(pen: Pen) -> None:
    pen.shape([(-10, 8), (-8, -7), (8, -7), (10, 8)], WOOD, plump=3)
    for y in (-3, 1, 5):
        pen.line([(-8.5, y), (8.5, y)], 0.9, PLANK, plump=0)
    pen.line([(-10.5, 8), (10.5, 8)], 3, PLANK, plump=1)


def _striped_balloon(pen: Pen) -> None:
    _ropes(pen)
    _envelope(pen)
    for share in (-0.78, -0.28, 0.28, 0.78):
        _gore(pen, share, 0.12 if abs(share) > 0.5 else 0.16, 0.84)
    pen.line([(-10, 23), (10, 23)], 3, tint=0.66, plump=0)
    _basket(pen)


def _banded_balloon(pen: Pen) -> None:
    """A balloon with a pale band and pennants."""
    _ropes(pen)
    _envelope(pen)
    light = pen.light.copy()
    pen.shape([*rounded([(-43, 74), (0, 68), (43, 74)], closed=False),
               *rounded([(43, 88), (0, 82), (-43, 88)], closed=False)], CREAM, plump=0)
    for n in range(-3, 4):
        x, y = 12.4 * n, 75 + 0.0036 * (12.4 * n) ** 2
        pen.disc(x, y, 3.2, tint=0.9, plump=0)
    pen.line([(-33, 52), (0, 47), (33, 52)], 2.4, CREAM, plump=0, smooth=True)
    pen.light[:] = light
    pen.line([(-10, 23), (10, 23)], 3, tint=0.66, plump=0)
    _basket(pen)


def _two_toned_balloon(pen: Pen) -> None:
    """A balloon whose stripes are pale in turns."""
    _ropes(pen)
    _envelope(pen, 41)
    for share in (-0.62, 0.0, 0.62):
        _gore(pen, share, 0.15, 1.0, CREAM, 41)
    pen.line([(-10, 23), (10, 23)], 3, tint=0.66, plump=0)
    _basket(pen)


def _beak(pen: Pen, x: float, y: float, size: float = 1.0) -> None:
    pen.shape([(x, y + 3 * size), (x + 11 * size, y), (x, y - 3 * size)], (246, 166, 40), plump=1)


def _wing(pen: Pen, front: list[tuple[float, float]], rear: list[tuple[float, float]],
          tint: float) -> None:
    """A wing between its bent front edge and the tips of its feathers, from its end inwards."""
    notched = [rear[0]]
    for (x0, y0), (x1, y1) in zip(rear, rear[1:], strict=False):
        notched += [(0.62 * x0 + 0.38 * x1, 0.62 * y0 + 0.38 * y1 + 5), (x1, y1)]
    pen.shape([*rounded(front, closed=False), *notched], tint=tint, plump=4)
    for n, (x, y) in enumerate(rear[1:-1]):
        fx, fy = front[len(front) - 2 - n * (len(front) - 2) // max(1, len(rear) - 3)]
        pen.line([(x, y + 3), (0.55 * x + 0.45 * fx, 0.55 * y + 0.45 * fy)], 1, tint=tint * 0.84,
                 plump=0)


def _bird_body(pen: Pen, y: float) -> None:
    """Tail, body and head of a bird that flies to the right."""
    pen.shape([(-26, y + 6), (-58, y + 14), (-50, y + 5), (-58, y - 4), (-26, y - 4)], tint=0.84,
              plump=3)
    pen.blob([(-36, y + 1), (-12, y + 11), (18, y + 12), (36, y + 8), (32, y - 4), (8, y - 11),
              (-18, y - 7)], plump=9)
    pen.blob([(-10, y - 5), (12, y + 1), (30, y - 1), (22, y - 7), (6, y - 10)], CREAM, plump=3)
    pen.disc(35, y + 11, 11.5)
    _beak(pen, 44, y + 11)
    pen.disc(39, y + 14, 2.2, DARK, plump=0)
    pen.disc(39.7, y + 14.7, 0.7, (255, 255, 255), plump=0)


def _gliding_bird(pen: Pen) -> None:
    """A bird with both wings raised."""
    _wing(pen, [(20, 60), (26, 82), (20, 102), (8, 114)], [(8, 114), (4, 98), (2, 82), (6, 64)],
          0.76)
    _bird_body(pen, 52)
    _wing(pen, [(14, 60), (8, 84), (-14, 106), (-46, 116)],
          [(-46, 116), (-40, 100), (-30, 88), (-24, 74), (-14, 60)], 1.05)


def _flapping_bird(pen: Pen) -> None:
    """A bird with its wings down in a beat."""
    _wing(pen, [(26, 76), (38, 62), (42, 46), (38, 26)], [(38, 26), (28, 36), (18, 46), (8, 66)],
          0.74)
    _bird_body(pen, 72)
    _wing(pen, [(16, 78), (10, 54), (-8, 30), (-36, 14)],
          [(-36, 14), (-38, 30), (-34, 44), (-28, 58), (-18, 74)], 1.05)


def _soaring_bird(pen: Pen) -> None:
    """A bird seen from the front, its wings wide."""
    for side in (-1, 1):
        front = rounded([(4 * side, 66), (22 * side, 84), (44 * side, 84), (63 * side, 66)],
                        closed=False)
        rear = [(50 * side, 68), (46 * side, 62), (38 * side, 66), (32 * side, 59),
                (24 * side, 63), (16 * side, 55), (6 * side, 58)]
        pen.shape([*front, *rear], tint=pen.left if side < 0 else pen.right, plump=4)
    pen.shape([(-10, 50), (-14, 34), (0, 39), (14, 34), (10, 50)], tint=0.84, plump=2)
    pen.blob([(-9, 70), (0, 76), (9, 70), (11, 56), (0, 45), (-11, 56)], plump=7)
    pen.blob([(-6, 62), (6, 62), (5, 52), (0, 48), (-5, 52)], CREAM, plump=3)
    pen.disc(0, 77, 10)
    for x in (-4, 4):
        pen.disc(x, 80, 1.9, DARK, plump=0)
    pen.shape([(-3, 77), (3, 77), (0, 69)], (246, 166, 40), plump=1)


def _gull(pen: Pen, x: float, y: float, size: float, turn: float = 1.0) -> None:
    """A small bird far away, as a bent pair of wings."""
    for side in (-1, 1):
        far = 26 * size * side
        pen.shape([*rounded([(x, y + 2 * size), (x + 0.45 * far, y + 15 * size * turn),
                             (x + far, y + 4 * size * turn)], closed=False),
                   *rounded([(x + far, y + 4 * size * turn), (x + 0.5 * far, y + 4 * size * turn),
                             (x, y - 9 * size)], closed=False)],
                  tint=(1.04, 0.86)[side > 0], plump=2)
    pen.blob([(x - 6 * size, y - 1), (x, y + 6 * size), (x + 6 * size, y - 1), (x, y - 10 * size)],
             tint=0.95, plump=3)


def _flock(pen: Pen) -> None:
    """Five birds one behind the other."""
    for x, y, size in ((2, 58, 1.15), (-36, 80, 0.95), (38, 78, 0.95), (-41, 38, 0.84),
                       (42, 36, 0.84)):
        _gull(pen, x, y, size)


def _three_gulls(pen: Pen) -> None:
    for x, y, size in ((-28, 72, 1.35), (32, 88, 1.1), (24, 42, 1.25)):
        _gull(pen, x, y, size)


def _wedge(pen: Pen) -> None:
    """Birds that fly in a wedge."""
    for x, y in ((34, 66), (8, 82), (8, 50), (-18, 98), (-18, 34), (-44, 84), (-42, 50)):
        _gull(pen, x, y, 0.76)


DRAWINGS = {
    "balloon": (_striped_balloon, _banded_balloon, _two_toned_balloon),
    "bird": (_gliding_bird, _flapping_bird, _soaring_bird),
    "birds": (_flock, _three_gulls, _wedge),
}
