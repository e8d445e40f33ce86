"""The sliding window of `strict`, `exact` and `sjd`: each picture has its own frontier.

The token at the frontier is final but not yet fed. A pass feeds it together with the guesses behind
it. Guesses that prove right become final, the first wrong one is corrected, and the frontier moves
to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import torch
import torch.nn.functional as F

from ...model.grid import Grid
from .. import close_calls
from ..events import Pass
from ..plan import Plan
from ..state import DecodeState
from .base import make_plan, require
from .knobs import knob
from .paced import Paced

Drafted = TypeVar("Drafted")
Guess = Callable[[DecodeState, torch.Tensor, torch.Tensor], Drafted]


class Judged(NamedTuple):
    """By how many guesses [B] the frontier moves on, and which guesses [B, n - 1] stood.

    close [B, n] bool: which tokens behind the slots rounding may have decided; None: it decides
    none, or nothing depends on it.
    """

    right: torch.Tensor
    stood: torch.Tensor
    close: torch.Tensor | None = None


Judge = Callable[[DecodeState, torch.Tensor, torch.Tensor, Drafted], Judged]


# Cells that one pass can take cheaply, by type of device. Guidance doubles the rows of the matrix.
# On a graphics card 200 rows cost little more than one; on a CPU every row costs time.
CARD_CELLS, CPU_CELLS = 100, 48
WINDOWS = (8, 12, 16, 24, 32, 48, 72, 96, 144, 192, 240, 288)  # that the pace may choose


def cheapest_window(grid: Grid, device: str) -> int:
    """As many whole rows as the device handles cheaply, at least one; device: "cpu", "cuda" ..."""
    rows = max((CPU_CELLS if device == "cpu" else CARD_CELLS) // grid.width, 1)
    return min(rows, grid.rows) * grid.width


@dataclass(frozen=True)
class Windowed(Paced):
    """A method that checks a window of cells in every pass. It needs one pass per cell at most."""

    window: int | None = knob(None, "Cells checked in each forward pass.", low=1, shown="basic",
                              own="the cheapest number on this device")
    paced: ClassVar[str] = "window"

    def plan(self, grid: Grid, first_row: int = 0) -> Plan:
        require(((not self.window or self.window <= grid.slots,
                  f"window {self.window}: the picture has {grid.slots} cells"),))
        return make_plan(grid, first_row, None, (grid.rows - first_row) * grid.width, None)

    def narrowest(self, grid: Grid) -> int:
        """The narrowest window that the machine's pace may choose."""
        return 1

    def sizes(self, grid: Grid) -> Sequence[int]:
        low = self.narrowest(grid)
        sizes = {low, *WINDOWS} if low > 1 else WINDOWS
        return [size for size in sorted(sizes) if low <= size <= grid.slots]

    def width(self, grid: Grid, device: str) -> int:
        """Cells per pass on this type of device."""
        return self.window or cheapest_window(grid, device)

    def widest_pass(self, grid: Grid, device: str = "cuda") -> int:
        return min(self.width(grid, device), grid.slots)

    def choice(self, grid: Grid, device: str) -> str:
        if self.window is not None:
            return ""
        window = self.width(grid, device)
        rows = window // grid.width
        place = "a CPU" if device == "cpu" else "a graphics card"
        return f"window {window}: {rows} {'row' if rows == 1 else 'rows'}, cheapest on {place}"


def sliding_window(state: DecodeState, first: int, window: int, guess: Guess[Drafted],
                   judge: Judge[Drafted]) -> Iterator[Pass]:
    """Fill every picture from slot `first` on.

    guess(state, slots [B, n], frontier [B]) writes guesses after the frontier and returns what
    `judge` needs to know about them, such as their draft_probs [B, n - 1, V]. After the pass over
    `slots`, judge(state, slots, frontier, drafted) writes corrected tokens to slots + 1.
    """
    state.choose(first)
    frontier = torch.full((state.pictures,), first, device=state.tokens.device)
    state.front, lowest = [first] * state.pictures, first
    last = state.grid.slot(state.grid.cells - 1)  # a row end behind it is certain
    while lowest < last:
        count = min(window, state.slots - lowest)
        starts = frontier.clamp(max=state.slots - count)
        slots = starts[:, None] + state.noise.slots[:count]
        drafted = guess(state, slots, frontier)
        state.clock.lap("draft")
        state.feed_at(slots, [min(slot, state.slots - count) for slot in state.front])
        right, stood, close = judge(state, slots, frontier, drafted)
        state.finished_early += frontier >= last
        before, frontier = frontier, (starts + 1 + right).clamp(max=state.slots)
        if close is not None:
            frontier = yield from close_calls.decided(state, first, slots, close, before, frontier)
        state.front = frontier.tolist()  # the only time that a pass waits for the device
        lowest = min(state.front)
        state.clock.lap("verify")
        state.final = lowest + 1
        yield state.passed_at(slots, slots < frontier[:, None], F.pad(stood, (1, 0), value=True))
    state.final = state.slots


def known(slots: torch.Tensor, frontier: torch.Tensor) -> torch.Tensor:
    """[B, n] bool: which tokens are already final. Windows at the end of a picture contain some."""
    return slots <= frontier[:, None]


def horizontal_estimates(state: DecodeState, ahead: torch.Tensor, frontier: torch.Tensor,
                         k_h: int) -> torch.Tensor:
    """Estimates of h [rows, n, d] for slots ahead [B, n], from the frontier [B, 1].

    Head d estimates the d-th cell after the frontier. A row end is not a cell: its estimate is
    never used.
    """
    hidden, embedding = state.hidden_at(frontier), state.embedding_at(frontier)
    heads = state.draft_heads.horizontal[:k_h]
    estimates = torch.cat([head(hidden, embedding) for head in heads], dim=1)
    cells = ahead > frontier
    if state.forced is not None:
        cells = cells & ~state.forced[ahead]
    head_index = cells.long().cumsum(-1).clamp(1, len(heads)) - 1
    both = head_index.repeat(state.branches, 1)[..., None]
    return estimates.gather(1, both.expand(-1, -1, estimates.shape[2]))
