"""1-D multi-token prediction: SSD's horizontal heads along the raster (paper, section 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from ....model.grid import Grid
from ...events import PAPER_AR_PASSES, Pass, Plan
from ...region import Region
from ...state import DecodeState
from ..base import (
    Method,
    cells_drafted,
    group_slots,
    horizontal_states,
    make_plan,
    sample_draft,
    verification_rounds,
)
from ..groups import group_passes, groups


@dataclass(frozen=True)
class MTP(Method):
    """Drafts k_h tokens at a time and repairs each independently in `rounds` passes."""

    k_h: int = cells_drafted()
    rounds: int = verification_rounds(1)
    name: ClassVar[str] = "mtp"
    uses_heads: ClassVar[bool] = True

    def heads_needed(self, grid: Grid) -> tuple[int, int]:
        return self.k_h, 0

    def guarantee_on(self, grid: Grid) -> str:
        """With a round for every draft, the last round verifies each draft after final tokens."""
        return "same distribution" if self.rounds >= self.k_h else self.guarantee

    def plan(self, place: Grid | Region) -> Plan:
        region = Region.of(place)
        # The prefill adds one pass; the last group needs no commit.
        passes = group_passes(region, region.first, region.grid.slots, self.k_h, self.rounds)
        return make_plan(region, passes, passes, self._paper_passes(region.grid))

    def _paper_passes(self, grid: Grid) -> int:
        """The paper's count, which reproduces its Table 1.

        Where rows end with a token, each row is drafted separately. For Lumina-mGPT the guidance
        branches count separately, as in its count for AR.
        """
        rows, cells = (grid.rows, grid.columns) if grid.row_end else (1, grid.cells)
        each = 1 + math.ceil((cells - 1) / self.k_h) * (self.rounds + 1) + grid.row_end
        branches = PAPER_AR_PASSES.get(grid, grid.slots) // grid.slots
        return branches * rows * each

    def pass_width(self, grid: Grid) -> int:
        return group_slots(grid, self.k_h)

    def draft(self, state: DecodeState, begin: int, end: int) -> torch.Tensor:
        """Write drafts after slot `begin` and return their draft_probs [B, end - begin - 1, V]."""
        estimate = horizontal_states(state, begin, end)
        draft_probs = state.draft_probs(estimate, slice(begin + 1, end))
        sample_draft(state, begin + 1, draft_probs)
        return draft_probs

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        yield from groups(state, state.region.first, state.slots, self.k_h, self.rounds,
                          self.draft, "residual", commit_to=None)
