"""Speculative Jacobi decoding (SJD; Teng et al., 2410.01699), and the tree of SJD-PAC.

The acceptance rule keeps AR's distribution (SJD Eq. 1-3).

With `tree_width` above 1 the first drafts after the frontier get siblings (proactive drafting of
SJD-PAC, 2603.18599), sampled from the cached distributions of the same cells without repeating a
token. One pass verifies the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from ....model.grid import Grid
from ....model.noise import Purpose
from ....model.sampling import sample
from ... import accept
from ...events import Pass
from ...state import DecodeState
from ..base import knob, require
from ..parent import guessed_by
from .resampling import Drafts, Resampling
from .tree import Descent, Fed, Tree, after, descend, laid_out, rounds_of, sliding_trees

MOST_LEAVES = 256


@dataclass(frozen=True)
class SJD(Resampling):
    """Verifies drafts by a rule that keeps AR's distribution (SJD Eq. 1-3)."""

    tree_width: int = knob(1, "Candidates for each of the first cells after the last final one; "
                              "1: no tree.", low=1, high=16)
    tree_depth: int = knob(2, "Cells after the last final one that get several candidates.",
                           low=1, high=16)
    guess: str = guessed_by()
    name: ClassVar[str] = "sjd"
    guarantee: ClassVar[str] = "same distribution"

    def acceptance_rule(self, state: DecodeState, tokens: torch.Tensor, draft_probs: torch.Tensor,
                        target_probs: torch.Tensor, uniforms: torch.Tensor,
                        noise: torch.Tensor) -> accept.AcceptResult:
        return accept.residual(tokens, draft_probs, target_probs, uniforms, noise)

    def check(self) -> None:
        require(((self.tree_width**self.tree_depth <= MOST_LEAVES,
                  f"tree_width {self.tree_width} and tree_depth {self.tree_depth}: make "
                  f"{self.tree_width**self.tree_depth} branches, at most {MOST_LEAVES}"),))

    def tree(self, grid: Grid) -> Tree:
        window = min(self.window_on(grid), grid.slots)
        return Tree.bushy_chain(window, self.tree_width, self.tree_depth)

    def pass_width(self, grid: Grid) -> int:
        return len(self.tree(grid))

    def scratch(self, grid: Grid) -> int:
        return len(self.tree(grid)) - 1 if self.tree_width > 1 else 0

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        tree = self.tree(state.grid)
        if tree.most_siblings == 1:
            return super().steps(state)
        return self.tree_steps(state, tree)

    def tree_steps(self, state: DecodeState, tree: Tree) -> Iterator[Pass]:
        """Like `Resampling.steps`, with siblings for the drafts next to the frontier."""
        drafts = Drafts(self.init)
        for step in sliding_trees(state, tree):
            if step.over_known:
                yield from step.pass_over()
                continue
            slots = torch.cat((step.root, step.next_slots), dim=1)
            q = drafts.guess(state, slots, step.frontier)  # [B, n, V]
            tokens, sibling_q = siblings(state, tree, step.next_slots, q)
            candidates = laid_out(tree, state.codes(step.root), tokens)
            fed = step.feed(candidates)
            descent = descend(fed, candidates, sibling_q)
            fed.settle(completed_path(fed, descent))
            redraft(fed, q, drafts, descent, candidates, self.continuation)
            yield step.advance(descent.accepted)


def siblings(state: DecodeState, tree: Tree, slots: torch.Tensor,
             draft_probs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [B, siblings, n] for slots [B, n], and the q [B, siblings, n, V] of each.

    The first sibling is the draft. Each further sibling is sampled from draft_probs [B, n, V]
    without the siblings before it, or uniformly from all codes where nothing is left.
    """
    tokens, probs = [state.codes(slots)], [draft_probs]
    for round_ in rounds_of(state, tree.most_siblings)[1:]:
        rest = probs[-1].scatter(-1, tokens[-1][..., None], 0.0)
        sum_ = rest.sum(-1, keepdim=True)
        rest = torch.where(sum_ > 0, rest / sum_, torch.full_like(rest, 1 / rest.shape[-1]))
        probs.append(rest)
        tokens.append(sample(rest, state.noise.fresh(Purpose.DRAFT, round_, slots)))
    return torch.stack(tokens, dim=1), torch.stack(probs, dim=1)


def completed_path(fed: Fed, descent: Descent) -> torch.Tensor:
    """The accepted path, completed with the nodes of the chain: [B, depth + 1].

    Drafts that depend on a cell's neighbours then use the hidden states that `redraft` samples
    from.
    """
    chain = fed.tree.on(descent.path.device).firsts
    accepted = torch.arange(len(chain), device=chain.device) <= descent.accepted[:, None]
    return torch.where(accepted, descent.path, chain)


def redraft(fed: Fed, draft_probs: torch.Tensor, drafts: Drafts, descent: Descent,
            candidates: torch.Tensor, continuation: bool) -> None:
    """Write the tokens that the pass made final, and after them drafts from p of the chain."""
    state, tree = fed.state, fed.tree
    chain = tree.on(candidates.device).firsts
    target_probs = fed.target_probs[:, chain]
    next_slots = after(fed.frontier, len(chain)).clamp(max=state.slots)
    index, count = torch.arange(len(chain), device=next_slots.device), descent.accepted[:, None]
    noise = state.noise.fresh(Purpose.REPAIR, state.passes, next_slots)
    tokens = sample(target_probs, noise)
    if continuation:
        uniforms = state.noise.uniform(Purpose.ACCEPT, rounds_of(state, tree.most_siblings)[0],
                                       next_slots)
        verified = accept.residual(state.codes(next_slots), F.pad(draft_probs, (0, 0, 0, 1)),
                               target_probs, uniforms, noise).tokens
        tokens = torch.where(index < len(chain) - 1, verified, tokens)  # the last has no draft yet
    tokens = torch.where(index == count, descent.token[:, None], tokens)
    path = F.pad(candidates.gather(1, descent.path)[:, 1:], (0, 1))
    state.write(next_slots, torch.where(index < count, path, tokens))
    drafts.remember(next_slots, target_probs)
