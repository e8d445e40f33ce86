"""SSD's schedule without heads or training: drafts come from the row above."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from ...model.grid import Grid
from ..plan import Plan
from ..state import DecodeState
from .base import one_hot, sample_draft
from .knobs import knob
from .ssd import RowSchedule


@dataclass(frozen=True)
class Rows(RowSchedule):
    """Drafts cell (y, x) from cell (y - 1, x); in row 0 from the last sampled cell to the left."""

    draft: str = knob("distribution", "Draft from the distribution of the cell above, or copy its "
                                      "token.", choices=("distribution", "copy"))
    name: ClassVar[str] = "rows"

    def plan(self, grid: Grid, first_row: int = 0) -> Plan:
        return replace(super().plan(grid, first_row), paper_passes=None)

    def draft_group(self, state: DecodeState, begin: int, end: int) -> torch.Tensor:
        return self._drafted(state, slice(begin, begin + 1), begin + 1, end - begin - 1)

    def draft_rows(self, state: DecodeState, start: int, rows: int) -> torch.Tensor:
        return self._drafted(state, slice(start - state.grid.width, start), start, rows)

    def _drafted(self, state: DecodeState, source: slice, start: int, times: int) -> torch.Tensor:
        """Draft the slots from `start` on by repeating the slots in `source` `times` times."""
        tokens = state.codes(source.start, source.stop).repeat(1, times)
        if self.draft == "copy":
            state.write(start, tokens)
            return one_hot(state, tokens)
        draft_probs = state.target_probs(source.start, source.stop).repeat(1, times, 1)
        sample_draft(state, start, draft_probs, self.acceptance)
        return draft_probs
