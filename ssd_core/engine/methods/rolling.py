"""A budget of passes: the window of `exact` moves on by a minimum number of cells per pass.

Every pass samples the window's cells again with the seed's own noise, as in `exact`. Cells that
leave the window before they converge keep their fed tokens, so that their keys and values are
right. A picture that converges sooner ends sooner; with a budget of a pass per cell it is AR's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...model.grid import Grid
from ..events import Pass
from ..plan import Plan
from ..region import Region
from ..state import DecodeState
from .base import make_plan, require
from .exact import FirstGuess, resample
from .knobs import drafted_by, knob
from .parent import guessed_by
from .window import Windowed, cheapest_window, sliding_windows


@dataclass(frozen=True)
class Rolling(Windowed):
    """Takes at most `budget` passes for a whole picture, fewer where rows are kept."""

    budget: int | None = knob(
        None, "Most forward passes for a whole picture: a smaller budget is faster and repairs "
              "less.", low=2, visibility="basic",
        none_means="AR's passes divided by the knob fewer")
    fewer: float = knob(8.0, "A picture takes at most AR's number of passes divided by this. Not "
                             "used if a budget is set.", low=1, high=1000, step=0.5,
                        visibility="basic")
    drafter: str = drafted_by()
    guess: str = guessed_by()
    name: ClassVar[str] = "rolling"
    uses_heads: ClassVar[bool] = True
    guarantee: ClassVar[str] = "approximate"

    def guarantee_on(self, grid: Grid) -> str:
        return "identical" if self.least(grid) == 1 else self.guarantee

    def least(self, grid: Grid) -> int:
        """The cells that every pass must advance to keep the budget."""
        return max(1, -(-(grid.cells - 1) // (self.most_passes(grid) - 1)))

    def reach(self, grid: Grid) -> int:
        """The most slots that these cells take, including row ends."""
        least = self.least(grid)
        return min(least + grid.row_end * -(-least // grid.columns), grid.slots)

    def most_passes(self, grid: Grid) -> int:
        """The most passes for a whole picture."""
        return self.budget or max(2, int(grid.cells / self.fewer))

    def windows(self, grid: Grid) -> Sequence[int]:
        least = self.least_window(grid)
        return [least, *(size for size in super().windows(grid) if size > least)]

    def least_window(self, grid: Grid) -> int:
        """The width at which a cell is sampled in at least three passes before it is left behind.
        """
        return min(3 * self.reach(grid), grid.slots)

    def default_window(self, grid: Grid, device: str) -> int:
        return max(cheapest_window(grid, device), self.least_window(grid))

    def plan(self, place: Grid | Region) -> Plan:
        region = Region.of(place)
        grid, reach = region.grid, self.reach(region.grid)
        require(((not self.window or self.window <= grid.slots,
                  f"window {self.window}: the picture has {grid.slots} cells"),
                 (not self.window or self.window >= reach,
                  f"window {self.window}: a budget of {self.most_passes(grid)} passes moves on "
                  f"{reach} cells a pass; raise the window or the budget")))
        return make_plan(region, None, 1 + -(-(region.cells - 1) // self.least(grid)), None)

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        most, by_row = self.window_on(state.grid), self.needs_row_drafter()
        guess, least = FirstGuess(state, by_row), self.least(state.grid)
        for window in sliding_windows(state, most, least):
            guess.fill(window)
            window.feed()
            yield from window.advance(*resample(window, least, by_row))
