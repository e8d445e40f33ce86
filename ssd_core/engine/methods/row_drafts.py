"""Uses of the row drafter: drafting cells, and carrying a changed token over to the next cells.

`exact` samples a whole window of cells at once, although the same pass may change a cell's
neighbours. The backbone sees such a change only in the next pass, so changes would travel one cell
per pass. The row drafter estimates their effect: the difference between its estimates with the new
and with the old neighbours is added to the backbone's hidden state.
"""

from __future__ import annotations

import torch

from ...model.sampling import sample
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
        self.around = around.clamp(max=state.slots)  # for the slot after the picture
        self.sequence_slots = slots.repeat(state.branches, 1)
        self.seq_index = torch.arange(len(self.sequence_slots), device=slots.device)[:, None]

    def estimate(self, known: torch.Tensor) -> torch.Tensor:
        """h [N, n, d], estimated from the known [B, n, 7] bool neighbours."""
        state, flat = self.state, self.around.flatten(1)
        shape = (*self.sequence_slots.shape, self.around.shape[2], -1)
        return self.drafter(state.hidden_at(flat).view(shape),
                            state.embedding_at(flat).view(shape), state.expand_branches(known))

    def set_hidden(self, hidden: torch.Tensor) -> None:
        """Set the hidden states of the slots to h [N, n, d]."""
        self.state.hidden[self.seq_index, self.sequence_slots] = hidden.to(self.state.hidden.dtype)


def draft_by_row(state: DecodeState, slots: torch.Tensor, noise: torch.Tensor | None,
                 known: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """Draft consecutive slots [B, n] with the row drafter; write tokens and their estimates of h.

    noise: the result of `drafting_noise`. known: [B] int64, how many of the first slots keep their
    token and h. Returns draft_probs [B, n, V]. In the first sweep the drafted slots do not see each
    other; each further sweep sees the tokens and estimates of the last.
    """
    drafting, first = Drafting(state, slots), slots[:, :1] + known[:, None]
    drafted, unknown = slots >= first, drafting.around >= first[..., None]
    exact = ~drafted.repeat(state.branches, 1)[..., None]
    for sweep in range(SWEEPS):
        estimate = drafting.estimate(drafting.inside if sweep else drafting.inside & ~unknown)
        drafting.set_hidden(torch.where(exact, state.hidden_at(slots), estimate))
        logits = state.backbone.logits(state.hidden_at(slots))
        draft_probs = state.probs(logits, slots, temperature)
        tokens = torch.where(drafted, picked(draft_probs, noise), state.codes(slots))
        state.write(slots, tokens)
    return draft_probs


def carry_over(state: DecodeState, slots: torch.Tensor, tokens: torch.Tensor,
               known: torch.Tensor, noise: torch.Tensor) -> None:
    """Write tokens [B, n] to slots [B, n], and update h and the tokens that are not known.

    Before, the slots have the tokens that were fed and the h that the pass computed. known: [B, n]
    bool, which of `tokens` stay. noise: E [B, n, V].
    """
    drafting, exact = Drafting(state, slots), state.hidden_at(slots)
    before = drafting.estimate(drafting.inside)
    state.write(slots, tokens)
    drafting.set_hidden(exact + drafting.estimate(drafting.inside) - before)
    likely = (sample(state.target_probs(slots), noise) if state.rule is None
              else state.judge(state.sampled_at, slots))
    state.write(slots, torch.where(known, tokens, likely))
