"""What methods do with the row drafter: draft cells, and carry a changed token over to the next.

`exact` chooses a whole window of cells at once, each beside neighbours that the same pass may just
have changed. What such a change does to the cells behind it shows only after the next pass, so a
change travels one cell a pass. The row drafter foretells it: the difference between its estimates
with the new neighbours and with the old ones is added to the backbone's own state.
"""

from __future__ import annotations

import torch

from ...model.sampling import choose
from ..row_drafter import SWEEPS, RowDrafter, neighbours
from ..state import DecodeState
from .base import picked


class Drafting:
    """The row drafter at slots [B, n] of a run."""

    def __init__(self, state: DecodeState, slots: torch.Tensor) -> None:
        assert state.heads is not None and state.heads.row is not None
        self.state, self.slots = state, slots
        self.drafter: RowDrafter = state.heads.row
        around, self.inside = neighbours(state.grid, slots)
        self.around = around.clamp(max=state.slots)  # of the slot behind the picture
        self.sequence_slots = slots.repeat(state.branches, 1)
        self.seq_index = torch.arange(len(self.sequence_slots), device=slots.device)[:, None]

    def estimate(self, known: torch.Tensor) -> torch.Tensor:
        """h [rows, n, d], from the neighbours [B, n, 7] that are known."""
        state, flat = self.state, self.around.flatten(1)
        shape = (*self.sequence_slots.shape, self.around.shape[2], -1)
        return self.drafter(state.hidden_at(flat).view(shape),
                            state.embedding_at(flat).view(shape), state.expand_branches(known))

    def set_hidden(self, hidden: torch.Tensor) -> None:
        """Make h [rows, n, d] the state of the slots."""
        self.state.hidden[self.seq_index, self.sequence_slots] = hidden.to(self.state.hidden.dtype)


def draft_by_row(state: DecodeState, slots: torch.Tensor, noise: torch.Tensor | None,
                 held: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """Draft consecutive slots [B, n] with the row drafter; write tokens and their estimates of h.

    noise: as `drafting_noise` returns it. held: [B] int64, how many slots at the front keep the
    token and the h that they have. Returns draft_probs [B, n, V]. In the first sweep the slots
    drafted here are unknown to each other; every further sweep sees what the last one left.
    """
    drafting, first = Drafting(state, slots), slots[:, :1] + held[:, None]
    drafted, unknown = slots >= first, drafting.around >= first[..., None]
    exact = ~drafted.repeat(state.branches, 1)[..., None]
    for sweep in range(SWEEPS):
        estimate = drafting.estimate(drafting.inside if sweep else drafting.inside & ~unknown)
        drafting.set_hidden(torch.where(exact, state.hidden_at(slots), estimate))
        logits = state.backbone.logits(state.hidden_at(slots))
        draft_probs = state.probs(logits, slots, temperature)
        tokens = torch.where(drafted, picked(draft_probs, noise), state.codes_at(slots))
        state.write_at(slots, tokens)
    return draft_probs


def carry_over(state: DecodeState, slots: torch.Tensor, tokens: torch.Tensor,
               settled: torch.Tensor, noise: torch.Tensor) -> None:
    """Write tokens [B, n] to slots [B, n], and the h and tokens that follow from their change.

    The slots hold the tokens that were fed, and the h that the pass returned. settled: [B, n] bool,
    whose token stays as given. noise: E [B, n, V].
    """
    drafting, exact = Drafting(state, slots), state.hidden_at(slots)
    before = drafting.estimate(drafting.inside)
    state.write_at(slots, tokens)
    drafting.set_hidden(exact + drafting.estimate(drafting.inside) - before)
    likely = choose(state.target_probs_at(slots), noise)
    state.write_at(slots, torch.where(settled, tokens, likely))
