"""Methods with a knob for the cells of a pass, which affects speed but not quality.

While it is open, `choice.py` sets it: to the cheapest of `sizes` on this machine if no picture
depends on it, else to the default of the type of device, so that a seed keeps its picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from ...model.grid import Grid
from .base import Method

if TYPE_CHECKING:
    from typing_extensions import Self


class Paced(Method):
    """A method with such a knob; the value None leaves it open."""

    paced: ClassVar[str]  # the knob's name

    @property
    def size(self) -> int | None:
        """The knob's value."""
        value: int | None = getattr(self, self.paced)
        return value

    def sized(self, size: int | None) -> Self:
        """A copy of the method with this value of the knob."""
        return replace(self, **{self.paced: size})

    def sizes(self, grid: Grid) -> Sequence[int]:
        """The values to choose from, in ascending order."""
        raise NotImplementedError

    def default_size(self, grid: Grid, device: str) -> int:
        """The knob's default on this type of device."""
        raise NotImplementedError

    def for_device(self, grid: Grid, device: str) -> Self:
        if self.size is not None:
            return self
        return self.sized(min(self.default_size(grid, device), grid.slots))

    def width(self, grid: Grid) -> int:
        """The knob's value; while it is open, a graphics card's default."""
        return self.size or self.default_size(grid, "cuda")

    def usual_width(self, grid: Grid) -> int:
        """The cells of a typical pass."""
        return self.widest_pass(grid)

    def longest(self, grid: Grid) -> int:
        """The passes of a whole picture if each made only one cell final, or one cell of each row.
        """
        return grid.slots
