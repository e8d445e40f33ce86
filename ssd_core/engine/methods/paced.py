"""Methods with a knob that affects speed but not quality, so the machine's pace may set it.

`choice.py` chooses among `sizes` by milliseconds of a pass over `usual_width` cells, and by the
passes that the sizes take (usual.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from ...model.grid import Grid
from .base import Method


class Paced(Method):
    """A method with such a knob; the value None leaves it open."""

    paced: ClassVar[str]  # the knob's name

    @property
    def size(self) -> int | None:
        """The knob's value."""
        value: int | None = getattr(self, self.paced)
        return value

    def sized(self, size: int | None) -> Paced:
        """A copy of the method with this value of the knob."""
        return replace(self, **{self.paced: size})

    @property
    def is_open(self) -> bool:
        """Whether the machine's pace may set the knob."""
        return self.size is None

    def sizes(self, grid: Grid) -> Sequence[int]:
        """The values to choose from, in ascending order."""
        raise NotImplementedError

    def width(self, grid: Grid, device: str) -> int:
        """The knob's value, or the default on this type of device while it is open."""
        raise NotImplementedError

    def usual_width(self, grid: Grid, device: str) -> int:
        """The cells of a typical pass."""
        return self.widest_pass(grid, device)

    def longest(self, grid: Grid) -> int:
        """The passes of a whole picture if each made only one cell final, or one cell of each row.
        """
        return grid.slots
