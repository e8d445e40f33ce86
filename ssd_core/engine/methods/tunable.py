"""Methods with a knob for the cells of a pass, which affects speed but not quality.

While it is open, `tuning.py` sets it: to the cheapest of `windows` on this machine if no picture
depends on it, else to the default of the type of device, so that a seed keeps its picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ...model.grid import Grid
from ...model.knobs import derived
from .base import Method

if TYPE_CHECKING:
    from typing_extensions import Self


class Tunable(Method):
    """A method with such a knob; the value None leaves it open."""

    window_knob: ClassVar[str]  # the knob's name

    @property
    def window(self) -> int | None:
        """The knob's value."""
        value: int | None = getattr(self, self.window_knob)
        return value

    def with_window(self, window: int | None) -> Self:
        """A copy of the method with this value of the knob."""
        return derived(self, **{self.window_knob: window})

    def windows(self, grid: Grid) -> Sequence[int]:
        """The values to choose from, in ascending order."""
        raise NotImplementedError

    def default_window(self, grid: Grid, device: str) -> int:
        """The knob's default on this type of device."""
        raise NotImplementedError

    def for_device(self, grid: Grid, device: str) -> Self:
        if self.window is not None:
            return self
        return self.with_window(min(self.default_window(grid, device), grid.slots))

    def window_on(self, grid: Grid) -> int:
        """The knob's value; while it is open, a graphics card's default."""
        return self.window or self.default_window(grid, "cuda")

    def typical_pass_width(self, grid: Grid) -> int:
        """The cells of a typical pass."""
        return self.pass_width(grid)

    def slowest_passes(self, grid: Grid) -> int:
        """The passes of a whole picture if each made only one cell final, or one cell of each row.
        """
        return grid.slots
