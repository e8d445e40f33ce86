"""The sliding window of `strict`, `exact` and `sjd`; each picture has its own frontier.

The token at the frontier is final but not yet fed. A pass feeds it together with the drafts after
it. Accepted drafts become final, the first wrong draft is replaced, and the frontier moves to that
slot.

While the knob for the cells of a pass is open (`Tunable`), `tuning.py` sets it: to the cheapest of
`windows` on this machine if no picture depends on it, else to the default of the type of device, so
that a seed keeps its picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F

from ...model.grid import Grid
from ...model.knobs import derived
from .. import repeat_near_ties
from ..events import Pass, Plan
from ..graphs import rounded_cells
from ..region import Region
from ..state import DecodeState, PictureSlots
from .base import Method, knob, require

if TYPE_CHECKING:
    from typing_extensions import Self

# Cells that a pass computes cheaply, by type of device. Guidance doubles the rows of the matrix.
# On a graphics card 200 rows cost little more than a single row; on a CPU every row costs time.
CARD_CELLS, CPU_CELLS = 100, 48
# Narrower windows of a budget, for cards on which a pass over CARD_CELLS is slow.
MIDDLE_CELLS, NARROW_CELLS = 50, 32
# Sizes that step times may choose, besides the whole picture.
WINDOWS = (8, 12, 16, 24, 32, 48, 72, 96, 144, 192, 240, 288, 384, 576, 768, 1152, 1536, 2304)


class Tunable(Method):
    """A method with such a knob; the value None leaves it open."""

    window_knob: ClassVar[str]  # the knob's name

    @property
    def window(self) -> int | None:
        """The knob's value."""
        value: int | None = getattr(self, self.window_knob)
        return value

    def with_window(self, window: int | None) -> Self:
        """A copy of the method with this value of the knob."""
        return derived(self, **{self.window_knob: window})

    def windows(self, grid: Grid) -> Sequence[int]:
        """The values to choose from, in ascending order."""
        raise NotImplementedError

    def default_window(self, grid: Grid, device: str, cells: int | None = None) -> int:
        """The knob's default on this type of device. cells: see `Method.for_device`."""
        raise NotImplementedError

    def for_device(self, grid: Grid, device: str, cells: int | None = None) -> Self:
        if self.window is not None:
            return self
        return self.with_window(min(self.default_window(grid, device, cells), grid.slots))

    def window_on(self, grid: Grid) -> int:
        """The knob's value; while it is open, a graphics card's default."""
        return self.window or self.default_window(grid, "cuda")

    def typical_pass_width(self, grid: Grid) -> int:
        """The cells of a typical pass."""
        return self.pass_width(grid)

    def slowest_passes(self, grid: Grid) -> int:
        """The passes of a whole picture if each made only one cell final, or one cell of each row.
        """
        return grid.slots


