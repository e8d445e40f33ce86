"""The candidates of a tree: tokens sampled from several drafts of the same cells."""

from __future__ import annotations

from collections.abc import Iterator
from operator import sub

import torch

from ....model.noise import Purpose
from ....model.sampling import sample
from ...events import Pass
from ...state import DecodeState
from ..window import Window, at_end, sample_first
from .tree import Fed, Tree, feed_tree, rounds_of


class TreePass:
    """A pass that verifies a tree of candidates after each picture's frontier."""

    def __init__(self, state: DecodeState, tree: Tree) -> None:
        self.state, self.tree, self.deepest = state, tree, max(tree.depth)

    @property
    def frontier(self) -> torch.Tensor:
        """[B] int64: the last final slot, whose token is the tree's root."""
        return self.state.frontier.device

    @property
    def root(self) -> torch.Tensor:
        """[B, 1]: the slot of each root."""
        return self.frontier[:, None]

    @property
    def next_slots(self) -> torch.Tensor:
        """[B, depth]: the slots that the tree drafts, at most one slot past the picture's end."""
        return after(self.frontier, self.deepest).clamp(max=self.state.slots)

    def feed(self, candidates: torch.Tensor) -> Fed:
        """Run one forward pass over candidates [B, nodes]."""
        self.state.clock.lap("draft")
        return feed_tree(self.state, self.tree, candidates)

    @property
    def over_known(self) -> bool:
        """Whether the next masked cell of any picture lies behind all that the tree could draft."""
        state, region = self.state, self.state.region
        return region.scattered and any(region.ahead(i, slot, 1) - slot > self.deepest
                                        for i, slot in enumerate(state.frontier.host))

    def pass_over(self) -> Iterator[Pass]:
        """Feed the known cells after the frontiers in one pass, and sample the masked ones next."""
        state = self.state
        window = Window(state, most=1)
        window.feed()
        reached = state.cells_on(self.frontier, 1)[:, None]
        noise = state.noise.fresh(Purpose.REPAIR, state.passes, reached)
        state.write(reached, sample(state.target_probs(reached), noise))
        unchanged = torch.ones_like(window.drafted, dtype=torch.bool)
        yield from window.advance(reached[:, 0] - 1 - window.start.device, unchanged)
        state.frontier = state.frontier.at_most(state.region.end - 1)

    def advance(self, accepted: torch.Tensor) -> Pass:
        """Move the frontier past the accepted drafts [B] and the token after them."""
        state, start, last = self.state, self.frontier, self.state.region.end - 1
        state.stats.finished_early += start >= last
        reached = start + accepted
        state.reach(at_end(state, (reached + 1).clamp(max=last)))
        state.clock.lap("verify")
        count = min(self.deepest + 1, state.slots)
        shown = start.clamp(max=state.slots - count)[:, None] + state.noise.slots[:count]
        return state.record_pass_at(shown, shown <= reached[:, None], shown <= reached[:, None])


def sliding_trees(state: DecodeState, tree: Tree) -> Iterator[TreePass]:
    """Yield passes until every picture is complete.

    The caller feeds each tree, writes the accepted tokens, and calls `TreePass.advance`; or calls
    `TreePass.pass_over` where `over_known` is true.
    """
    sample_first(state)
    state.final = min(state.frontier.host) + 1
    while state.final < state.region.end:
        yield TreePass(state, tree)


def after(slots: torch.Tensor, count: int) -> torch.Tensor:
    """[B, count]: the next `count` slots after slots [B]."""
    return slots[:, None] + torch.arange(1, count + 1, device=slots.device)


def sampled(state: DecodeState, frontier: torch.Tensor,
            draft_probs: torch.Tensor) -> torch.Tensor:
    """Tokens [B, siblings, n], each sampled from its own q; draft_probs [B, siblings, n, V]."""
    slots = after(frontier, draft_probs.shape[2])
    return torch.stack([
        sample(draft_probs[:, i], state.noise.fresh(Purpose.DRAFT, round_, slots))
        for i, round_ in enumerate(rounds_of(state, draft_probs.shape[1]))], dim=1)


def laid_out(tree: Tree, root: torch.Tensor, drafts: torch.Tensor) -> torch.Tensor:
    """Candidates [B, nodes]: root [B, 1], then each node's token by its rank and depth."""
    shape = tree.on(root.device)
    return torch.cat((root, drafts[:, shape.rank[1:], shape.depth[1:] - 1]), dim=1)


class VerticalDrafts:
    """The vertical heads' estimates from the last `rows` rows, computed once a cell is final."""

    def __init__(self, state: DecodeState, rows: int, first: int) -> None:
        self.state, self.rows, self.span = state, rows, rows * state.grid.width
        shape = (len(state.prompts), rows, self.span, state.backbone.hidden_size)
        self.cached = torch.zeros(shape, dtype=state.hidden.dtype, device=state.hidden.device)
        above = state.noise.slots[max(first - self.span + 1, 0) : first + 1]
        self.note(above.expand(state.pictures, -1))
        self.begun, self.front = False, state.frontier.host

    def follow(self, frontier: torch.Tensor, most: int) -> None:
        """Draft from the slots that became final since the last call.

        most: their number per picture; known cells that were skipped come on top.
        """
        if self.begun and self.rows:
            moved = map(sub, self.state.frontier.host, self.front)
            most = max(most, *moved)
            self.note(after(self.frontier[:, 0], most).clamp(max=frontier[:, None]))
        self.begun, self.front = True, self.state.frontier.host

    def note(self, slots: torch.Tensor) -> None:
        """Draft from slots [B, n] up to the frontier, whose tokens and hidden states are final."""
        self.frontier = slots[:, -1:]
        if not self.rows:
            return
        hidden, embedding = self.state.hidden_at(slots), self.state.embedding_at(slots)
        heads = self.state.draft_heads.vertical[: self.rows]
        estimates = torch.stack([head(hidden, embedding) for head in heads], dim=2)
        index = slots.repeat(self.state.branches, 1) % self.span
        self.cached[self._sequences(index), :, index] = estimates.to(self.cached.dtype)

    def estimates(self, rows: int, slots: torch.Tensor, along: torch.Tensor) -> torch.Tensor:
        """h [N, n, d] of slots [B, n], drafted `rows` rows above; `along` where there is no row."""
        source = slots - rows * self.state.grid.width
        exists = (source >= 0) & (source <= self.frontier)
        index = source.clamp(min=0).repeat(self.state.branches, 1) % self.span
        cached = self.cached[self._sequences(index), rows - 1, index]
        return torch.where(exists.repeat(self.state.branches, 1)[..., None], cached, along)

    def _sequences(self, index: torch.Tensor) -> torch.Tensor:
        return torch.arange(len(index), device=index.device)[:, None]
