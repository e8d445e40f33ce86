"""The candidates of a tree: tokens sampled from several drafts of the same cells."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...model.noise import Purpose
from ...model.sampling import choose
from ..events import Pass
from ..state import DecodeState
from ..tree import Fed, Tree, feed_tree, rounds_of


class TreePass:
    """One pass that verifies a tree of candidates behind each picture's frontier.

    frontier [B] int64: the last final slot, whose token is the tree's root.
    """

    def __init__(self, state: DecodeState, tree: Tree, frontier: torch.Tensor) -> None:
        self.state, self.tree, self.frontier = state, tree, frontier
        self.deepest = max(tree.depth)

    @property
    def root(self) -> torch.Tensor:
        """[B, 1]: the slots of the roots."""
        return self.frontier[:, None]

    @property
    def ahead(self) -> torch.Tensor:
        """[B, depth]: the slots that the tree drafts; one behind the picture where it ends."""
        return after(self.frontier, self.deepest).clamp(max=self.state.slots)

    def feed(self, candidates: torch.Tensor) -> Fed:
        """One forward pass over candidates [B, nodes]."""
        self.state.clock.lap("draft")
        return feed_tree(self.state, self.tree, self.frontier, candidates)

    def advance(self, accepted: torch.Tensor) -> Pass:
        """Move the frontier on by the accepted drafts [B] and the token after them."""
        state, start, last = self.state, self.frontier, self.state.slots - 1
        state.stats.finished_early += start >= last
        reached = start + accepted
        self.frontier = (reached + 1).clamp(max=last)
        state.front = self.frontier.tolist()
        lowest = min(state.front)
        state.final = state.slots if lowest == last else lowest + 1
        state.clock.lap("verify")
        count = min(self.deepest + 1, state.slots)
        shown = start.clamp(max=state.slots - count)[:, None] + state.noise.slots[:count]
        return state.passed_at(shown, shown <= reached[:, None], shown <= reached[:, None])


def sliding_trees(state: DecodeState, first: int, tree: Tree) -> Iterator[TreePass]:
    """A pass after the other from slot `first` on, until every picture is whole.

    The caller feeds each tree, writes what was accepted, and calls `TreePass.advance`.
    """
    state.choose(first)
    state.final = first + 1
    frontier = torch.full((state.pictures,), first, device=state.tokens.device)
    state.front = [first] * state.pictures
    while state.final < state.slots:
        step = TreePass(state, tree, frontier)
        yield step
        frontier = step.frontier


def after(slots: torch.Tensor, count: int) -> torch.Tensor:
    """[B, count]: the slots behind slots [B]."""
    return slots[:, None] + torch.arange(1, count + 1, device=slots.device)


def sampled(state: DecodeState, frontier: torch.Tensor,
            draft_probs: torch.Tensor) -> torch.Tensor:
    """Tokens [B, siblings, n], each from its own q; draft_probs [B, siblings, n, V]."""
    slots = after(frontier, draft_probs.shape[2])
    return torch.stack([
        choose(draft_probs[:, i], state.noise.drawing(Purpose.DRAFT, round_, slots))
        for i, round_ in enumerate(rounds_of(state, draft_probs.shape[1]))], dim=1)


def laid_out(tree: Tree, root: torch.Tensor, drafts: torch.Tensor) -> torch.Tensor:
    """Candidates [B, nodes]: root [B, 1], and for each node its sibling's token at its depth."""
    shape = tree.on(root.device)
    return torch.cat((root, drafts[:, shape.rank[1:], shape.depth[1:] - 1]), dim=1)


class VerticalDrafts:
    """The vertical heads' estimates from the last `rows` rows, made once when a cell is final."""

    def __init__(self, state: DecodeState, rows: int, first: int) -> None:
        self.state, self.rows, self.span = state, rows, rows * state.grid.width
        shape = (len(state.prompts), rows, self.span, state.backbone.hidden_size)
        self.held = torch.zeros(shape, dtype=state.hidden.dtype, device=state.hidden.device)
        above = state.noise.slots[max(first - self.span + 1, 0) : first + 1]
        self.note(above.expand(state.pictures, -1))
        self.begun = False

    def follow(self, frontier: torch.Tensor, most: int) -> None:
        """Draft from what became final since the last call, at most `most` slots a picture."""
        if self.begun and self.rows:
            self.note(after(self.frontier[:, 0], most).clamp(max=frontier[:, None]))
        self.begun = True

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
