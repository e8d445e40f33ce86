"""Jacobi decoding: AR's picture as the fixed point of repeated passes over a block of cells.

Each pass samples every cell of the block again, given the tokens of the previous pass (Santilli et
al., 2305.10427). The random numbers of a cell are fixed, so the fixed point is unique and equal to
AR's sample. `exact` is the same iteration with a sliding window and better first drafts; `jacobi`
is its baseline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from ....model.grid import Grid
from ...events import Pass
from ...state import DecodeState
from ..groups import groups
from ..parent import guessed, guessed_by
from ..window import Windowed


@dataclass(frozen=True)
class Jacobi(Windowed):
    """Iterates a block of `window` cells until nothing changes, then moves to the next block."""

    guess: str = guessed_by()
    name: ClassVar[str] = "jacobi"
    guarantee: ClassVar[str] = "identical"

    def pass_width(self, grid: Grid) -> int:
        window = self.window_on(grid)
        row_ends = -(-window // grid.columns) * grid.row_end
        return min(window + row_ends, grid.slots)

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        drafted = self.window_on(state.grid) - 1
        yield from groups(state, state.region.first, state.slots, drafted, drafted,
                          repeated, "coupled", commit_to=None)


def repeated(state: DecodeState, begin: int, end: int) -> torch.Tensor:
    """Write the parent's tokens, or that of slot `begin`, to all slots after it.

    Returns a buffer for p [B, n, V].
    """
    count = end - begin - 1
    slots, known = state.slots_between(begin + 1, end), state.slots_between(begin + 1, begin + 2)
    usual = state.codes(slice(begin, begin + 1)).expand(-1, count)
    state.write(slice(begin + 1, end), guessed(state, slots, known[:, 0], usual))
    return torch.empty(state.pictures, count, state.backbone.codes, device=state.tokens.device)
