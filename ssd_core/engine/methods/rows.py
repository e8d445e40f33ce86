"""SSD's schedule without heads or training: drafts come from the row above."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from ...model.grid import Grid
from ..events import Plan
from ..region import Region
from ..state import DecodeState
from .base import knob, one_hot, sample_draft
from .ssd import Drafted, RowSchedule


@dataclass(frozen=True)
class Rows(RowSchedule):
    """Drafts cell (y, x) from cell (y - 1, x); in row 0 from the last sampled cell to the left."""

    draft: str = knob("distribution", "Draft from the distribution of the cell above, or copy its "
                                      "token.", choices=("distribution", "copy"))
    name: ClassVar[str] = "rows"

    def plan(self, place: Grid | Region) -> Plan:
        return replace(super().plan(place), paper_passes=None)

    def draft_group(self, state: DecodeState, begin: int, end: int) -> torch.Tensor:
        return self._drafted(state, slice(begin, begin + 1), begin + 1, end)

    def draft_rows(self, state: DecodeState, drafted: Drafted) -> torch.Tensor:
        top = drafted.rows.start * state.grid.width
        above = slice(top - state.grid.width, top)
        return self._drafted(state, above, drafted.start, drafted.stop)

    def _drafted(self, state: DecodeState, source: slice, start: int, stop: int) -> torch.Tensor:
        """Draft the slots start..stop-1 from those in `source`, which repeat behind themselves."""
        tokens = repeated(state.codes(source), source, start, stop)
        if self.draft == "copy":
            state.write(slice(start, stop), tokens)
            return one_hot(state, tokens)
        draft_probs = repeated(state.target_probs(source), source, start, stop)
        sample_draft(state, start, draft_probs, self.acceptance)
        return draft_probs


def repeated(values: torch.Tensor, source: slice, start: int, stop: int) -> torch.Tensor:
    """values [B, m, ...] of the slots in `source`, repeated behind them, at slots start..stop-1."""
    times = -(-(stop - source.stop) // values.shape[1])
    repeats = values.repeat(1, times, *[1] * (values.dim() - 2))
    return repeats[:, start - source.stop : stop - source.stop]
