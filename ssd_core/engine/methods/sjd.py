"""Speculative Jacobi decoding (SJD; Teng et al., 2410.01699), and the tree of SJD-PAC.

The rule that verifies a draft keeps AR's distribution (SJD Eq. 1-3).

With `tree_width` above 1 the first drafts behind the frontier get siblings (proactive drafting of
SJD-PAC, 2603.18599), sampled from the cached distributions of the same cells without repeating a
token. One pass verifies the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from ...model.grid import Grid
from ...model.noise import Purpose
from ...model.sampling import choose
from .. import accept
from ..events import Pass
from ..state import DecodeState
from ..tree import Descent, Fed, Tree, descend, rounds_of
from .base import require
from .candidates import after, laid_out, sliding_trees
from .knobs import knob
from .resampling import Drafts, Resampling

MOST_LEAVES = 256


@dataclass(frozen=True)
class SJD(Resampling):
    """Verifies drafts with the rule that keeps AR's distribution (SJD Eq. 1-3)."""

    tree_width: int = knob(1, "Candidates for each of the first cells after the last final one; "
                              "1: no tree.", low=1, high=16)
    tree_depth: int = knob(2, "Cells after the last final one that get several candidates.",
                           low=1, high=16)
    name: ClassVar[str] = "sjd"
    verdict: ClassVar[str] = "same distribution"

    def verify(self, state: DecodeState, tokens: torch.Tensor, draft_probs: torch.Tensor,
               target_probs: torch.Tensor, uniforms: torch.Tensor,
               noise: torch.Tensor) -> accept.Verdict:
        return accept.residual(tokens, draft_probs, target_probs, uniforms, noise)

    def check(self) -> None:
        require(((self.tree_width**self.tree_depth <= MOST_LEAVES,
                  f"tree_width {self.tree_width} and tree_depth {self.tree_depth}: make "
                  f"{self.tree_width**self.tree_depth} branches, at most {MOST_LEAVES}"),))

    def tree(self, grid: Grid, device: str) -> Tree:
        window = min(self.width(grid, device), grid.slots)
        return Tree.bushy_chain(window, self.tree_width, self.tree_depth)

    def widest_pass(self, grid: Grid, device: str = "cuda") -> int:
        return len(self.tree(grid, device))

    def scratch(self, grid: Grid) -> int:
        return len(self.tree(grid, "cuda")) - 1 if self.tree_width > 1 else 0

    def steps(self, state: DecodeState, first_row: int) -> Iterator[Pass]:
        tree = self.tree(state.grid, state.tokens.device.type)
        if tree.most_siblings == 1:
            return super().steps(state, first_row)
        return self.tree_steps(state, first_row * state.grid.width, tree)

    def tree_steps(self, state: DecodeState, first: int, tree: Tree) -> Iterator[Pass]:
        """As in `Resampling`, with siblings for the drafts next to the frontier."""
        drafts = Drafts(self.init)
        for step in sliding_trees(state, first, tree):
            slots = torch.cat((step.root, step.ahead), dim=1)
            q = drafts.guess(state, slots, step.frontier)  # [B, n, V]
            tokens, own_q = siblings(state, tree, step.ahead, q)
            candidates = laid_out(tree, state.codes_at(step.root), tokens)
            fed = step.feed(candidates)
            descent = descend(fed, candidates, own_q)
            fed.settle(then_the_chain(fed, descent))
            redraft(fed, q, drafts, descent, candidates, self.continuation)
            yield step.advance(descent.accepted)


def siblings(state: DecodeState, tree: Tree, slots: torch.Tensor,
             draft_probs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [B, siblings, n] for slots [B, n], and the q [B, siblings, n, V] of each.

    The first are the drafts themselves. Each further one is sampled from what is left of
    draft_probs [B, n, V] without those before it, or from all codes where nothing is left.
    """
    tokens, probs = [state.codes_at(slots)], [draft_probs]
    for round_ in rounds_of(state, tree.most_siblings)[1:]:
        left = probs[-1].scatter(-1, tokens[-1][..., None], 0.0)
        sum_ = left.sum(-1, keepdim=True)
        left = torch.where(sum_ > 0, left / sum_, torch.full_like(left, 1 / left.shape[-1]))
        probs.append(left)
        tokens.append(choose(left, state.noise.drawing(Purpose.DRAFT, round_, slots)))
    return torch.stack(tokens, dim=1), torch.stack(probs, dim=1)


def then_the_chain(fed: Fed, found: Descent) -> torch.Tensor:
    """The path that stands, and behind it the nodes [B, depth + 1] of the chain.

    Their states are those that `redraft` draws from, for drafts that look at a cell's neighbours.
    """
    chain = fed.tree.on(found.path.device).firsts
    stands = torch.arange(len(chain), device=chain.device) <= found.accepted[:, None]
    return torch.where(stands, found.path, chain)


def redraft(fed: Fed, draft_probs: torch.Tensor, drafts: Drafts, found: Descent,
            candidates: torch.Tensor, continuation: bool) -> None:
    """Write what the pass decided, and behind it the next drafts, from p of the chain's nodes."""
    state, tree = fed.state, fed.tree
    chain = tree.on(candidates.device).firsts
    target_probs = fed.target_probs[:, chain]
    ahead = after(fed.frontier, len(chain)).clamp(max=state.slots)
    place, count = torch.arange(len(chain), device=ahead.device), found.accepted[:, None]
    noise = state.noise.drawing(Purpose.REPAIR, state.passes, ahead)
    tokens = choose(target_probs, noise)
    if continuation:
        uniforms = state.noise.uniform(Purpose.ACCEPT, rounds_of(state, tree.most_siblings)[0],
                                       ahead)
        kept = accept.residual(state.codes_at(ahead), F.pad(draft_probs, (0, 0, 0, 1)),
                               target_probs, uniforms, noise).tokens
        tokens = torch.where(place < len(chain) - 1, kept, tokens)  # the last has no draft yet
    tokens = torch.where(place == count, found.token[:, None], tokens)
    path = F.pad(candidates.gather(1, found.path)[:, 1:], (0, 1))
    state.write_at(ahead, torch.where(place < count, path, tokens))
    drafts.remember(ahead, target_probs)
