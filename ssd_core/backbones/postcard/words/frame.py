"""The shapes of postcards: how many cells each has, and where horizon, things and lights are."""

from __future__ import annotations

from dataclasses import dataclass

CELL = 16  # side of a token's cell, px; things move by whole cells
PLACES = ("left", "middle", "right")


@dataclass(frozen=True)
class Frame:
    """A shape. Places are tuples in the order of PLACES; everything is in cells except `horizon`.

    horizon: the row where the ground starts, px; never on the border of cells. centres: the columns
    of the places. feet: the rows on which things stand. roam: how far a thing may stand from its
    place. light, balloon: the rows of a light's centre and of a balloon's top. clouds: the upper
    edges of clouds, px.
    """

    name: str
    columns: int
    rows: int
    horizon: int
    centres: tuple[int, int, int]
    feet: tuple[int, int, int]
    roam: int
    light: int
    balloon: int
    clouds: tuple[int, int, int]

    @property
    def width(self) -> int:
        """In px."""
        return self.columns * CELL

    @property
    def height(self) -> int:
        """In px."""
        return self.rows * CELL

    @property
    def light_y(self) -> int:
        """The row of a light's centre, px."""
        return self.light * CELL

    @property
    def lift(self) -> float:
        """How high ridges are, compared with those of the square."""
        return min(1.0, self.horizon / 212)

    def x_of(self, place: str) -> int:
        """The column of a place's centre, px."""
        return self.centres[PLACES.index(place)] * CELL

    def feet_of(self, place: str) -> int:
        """The row on which a thing at a place stands, px."""
        return self.feet[PLACES.index(place)] * CELL


SQUARE = Frame("square", 24, 24, 212, (4, 12, 20), (19, 19, 19), 1, 4, 1, (0, 24, 46))
WIDE = Frame("wide", 32, 18, 148, (5, 16, 27), (14, 14, 14), 1, 3, 1, (-8, 8, 24))
TALL = Frame("tall", 18, 32, 260, (4, 9, 14), (22, 26, 22), 0, 5, 2, (-4, 86, 108))
FRAMES = (SQUARE, WIDE, TALL)


def frame_of(height: int, width: int) -> Frame | None:
    """The shape of pictures of so many px; None if there is none."""
    return next((frame for frame in FRAMES if (frame.height, frame.width) == (height, width)), None)
