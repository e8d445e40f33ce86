"""Plain autoregression (SSD Eq. 1), one forward pass per cell: the baseline on the same engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...model.grid import Grid
from ..events import PAPER_AR_PASSES, Pass, Plan
from ..region import Region
from ..state import DecodeState
from .base import Method, group_slots, make_plan


@dataclass(frozen=True)
class AR(Method):
    """Sample a cell from p given all cells before it (SSD Eq. 1), feed it, move to the next."""

    name: ClassVar[str] = "ar"
    guarantee: ClassVar[str] = "identical"
    takes_words: ClassVar[bool] = True

    def plan(self, place: Grid | Region) -> Plan:
        region = Region.of(place)
        return make_plan(region, region.cells, region.cells, PAPER_AR_PASSES.get(region.grid))

    def pass_width(self, grid: Grid) -> int:
        return group_slots(grid, 0)

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        region = state.region
        state.noise.hold()
        for slot, after in zip(region.slots, [*region.slots[1:], region.end], strict=True):
            state.sample(slot)
            state.clock.lap("verify")
            if slot < region.last:
                state.feed(after)
                state.clock.lap("commit")
                yield state.record_pass("commit", 0, slot, after)
            state.final = after
