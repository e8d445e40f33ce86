"""Rows in flight at once: a row starts as soon as the row above is `delay` cells ahead.

With one cell a row and pass this is ZipAR (2412.04062), with several it is parallel Jacobi decoding
(PJD, 2606.05703), which asks for the delay only at a row's start. A cell sees the final cells above
and its own row. It misses the end of the rows above, behind the delay: that is the approximation.

The delay is a matter of quality. The number of cells is one of speed, as long as they are verified:
from 2 to 24 cells passes fall from 186 to 121, and neither NLL nor claims change by more than their
errors (benchmarks/results/README.md). So it may follow the machine's pace. With verification "none"
more cells draw worse, and it never does.

Without row ends, the token before a row may be unknown when the row starts. The last final token of
the row above then stands in; nothing but the row's first cell sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from ...model.grid import LONGEST_SIDE, Grid
from ...model.noise import Purpose
from .. import accept
from ..events import Pass
from ..plan import Plan
from ..state import DecodeState
from ..wavefront import Wavefront, passes_at_once
from .base import make_plan, one_hot
from .knobs import knob
from .paced import Paced

CELLS = (2, 3, 4, 6, 8, 12, 16, 24)  # of each row: that the pace may choose
OPEN = 8  # where nothing is chosen


@dataclass(frozen=True)
class Wave(Paced):
    """Decodes several rows side by side, each some cells behind the row above."""

    delay: int = knob(
        9, "Cells that each row stays behind the row above; a whole row or more is AR's order.",
        low=1, high=LONGEST_SIDE, shown="basic")
    cells: int | None = knob(
        None, "Cells of each row in flight that a pass chooses.", low=1, high=LONGEST_SIDE,
        shown="basic", own=f"the cheapest number on this device; {OPEN} if verification is none")
    verification: str = knob(
        "coupled", "When a cell beyond a row's next one is final. coupled: once it is chosen again "
                   "with the seed's own noise. residual: by the rule of p/q. none: at once.",
        choices=("coupled", "residual", "none"))
    adaptive: bool = knob(
        False, "Keep a row's first cell only if it is chosen again one cell later.")
    name: ClassVar[str] = "wave"
    paced: ClassVar[str] = "cells"

    @property
    def is_open(self) -> bool:
        return self.cells is None and self.verification != "none"

    @property
    def each(self) -> int:
        """Cells of each row."""
        return self.cells or OPEN

    def sizes(self, grid: Grid) -> Sequence[int]:
        return [size for size in CELLS if size <= grid.columns]

    def width(self, grid: Grid, device: str) -> int:
        return self.each

    def longest(self, grid: Grid) -> int:
        return passes_at_once(grid, grid.rows, min(self.delay, grid.columns), 1)

    def usual_width(self, grid: Grid, device: str) -> int:
        """So many rows are in flight as delays fit in one. Of long reaches a part is cut off: by
        the end of the row or of what is known above; on postcard 2.6 cells at 1, 14 at 8, 26 at 24.
        """
        rows = min(grid.columns / min(self.delay, grid.columns), grid.rows)
        return max(1, round(rows * self.each / (1 + self.each * 1.5 / grid.columns)))

    def verdict_on(self, grid: Grid) -> str:
        """Behind whole rows every cell sees all that AR sees, unless unjudged cells stand."""
        judged = self.verification != "none" or self.cells == 1
        whole = self.delay >= grid.columns
        return "same distribution" if whole and judged else self.verdict

    def plan(self, grid: Grid, first_row: int = 0) -> Plan:
        rows, delay = grid.rows - first_row, min(self.delay, grid.columns)
        waiting = self.adaptive and delay < grid.columns
        most = passes_at_once(grid, rows, grid.columns if waiting else delay,
                              self.each if self.verification == "none" else 1)
        known = not waiting and (self.verification == "none" or self.cells == 1)
        return make_plan(grid, first_row, most if known else None, most, None)

    def widest_pass(self, grid: Grid, device: str = "cuda") -> int:
        in_flight = min(-(-grid.columns // min(self.delay, grid.columns)) + 1, grid.rows)
        each = self.each * (2 if self.verification == "none" else 1) + 1
        return min(in_flight * min(each, grid.width), grid.slots)

    def steps(self, state: DecodeState, first_row: int) -> Iterator[Pass]:
        state.choose(first_row * state.grid.width)
        front = Wavefront(state.grid, state.pictures, first_row, self.delay, self.each,
                          state.tokens.device)
        drafts = Drafts(state, front, self)
        while front.complete < state.grid.rows:
            state.stats.finished_early += front.done[:, -1] == state.grid.columns
            drafts.guess()
            state.clock.lap("draft")
            state.feed_seeing(front.slots, front.visible())
            told, refed = front.reported_slots(), front.refed
            accepted, stood = (one.gather(1, told) for one in drafts.judge())
            front.look_ahead()
            state.clock.lap("verify")
            state.final = front.complete * state.grid.width
            yield state.passed_at(told, accepted, stood, refed)
        state.final = state.slots  # one cell alone takes no pass


class Drafts:
    """The tokens of a wavefront's open cells: first guesses, and what each pass chooses.

    held, drawn [B, slots] bool: the slot holds a token; the last pass chose it.
    """

    def __init__(self, state: DecodeState, front: Wavefront, method: Wave) -> None:
        self.state, self.front, self.method = state, front, method
        self.held = self.drawn = torch.zeros_like(front.seen)
        self.probs: torch.Tensor | None = None  # [B, n, V] of the last pass, at `index`
        self.index = torch.zeros_like(state.tokens)

    def guess(self) -> None:
        """Give slots that enter without a token the one above, or the final one nearest to it.

        Row 0 and what stands in take the last final token of their own row.
        """
        front, tokens = self.front, self.state.tokens[:, :-1]
        row = torch.where((front.y == 0) | front.placeholder, front.y, front.y - 1)
        column = torch.minimum(front.x, (front.done.gather(1, row) - 1).clamp(min=0))
        entering = front.fed & ~front.final & ~front.row_end & ~self.held
        source = row * self.state.grid.width + column
        tokens.copy_(torch.where(entering, tokens.gather(1, source), tokens))
        self.held = self.held | entering

    def judge(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose the open cells and move the front.

        Returns [B, slots] twice: which fed tokens are final now, and which were chosen again.
        """
        state, front = self.state, self.front
        ahead, fed = front.slots + 1, state.tokens[:, :-1].clone()
        state.write_at(ahead, self._chosen(ahead))
        same = fed == state.tokens[:, :-1]
        again = front.open & self.held & same
        front.advance(front.open if self.method.verification == "none" else again,
                      again & self.drawn if self.method.adaptive else None)
        self.held, self.drawn = self.held | front.open, front.open
        stood = again | front.final
        return front.stored(same), stood

    def _chosen(self, ahead: torch.Tensor) -> torch.Tensor:
        """Tokens [B, n] for the slots `ahead`: new ones where they are open."""
        state, noise, old = self.state, self.state.noise, self.state.codes_at(ahead)
        probs = state.target_probs_at(ahead)
        tokens = accept.coupled(old, probs, noise.choosing_at(ahead)).tokens
        if self.method.verification == "residual":
            verdict = accept.residual(old, self._draft_probs(ahead, old), probs,
                                      noise.uniform(Purpose.ACCEPT, state.passes, ahead),
                                      noise.drawing(Purpose.REPAIR, state.passes, ahead))
            tokens = torch.where(at(ahead, self.held), verdict.tokens, tokens)
            place = self.front.place[: ahead.shape[1]].expand_as(ahead)
            self.probs = probs
            self.index = torch.zeros_like(self.index).scatter(1, ahead, place)
        return torch.where(at(ahead, self.front.open), tokens, old)

    def _draft_probs(self, ahead: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        """q [B, n, V]: p of the last pass where that chose the token, else 1 for the guess."""
        guessed = one_hot(self.state, old)
        if self.probs is None:
            return guessed
        index = self.index.gather(1, ahead)[..., None].expand(-1, -1, guessed.shape[2])
        return torch.where(at(ahead, self.drawn)[..., None], self.probs.gather(1, index), guessed)


def at(slots: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """mask [B, slots of the picture] at slots [B, n]; False behind the picture."""
    return F.pad(mask, (0, 1)).gather(1, slots)