def cheapest_window(grid: Grid, device: str, cells: int | None = None) -> int:
    """The slots of as many whole rows as the device computes cheaply, at least one row.

    cells: what is known of this very device, in place of its type; fewer than two rows are
    taken as they are.
    """
    if cells is not None and cells < 2 * grid.width:
        return cells
    rows = max((cells or (CPU_CELLS if device == "cpu" else CARD_CELLS)) // grid.width, 1)
    return min(rows, grid.rows) * grid.width


@dataclass(frozen=True)
class Windowed(Tunable):
    """A method that verifies a window of cells in every pass, with at most one pass per cell."""

    window: int | None = knob(None, "Cells checked in each forward pass.", low=1,
                              visibility="basic",
                              none_means="the usual number for this type of device; exact "
                                         "and jacobi: the cheapest here")
    window_knob: ClassVar[str] = "window"

    def plan(self, place: Grid | Region) -> Plan:
        grid = Region.of(place).grid
        require(((not self.window or self.window <= grid.slots,
                  f"window {self.window}: the picture has {grid.slots} cells"),))
        return super().plan(place)

    def windows(self, grid: Grid) -> Sequence[int]:
        return [size for size in WINDOWS if size < grid.slots] + [grid.slots]

    def default_window(self, grid: Grid, device: str, cells: int | None = None) -> int:
        return cheapest_window(grid, device)

    def pass_width(self, grid: Grid) -> int:
        return min(self.window_on(grid), grid.slots)

    def tuning(self, grid: Grid, device: str) -> str:
        if self.window is not None:
            return ""
        window = self.for_device(grid, device).window_on(grid)
        rows = window // grid.width
        place = "a CPU" if device == "cpu" else "a graphics card"
        return (f"window {window}: {rows} {'row' if rows == 1 else 'rows'}, usual on {place}; a "
                "run takes the quickest measured on yours")


class Window:
    """The slots that a pass verifies.

    slots [B, n] int64: from each picture's frontier on; the last windows of a picture start before
    its frontier.
    """

    def __init__(self, state: DecodeState, most: int, least: int = 1) -> None:
        """most: the most slots of a window, unless the next `least` masked cells lie further on."""
        region, frontier = state.region, state.frontier
        if region.scattered:
            most = max(most, *(region.ahead(i, slot, least) - slot
                               for i, slot in enumerate(frontier.host)))
        count = min(most, region.end - min(frontier.host))
        if state.run.padded:  # the last windows begin earlier, so that they have few sizes
            count = min(most, rounded_cells(count, state.grid.width), region.end - region.first)
        self.state, self.start = state, frontier.at_most(region.end - count)
        self.slots = self.start.device[:, None] + state.noise.slots[:count]

    @property
    def frontier(self) -> torch.Tensor:
        """[B] int64: the last final slot."""
        return self.state.frontier.device

    @property
    def drafted(self) -> torch.Tensor:
        """[B, n - 1]: the slots whose tokens are drafts."""
        return self.slots[:, 1:]

    @property
    def next_slots(self) -> torch.Tensor:
        """[B, n]: the slots whose tokens the pass predicts."""
        return self.slots + 1

    def is_final(self, slots: torch.Tensor) -> torch.Tensor:
        """[B, n] bool: which slots have their final token."""
        return is_final(slots, self.frontier)

    def write(self, slots: torch.Tensor, tokens: torch.Tensor) -> None:
        """Write tokens [B, n] to the slots that are not final."""
        current = self.state.codes(slots)
        self.state.write(slots, torch.where(self.is_final(slots), current, tokens))

    def feed(self) -> None:
        """Run one forward pass over the slots."""
        self.state.clock.lap("draft")
        self.state.feed_at(self.slots, self.start.host)

    def advance(self, accepted: torch.Tensor, unchanged: torch.Tensor,
                ties: torch.Tensor | None = None) -> Iterator[Pass]:
        """Advance the frontier and yield the pass.

        accepted [B] int64: how many of the first drafts are final now. unchanged [B, n - 1] bool:
        which drafts keep their tokens. ties [B, n] bool: which tokens of `next_slots` rounding may
        have decided; these are sampled again as AR samples them. None: no near ties to repeat.
        """
        state, before = self.state, self.frontier
        state.stats.finished_early += before >= state.region.last
        frontier = (self.start.device + 1 + accepted).clamp(max=state.region.end)
        if ties is not None:
            frontier = yield from repeat_near_ties.decided(state, self.slots, ties, before,
                                                           frontier)
        state.reach(at_end(state, frontier))
        state.clock.lap("verify")
        yield state.record_pass_at(self.slots, self.slots < self.frontier[:, None],
                                   F.pad(unchanged, (1, 0), value=True))


def sliding_windows(state: DecodeState, most: int, least: int = 1) -> Iterator[Window]:
    """Yield windows of up to `most` slots until every picture is complete.

    The caller feeds each window and advances it with `Window.advance`. A window covers the next
    `least` masked cells of every picture, so that one pass feeds a stretch of known cells. The
    first masked cell is sampled here, unless `verified` has begun the run.
    """
    if not state.frontier.host:
        sample_first(state)
    while min(state.frontier.host) < state.region.last:
        yield Window(state, most, least)
    state.final = state.slots


def sample_first(state: DecodeState) -> None:
    """Sample the first masked cell, every picture's first frontier."""
    first = state.region.first
    state.sample_at(state.span(first, first + 1))  # once a picture, which is not worth a graph
    frontier = torch.full((state.pictures,), first, device=state.tokens.device)
    state.frontier = PictureSlots(frontier, [first] * state.pictures)
    if state.region.ragged:
        state.frontier = PictureSlots.read(at_end(state, frontier))


def at_end(state: DecodeState, frontier: torch.Tensor) -> torch.Tensor:
    """The frontier [B], moved to the end of the run where a picture has no more masked cells."""
    region, known_cells = state.region, state.known_cells
    if known_cells is None or not region.ragged:
        return frontier
    over = (frontier >= known_cells.lasts) & (known_cells.lasts < region.last)
    return torch.where(over, region.end - 1, frontier)


def is_final(slots: torch.Tensor, frontier: torch.Tensor) -> torch.Tensor:
    """[B, n] bool: which slots have final tokens; windows at a picture's end contain some."""
    return slots <= frontier[:, None]


def horizontal_estimates(state: DecodeState, slots: torch.Tensor, frontier: torch.Tensor,
                         k_h: int) -> torch.Tensor:
    """Estimates of h [N, n, d] for slots [B, n], drafted from the frontier [B, 1].

    Head d estimates the d-th cell after the frontier, the last head also those further on. A row
    end is not a cell: its estimate is never used.
    """
    hidden, embedding = state.hidden_at(frontier), state.embedding_at(frontier)
    heads = state.draft_heads.horizontal[:k_h]
    estimates = torch.cat([head(hidden, embedding) for head in heads], dim=1)
    cells = slots > frontier
    if state.row_end_mask is not None:
        cells = cells & ~state.row_end_mask[slots]
    head_index = cells.long().cumsum(-1).clamp(1, len(heads)) - 1
    index = head_index.repeat(state.branches, 1)[..., None]
    return estimates.gather(1, index.expand(-1, -1, estimates.shape[2]))
