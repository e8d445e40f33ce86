"""Plain autoregression: one forward pass per cell. The baseline, on the same engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...model.grid import Grid
from ..events import Pass
from ..plan import PAPER_AR_PASSES, Plan
from ..state import DecodeState
from .base import Method, group_slots, make_plan


@dataclass(frozen=True)
class AR(Method):
    """Sample a cell, feed it, move to the next."""

    name: ClassVar[str] = "ar"
    verdict: ClassVar[str] = "identical"

    def plan(self, grid: Grid, first_row: int = 0) -> Plan:
        passes = (grid.rows - first_row) * grid.columns
        return make_plan(grid, first_row, passes, passes, PAPER_AR_PASSES.get(grid))

    def widest_pass(self, grid: Grid) -> int:
        return group_slots(grid, 0)

    def steps(self, state: DecodeState, first_row: int) -> Iterator[Pass]:
        grid = state.grid
        state.noise.hold()
        for cell in range(first_row * grid.columns, grid.cells):
            slot, after = grid.slot(cell), grid.slot(cell + 1)
            state.choose(slot)
            state.clock.lap("verify")
            if cell + 1 < grid.cells:
                state.feed(after)
                state.clock.lap("commit")
                yield state.passed("commit", 0, slot, after)
            state.final = after
