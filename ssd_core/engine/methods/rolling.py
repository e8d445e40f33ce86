"""A budget of passes: the window of `exact` moves on by a schedule.

Every pass samples the window's cells again with the seed's own noise, as in `exact`, and what did
not change is final. The schedule says how many cells are due after each pass. A picture that is
ahead of it goes on as `exact` does, so that passes which easy cells save are left for hard ones.
One that is behind keeps tokens that `exact` would replace: at first only those that are nearly as
probable as their replacements, and the further behind it is, the less probable ones. Where the
window has no room to wait (`Schedule.must`), tokens become final as they were fed, so that their
keys and values are right.

A picture that converges sooner ends sooner; with a budget of a pass per cell it is AR's.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from ...model.grid import Grid
from ...model.knobs import derived
from ..events import Pass, Plan
from ..region import Region
from ..state import DecodeState
from .base import drafted_by, knob, make_plan, require
from .exact import FirstGuess, resample
from .parent import guessed_by
from .window import NARROW_CELLS, Windowed, cheapest_window, sliding_windows

if TYPE_CHECKING:
    from typing_extensions import Self

# The share of its replacement's probability that a token needs to stay when a picture is as far
# behind as it may be (compared in lab/benchmarks/results/README.md).
LEAST_SHARE = 0.01
# AR's passes divided by the first are the budget; with a narrow window, which repairs less in a
# pass, by the second.
FEWER, NARROW_FEWER = USUAL_FEWER = 8.0, 6.0


@dataclass(frozen=True)
class Schedule:
    """The schedule of one picture: how many cells after the first are to be final after a pass.

    cells: the slots of its masked cells. slack: how many cells it may be behind.
    """

    cells: list[int]
    passes: int
    slack: int

    @property
    def last(self) -> int:
        return len(self.cells) - 1

    @property
    def most(self) -> int:
        """The most cells that a pass must move on."""
        return -(-(self.last + self.slack) // self.passes)

    def due(self, done: int) -> int:
        """The cells that should be final after so many passes."""
        return min(-(-self.last * done // self.passes), self.last)

    def must(self, done: int) -> int:
        """The cells that have to be final by then, whatever their tokens."""
        return min(max(-(-(self.last + self.slack) * done // self.passes) - self.slack, 0),
                   self.last)


class Schedules:
    """The schedules of a run's pictures as tables on its device, so that no pass waits for the
    host's numbers.
    """

    def __init__(self, each: Sequence[Schedule], pictures: int, slots: int,
                 device: torch.device) -> None:
        """each: of the regions, which the pictures of the run share in turn. slots: of a picture.
        """
        own = torch.arange(pictures) % len(each)
        self.most = max(schedule.slack for schedule in each)
        self.passes = max(schedule.passes for schedule in each) + 1
        passes = range(self.passes + 1)
        due = torch.tensor([[schedule.due(done) for schedule in each] for done in passes])
        must = torch.tensor([[schedule.must(done) for schedule in each] for done in passes])
        room = (due - must).clamp(min=1)[..., None]
        shares = LEAST_SHARE ** (torch.arange(self.most + 1, dtype=torch.double) / room)
        shares[..., 0] = math.inf
        deadlines = [torch.tensor(schedule.cells)[left]
                     for schedule, left in zip(each, must.T, strict=True)]
        # A frontier may be the slot behind the last one, where rows end with a token.
        cells = torch.stack([torch.bincount(torch.tensor(schedule.cells), minlength=slots + 1)
                             for schedule in each])
        self.due, self.shares = due[:, own].to(device), shares.float()[:, own].to(device)
        self.deadlines = torch.stack(deadlines, 1)[:, own].to(device)
        self.final = (cells.cumsum(-1) - 1)[own].to(device)  # the cells up to a slot, less one

    def share(self, frontier: torch.Tensor, done: int) -> torch.Tensor:
        """[B]: the share of its replacement's probability that a token needs to stay; inf: none
        stays. frontier [B]: the last final slot after `done` passes.
        """
        done = min(done, self.passes)
        behind = self.due[done] - self.final.gather(1, frontier[:, None])[:, 0]
        return self.shares[done].gather(1, behind.clamp(0, self.most)[:, None])[:, 0]

    def deadline(self, done: int) -> torch.Tensor:
        """[B]: the slot up to which tokens are final after `done` passes, whatever they are."""
        return self.deadlines[min(done, self.passes)]


@dataclass(frozen=True)
class Rolling(Windowed):
    """Takes at most `budget` passes for a whole picture, fewer where rows are kept."""

    budget: int | None = knob(
        None, "Most forward passes for a whole picture: a smaller budget is faster and repairs "
              "less.", low=2, visibility="basic",
        none_means="AR's passes divided by the knob fewer")
    fewer: float | None = knob(
        None, "A picture takes at most AR's number of passes divided by this. Not used if a budget "
              "is set.", low=1, high=1000, step=0.5, visibility="basic",
        none_means="8, or 6 on a graphics card on which wide passes are slow")
    drafter: str = drafted_by()
    guess: str = guessed_by()
    name: ClassVar[str] = "rolling"
    uses_heads: ClassVar[bool] = True
    guarantee: ClassVar[str] = "approximate"

    def guarantee_on(self, grid: Grid) -> str:
        return "identical" if self.passes_over(grid.cells, grid) >= grid.cells - 1 else (
            self.guarantee)

    def passes_over(self, cells: int, grid: Grid) -> int:
        """The most passes after the prefill for so many cells: their share of the budget."""
        share = -(-(cells - 1) * (self.most_passes(grid) - 1) // max(grid.cells - 1, 1))
        return min(share, cells - 1)

    def least(self, grid: Grid) -> int:
        """The cells that a pass must advance on average to keep the budget."""
        return max(1, -(-(grid.cells - 1) // (self.most_passes(grid) - 1)))

    def reach(self, grid: Grid) -> int:
        """The most slots that these cells take, including row ends."""
        least = self.least(grid)
        return min(least + grid.row_end * -(-least // grid.columns), grid.slots)

    def most_passes(self, grid: Grid) -> int:
        """The most passes for a whole picture."""
        return self.budget or max(2, int(grid.cells / self.times_fewer))

    @property
    def times_fewer(self) -> float:
        return self.fewer or FEWER

    def windows(self, grid: Grid) -> Sequence[int]:
        least = self.least_window(grid)
        return [least, *(size for size in super().windows(grid) if size > least)]

    def least_window(self, grid: Grid) -> int:
        """The width at which a cell is sampled in at least three passes before it is left behind.
        """
        return min(3 * self.reach(grid), grid.slots)

    def default_window(self, grid: Grid, device: str, cells: int | None = None) -> int:
        return max(cheapest_window(grid, device, cells), self.least_window(grid))

    def for_device(self, grid: Grid, device: str, cells: int | None = None) -> Self:
        """With its window and its share of AR's passes: the picture depends on both."""
        fewer = NARROW_FEWER if cells == NARROW_CELLS and self.window is None else FEWER
        chosen = self if self.fewer or self.budget else derived(self, fewer=fewer)
        return super(Rolling, chosen).for_device(grid, device, cells)

    def plan(self, place: Grid | Region) -> Plan:
        region = Region.of(place)
        grid, reach = region.grid, self.reach(region.grid)
        require(((not self.window or self.window <= grid.slots,
                  f"window {self.window}: the picture has {grid.slots} cells"),
                 (not self.window or self.window >= reach,
                  f"window {self.window}: a budget of {self.most_passes(grid)} passes moves on "
                  f"{reach} cells a pass; raise the window or the budget")))
        return make_plan(region, None, 1 + self.passes_over(region.cells, grid), None)

    def schedules(self, region: Region) -> list[Schedule]:
        """The schedule of each picture. It may be as far behind as the window holds cells, except
        for those that a pass has to move on.
        """
        grid, window = region.grid, self.window_on(region.grid)
        most = window - grid.row_end * -(-window // grid.width)  # cells of any window
        inside = (bisect_right(own, own[0] + window - 1) for own in region.each)
        return [Schedule(own, max(self.passes_over(len(own), grid), 1),
                     max(min(count, most) - self.least(grid), 0))
                for own, count in zip(region.each, inside, strict=True)]

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        most, by_row = self.window_on(state.grid), self.needs_row_drafter()
        guess, schedules = FirstGuess(state, by_row), self.schedules(state.region)
        exact = self.guarantee_on(state.grid) == "identical"
        least = max(each.most for each in schedules)
        tables = None if exact else Schedules(schedules, state.pictures, state.grid.slots,
                                              state.tokens.device)
        for done, window in enumerate(sliding_windows(state, most, least)):
            sampled = guess.guessed.device  # slots before these have been sampled
            guess.fill(window)
            window.feed()
            if tables is None:
                yield from window.advance(*resample(window, by_row))
                continue
            share = tables.share(window.frontier, done)
            share = torch.where(window.next_slots < sampled[:, None], share[:, None], math.inf)
            yield from window.advance(*resample(window, by_row, tables.deadline(done + 1), share))
