"""Speculative decoding as in Leviathan et al.: stops at the first rejection; lossless.

This is "Spec. decoding" in Table 4 of the SSD paper: SSD's heads with the classical acceptance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from ....model.grid import Grid
from ....model.noise import Purpose
from ....model.sampling import sample
from ... import accept
from ...events import Pass
from ...state import DecodeState
from ..base import Method, cells_drafted, group_slots, knob
from ..window import horizontal_estimates, sliding_windows


@dataclass(frozen=True)
class Strict(Method):
    """Drafts k_h tokens per pass, by horizontal heads or (from row 1 on) by the vertical head."""

    drafts: str = knob("horizontal", "Draft along the row, or from the row above.",
                       choices=("horizontal", "vertical"))
    k_h: int = cells_drafted()
    name: ClassVar[str] = "strict"
    uses_heads: ClassVar[bool] = True
    guarantee: ClassVar[str] = "same distribution"

    def heads_needed(self, grid: Grid) -> tuple[int, int]:
        return self.k_h, int(self.drafts == "vertical")

    def pass_width(self, grid: Grid) -> int:
        return group_slots(grid, self.k_h)

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        """Draft k_h tokens from q, verify them with p, stop at the first rejection."""
        for window in sliding_windows(state, self.k_h + 1):
            drafted, next_slots = window.drafted, window.next_slots
            q = self._draft_probs(state, drafted, window.frontier[:, None])  # [B, n - 1, V]
            window.write(drafted, sample(q, state.noise.fresh(Purpose.DRAFT, state.passes,
                                                                drafted)))
            x = state.codes(drafted)
            window.feed()
            p = state.target_probs(next_slots)  # [B, n, V]
            u = state.noise.uniform(Purpose.ACCEPT, state.passes, drafted)
            u = u.masked_fill(window.is_final(drafted), 0.0)
            tokens, accepted = accept.strict(
                x, q, p, u, state.noise.fresh(Purpose.REPAIR, state.passes, next_slots))
            index = state.noise.slots[: next_slots.shape[1]]
            window.write(next_slots, torch.where(index == accepted[:, None], tokens,
                                            state.codes(next_slots)))
            yield from window.advance(accepted, tokens[:, :-1] == x)

    def _draft_probs(self, state: DecodeState, slots: torch.Tensor,
                     frontier: torch.Tensor) -> torch.Tensor:
        """q [B, n, V] of slots [B, n], drafted from the frontier [B, 1] or the row above."""
        estimate = horizontal_estimates(state, slots, frontier, self.k_h)
        if self.drafts == "vertical":
            above = slots - state.grid.width
            source = above.clamp(min=0)
            head = state.draft_heads.vertical[0]
            vertical = head(state.hidden_at(source), state.embedding_at(source))
            by_row = ((above >= 0) & (above <= frontier)).repeat(state.branches, 1)
            estimate = torch.where(by_row[..., None], vertical, estimate)
        return state.draft_probs(estimate, slots)
