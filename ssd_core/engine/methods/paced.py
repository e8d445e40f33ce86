"""Methods of which one knob decides how fast they are, not how good: the machine's pace sets it.

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
    """A method with such a knob; None leaves it open."""

    paced: ClassVar[str]  # the knob's name

    @property
    def size(self) -> int | None:
        """The knob's value."""
        value: int | None = getattr(self, self.paced)
        return value

    def sized(self, size: int | None) -> Paced:
        """The same method with this value of the knob."""
        return replace(self, **{self.paced: size})

    @property
    def is_open(self) -> bool:
        """Whether the machine's pace may set the knob."""
        return self.size is None

    def sizes(self, grid: Grid) -> Sequence[int]:
        """The values to choose from, in ascending order."""
        raise NotImplementedError

    def width(self, grid: Grid, device: str) -> int:
        """The value on this type of device: the knob's, or what stands in while it is open."""
        raise NotImplementedError

    def usual_width(self, grid: Grid, device: str) -> int:
        """Cells of a usual pass."""
        return self.widest_pass(grid, device)

    def longest(self, grid: Grid) -> int:
        """Passes of a whole picture if each of them settled a single cell, or one of each row."""
        return grid.slots
