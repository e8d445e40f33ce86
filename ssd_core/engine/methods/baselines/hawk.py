"""Hawk (Chen et al., 2510.25739): a tree of candidates drafted along the row and from rows above.

Horizontal heads draft the next cells from the frontier. Vertical heads have already drafted the
same cells from the rows above them. At each depth some tokens are sampled from each of these
distributions. Their combinations form a tree, which one pass verifies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

from ....model.grid import LONGEST_SIDE, Grid
from ...events import Pass
from ...state import DecodeState
from ..base import Method, cells_drafted, knob, require
from ..window import horizontal_estimates
from .tree import (
    Descent,
    Fed,
    Tree,
    VerticalDrafts,
    after,
    descend,
    laid_out,
    sampled,
    sliding_trees,
)

WIDEST, LARGEST = 8, 256


def width(default: int, source: str) -> Any:
    """A knob for the number of candidates from one source of drafts."""
    return knob(default, f"Candidates per cell drafted {source}.", low=0, high=WIDEST,
                visibility="basic")


@dataclass(frozen=True)
class Hawk(Method):
    """Drafts k_h cells ahead, with several candidates for each."""

    k_h: int = cells_drafted()
    horizontal_width: int = width(1, "along the row")
    vertical_width: int = width(1, "from each cell above")
    vertical_depth: int = knob(1, "How many cells above it draft a cell (VSD).", low=1,
                               high=LONGEST_SIDE, visibility="basic")
    candidates: int = knob(16, "Most candidates verified in one forward pass.", low=1, high=LARGEST)
    name: ClassVar[str] = "hawk"
    uses_heads: ClassVar[bool] = True
    guarantee: ClassVar[str] = "same distribution"

    @property
    def sources(self) -> list[int]:
        """The source of each sibling: 0 for the horizontal heads, else the number of rows above.

        Sources take turns.
        """
        widths = [self.horizontal_width, *[self.vertical_width] * self.vertical_depth]
        return [source for turn in range(max(widths))
                for source, width in enumerate(widths) if turn < width]

    @property
    def tree(self) -> Tree:
        return Tree.spread(len(self.sources), self.k_h, self.candidates)

    def check(self) -> None:
        require(((self.horizontal_width + self.vertical_width > 0,
                  "horizontal_width and vertical_width are 0: at least one must draft"),))

    def heads_needed(self, grid: Grid) -> tuple[int, int]:
        return self.k_h, self.vertical_depth if self.vertical_width else 0

    def pass_width(self, grid: Grid) -> int:
        return len(self.tree)

    def scratch(self, grid: Grid) -> int:
        return len(self.tree) - 1

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        """Draft a tree from the q of every source, verify it, and continue after the accepted path.
        """
        tree = self.tree
        vertical = VerticalDrafts(state, max(self.sources), state.region.first)
        for step in sliding_trees(state, tree):
            if step.over_known:
                yield from step.pass_over()
                continue
            vertical.follow(step.frontier, step.deepest + 1)
            # q [B, siblings, n, V], drafts [B, siblings, n]
            q = self.draft_probs(state, step.next_slots, step.frontier, vertical)
            drafts = sampled(state, step.frontier, q)
            candidates = laid_out(tree, state.codes(step.root), drafts)
            fed = step.feed(candidates)
            descent = self.sample_path(fed, candidates, q)
            fed.settle(descent.path)
            write(state, step.frontier, candidates, drafts, descent)
            yield step.advance(descent.accepted)

    def sample_path(self, fed: Fed, candidates: torch.Tensor, draft_probs: torch.Tensor) -> Descent:
        """Choose among the candidates [B, nodes]."""
        return descend(fed, candidates, draft_probs)

    def draft_probs(self, state: DecodeState, slots: torch.Tensor, frontier: torch.Tensor,
                    vertical: VerticalDrafts) -> torch.Tensor:
        """q [B, siblings, n, V] of slots [B, n], for every sibling."""
        along = horizontal_estimates(state, slots, frontier[:, None], self.k_h)
        estimates = [along, *(vertical.estimates(rows, slots, along)
                              for rows in range(1, max(self.sources) + 1))]
        each = [state.draft_probs(estimate, slots) for estimate in estimates]
        return torch.stack([each[source] for source in self.sources], dim=1)


def write(state: DecodeState, frontier: torch.Tensor, candidates: torch.Tensor,
          drafts: torch.Tensor, descent: Descent) -> None:
    """Write the accepted tokens, the token after them, and after these the first drafts."""
    on_path = F.pad(candidates.gather(1, descent.path)[:, 1:], (0, 1))
    index = torch.arange(on_path.shape[1], device=on_path.device)
    accepted = descent.accepted[:, None]
    tokens = torch.where(index < accepted, on_path, F.pad(drafts[:, 0], (0, 1)))
    tokens = torch.where(index == accepted, descent.token[:, None], tokens)
    slots = after(frontier, on_path.shape[1]).clamp(max=state.slots)  # one after the picture
    state.write(slots, tokens)
