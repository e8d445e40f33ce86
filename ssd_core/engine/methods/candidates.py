"""The candidates of a tree: tokens sampled from several drafts of the same cells."""

from __future__ import annotations

import torch

from ...model.noise import Purpose
from ...model.sampling import choose
from ..state import DecodeState
from ..tree import Tree, rounds_of


def after(slots: torch.Tensor, count: int) -> torch.Tensor:
    """[B, count]: the slots behind slots [B]."""
    return slots[:, None] + torch.arange(1, count + 1, device=slots.device)


def sampled(state: DecodeState, frontier: torch.Tensor,
            draft_probs: torch.Tensor) -> torch.Tensor:
    """Tokens [B, siblings, n], each from its own q; draft_probs [B, siblings, n, V]."""
    slots = after(frontier, draft_probs.shape[2])
    return torch.stack([
        choose(draft_probs[:, i], state.noise.exponential(Purpose.DRAFT, round_, slots))
        for i, round_ in enumerate(rounds_of(state, draft_probs.shape[1]))], dim=1)


def laid_out(tree: Tree, root: torch.Tensor, drafts: torch.Tensor) -> torch.Tensor:
    """Candidates [B, nodes]: root [B, 1], and for each node its sibling's token at its depth."""
    rank, depth = (torch.tensor(each[1:], device=root.device) for each in (tree.rank, tree.depth))
    return torch.cat((root, drafts[:, rank, depth - 1]), dim=1)


class VerticalDrafts:
    """The vertical heads' estimates from the last `rows` rows, made once when a cell is final."""

    def __init__(self, state: DecodeState, rows: int, first: int) -> None:
        self.state, self.rows, self.span = state, rows, rows * state.grid.width
        shape = (len(state.prompts), rows, self.span, state.backbone.hidden_size)
        self.held = torch.zeros(shape, dtype=state.hidden.dtype, device=state.hidden.device)
        above = state.noise.slots[max(first - self.span + 1, 0) : first + 1]
        self.note(above.expand(state.pictures, -1))

    def note(self, slots: torch.Tensor) -> None:
        """Draft from slots [B, n] up to the frontier; their tokens and states are final."""
        self.frontier = slots[:, -1:]
        if not self.rows:
            return
        hidden, embedding = self.state.hidden_at(slots), self.state.embedding_at(slots)
        heads = self.state.draft_heads.vertical[: self.rows]
        made = torch.stack([head(hidden, embedding) for head in heads], dim=2)
        place = slots.repeat(self.state.branches, 1) % self.span
        self.held[self._every(place), :, place] = made.to(self.held.dtype)

    def estimates(self, rows: int, ahead: torch.Tensor, along: torch.Tensor) -> torch.Tensor:
        """h [rows, n, d] of slots `ahead` from `rows` rows above; `along` where there is none."""
        source = ahead - rows * self.state.grid.width
        there = (source >= 0) & (source <= self.frontier)
        place = source.clamp(min=0).repeat(self.state.branches, 1) % self.span
        held = self.held[self._every(place), rows - 1, place]
        return torch.where(there.repeat(self.state.branches, 1)[..., None], held, along)

    def _every(self, place: torch.Tensor) -> torch.Tensor:
        return torch.arange(len(place), device=place.device)[:, None]
