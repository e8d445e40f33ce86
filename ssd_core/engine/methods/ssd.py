"""Spatially Speculative Decoding: heads draft whole rows; the backbone verifies and repairs them.

Horizontal heads draft row 0 along the raster. Vertical heads draft every further block of up to k_v
rows from the row above it (paper, section 3.3 and appendix A.3). methods/rows.py runs the same
schedule without heads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import torch

from ...backbones.base import Preset
from ...model.grid import LONGEST_SIDE, Grid
from ..events import Pass
from ..plan import Plan, blocks
from ..state import DecodeState
from .base import (
    Block,
    Method,
    Redraft,
    commit,
    drafted_cells,
    drafting_noise,
    group_bounds,
    group_passes,
    group_slots,
    groups,
    horizontal_states,
    make_plan,
    require,
    rounds,
    sample_draft,
    vertical_states,
)
from .knobs import cells_drafted, drafted_by, knob, verification_rounds
from .row_drafts import draft_by_row

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class RowSchedule(Method):
    """b joint rounds over a block, then i rounds for each further row of it (staged).

    `rounds` is r = b of the paper, `incremental` is i. With `coupled`, k_v 1 and at least as many
    rounds as columns, every row converges, including row 0, and the picture is AR's. Each round
    makes at least one more cell final, so a block never needs more rounds than it has cells.
    """

    k_h: int = cells_drafted()
    k_v: int = knob(None, "Rows drafted at a time (a block).", low=1, high=LONGEST_SIDE,
                           visibility="basic", none_means="the backbone's own")
    rounds: int = verification_rounds(None)
    incremental: int = knob(
        None, "Extra rounds for each later row of a block; used when k_v is above 1.", low=0,
        visibility="basic", none_means="the backbone's own, or 0 where rounds are given")
    acceptance: str = knob(
        "residual", "residual: the paper's rule. coupled: choose again with the seed's own noise. "
                    "prefix: only up to the first rejection, as strict does. With all, rounds "
                    "stop early once nothing changes.",
        choices=("residual", "coupled", "prefix"))
    fused_commit: bool = knob(
        False, "Merge the commit of a block with the next block's first round: saves one pass "
               "per block.")
    tolerance: float = knob(
        0.0, "Skip a block's remaining rounds once a round was expected to reject at most this "
             "many cells per row; 0 skips them only once nothing changes.", low=0,
        high=LONGEST_SIDE, step=0.5)

    def resolve(self, preset: Preset) -> Self:
        """Like `Method.resolve`, but if `rounds` is set, an unset `incremental` becomes 0."""
        preset = preset if self.rounds is None else replace(preset, incremental=0)
        return super().resolve(preset)

    def check(self) -> None:
        require(((not self.fused_commit or self.rounds >= 1,
                  "fused_commit merges commits with rounds: set rounds to at least 1"),
                 (not (self.fused_commit and self.tolerance),
                  "tolerance ends each picture's rounds separately, fused_commit joins them with "
                  "the next block's: set tolerance to 0 or switch fused_commit off")))

    def verdict_on(self, grid: Grid) -> str:
        """Lossless if every draft is a sample and is verified once more after final tokens only.

        `residual` verifies the groups of row 0 in one round, which is enough for one draft.
        """
        first_row = self.acceptance != "residual" or self.k_h == 1
        lossless = self.samples_drafts() and first_row and self._converges(grid)
        return "same distribution" if lossless else self.verdict

    def samples_drafts(self) -> bool:
        """Whether drafts are samples from q; `coupled` does not require it."""
        return True

    def _converges(self, grid: Grid) -> bool:
        """Whether there is a round for each cell of a block, or of each of its rows in turn."""
        joint = self.rounds >= min(self.k_v, grid.rows) * grid.columns
        staged = not self.fused_commit and min(self.rounds, self.incremental) >= grid.columns
        return (joint or staged) and not self.tolerance

    def plan(self, grid: Grid, first_row: int = 0) -> Plan:
        passes = 1 + self._first_row_passes(grid, first_row) + sum(
            self._block_passes(grid, len(rows), rows.stop == grid.rows)
            for rows in blocks(max(1, first_row), grid.rows, self.k_v))
        return make_plan(grid, first_row, None if self.tolerance else passes, passes,
                         self._paper_passes(grid))

    def widest_pass(self, grid: Grid) -> int:
        block = self.k_v * (1 + self.fused_commit) * grid.width
        return max(min(block, grid.slots), group_slots(grid, self.k_h))

    def _first_row_passes(self, grid: Grid, first_row: int) -> int:
        if first_row:
            return 0
        saved = not self._commits_first_row(grid)
        return group_passes(grid, 0, grid.width, self.k_h, self._group_rounds(grid)) - saved

    def _commits_first_row(self, grid: Grid) -> bool:
        """Whether row 0 ends with a commit pass.

        A fused commit replaces it, unless the last group is a single cell: no round feeds that
        cell, so the first cell of the next row would have no h.
        """
        begin, end = group_bounds(grid, 0, grid.width, self.k_h)[-1]
        return grid.rows > 1 and not (self.fused_commit and drafted_cells(grid, begin, end))

    def _group_rounds(self, grid: Grid) -> int:
        """Rounds for a group of row 0: one, as in the paper, or enough for it to converge."""
        converging = self.acceptance != "residual" and self.rounds >= grid.columns
        return self.k_h if converging else 1

    def _useful(self, rounds_: int, cells: int) -> int:
        """At most one round per drafted cell; the first cell is exact unless commits are fused."""
        return min(rounds_, cells - (not self.fused_commit))

    def _block_passes(self, grid: Grid, rows: int, last: bool) -> int:
        joint = self._useful(self.rounds, rows * grid.columns)
        staged = (rows - 1) * self._useful(self.incremental, grid.columns)
        if self.fused_commit:
            return joint + staged
        commits = 1
        if self.incremental:  # a first row of one cell is exact and needs no commit once fed
            commits = rows - (grid.columns == 1 and joint > 0)
        return joint + staged + commits - last

    def _paper_passes(self, grid: Grid) -> int | None:
        first = 1 + 2 * math.ceil((grid.columns - 1) / self.k_h) + grid.row_end
        return first + sum((self.rounds + 1) + (len(rows) - 1) * (self.incremental + 1)
                           for rows in blocks(1, grid.rows, self.k_v))

    def draft_group(self, state: DecodeState, begin: int, end: int) -> torch.Tensor:
        """Write drafts after slot `begin`; returns their draft_probs [B, end - begin - 1, V]."""
        raise NotImplementedError

    def draft_rows(self, state: DecodeState, start: int, rows: int) -> torch.Tensor:
        """Write drafts for `rows` rows from slot `start` on; returns draft_probs [B, n, V]."""
        raise NotImplementedError

    def redraft(self) -> Redraft | None:
        """A function that drafts the slots after a repair again; None: drafts would not change."""
        return None

    def steps(self, state: DecodeState, first_row: int) -> Iterator[Pass]:
        grid = state.grid
        if first_row == 0:
            yield from groups(state, 0, grid.width, self.k_h, self._group_rounds(grid),
                              self.draft_group, self.acceptance,
                              last_commit=self._commits_first_row(grid))
        for rows in blocks(max(1, first_row), grid.rows, self.k_v):
            yield from self._block(state, rows)

    def _block(self, state: DecodeState, rows: range) -> Iterator[Pass]:
        width = state.grid.width
        start, stop = rows.start * width, rows.stop * width
        state.stats.converged.fill_(False)
        draft_probs = self.draft_rows(state, start, len(rows))
        state.choose(start)
        if self.acceptance != "coupled":
            draft_probs[:, :1] = state.target_probs(start, start + 1)
        state.clock.lap("draft")
        # The first slot was sampled from an exact h, unless a fused commit is still pending.
        begin = start if state.stale < start else start + 1
        block = Block(begin, stop, draft_probs[:, begin - start :], self.acceptance, width,
                      self.redraft(), self.tolerance)
        last = self._useful(self.rounds, len(rows) * state.grid.columns)
        yield from rounds(state, block, range(1, last + 1), "vertical")
        state.stats.converged_rows += state.stats.converged * (1 if self.incremental else len(rows))
        if self.incremental:
            yield from self._staged(state, block, rows)
        if not self.fused_commit and stop < state.slots:
            yield from commit(state, stop)
        state.final = stop

    def _staged(self, state: DecodeState, block: Block, rows: range) -> Iterator[Pass]:
        """Commit a row, then refine the next row with the corrected row as its context."""
        width = state.grid.width
        last = self.rounds + self._useful(self.incremental, state.grid.columns)
        for y in rows[1:]:
            begin, end = y * width, (y + 1) * width
            if state.stale >= end:
                state.stats.converged_rows += 1
                continue
            if not self.fused_commit:
                yield from commit(state, begin)
                if not block.part(begin, begin + 1).verify(state, 0).all():  # its h is now exact
                    state.stale = begin
            state.final = begin
            part = block.part(begin + (not self.fused_commit), end)
            yield from rounds(state, part, range(self.rounds + 1, last + 1), "staged")
            state.stats.converged_rows += state.stats.converged


@dataclass(frozen=True)
class SSD(RowSchedule):
    """The paper's method. By default drafts are sampled from q, as Eq. 4 and 5 require."""

    draft_choice: str = knob(
        "sample", "How drafts are picked from the heads' distribution: by sampling, or the "
                  "likeliest token.", choices=("sample", "argmax"))
    draft_temperature: float = knob(
        1.0, "Temperature of the drafts, multiplied by the sampling temperature.", above=0,
        high=10, step=0.05)
    drafter: str = drafted_by()
    name: ClassVar[str] = "ssd"
    uses_heads: ClassVar[bool] = True

    def heads_needed(self, grid: Grid) -> tuple[int, int]:
        if self.needs_row_drafter():
            return 0, 0
        return min(self.k_h, grid.columns - 1), min(self.k_v, grid.rows - 1)

    def samples_drafts(self) -> bool:
        return self.draft_choice == "sample" or self.acceptance == "coupled"

    def draft_group(self, state: DecodeState, begin: int, end: int) -> torch.Tensor:
        if self.needs_row_drafter():
            return self._drafted_by_row(state, begin + 1, end, known_slots(state, 0))
        return self._drafted(state, horizontal_states(state, begin, end), begin + 1, end)

    def draft_rows(self, state: DecodeState, start: int, rows: int) -> torch.Tensor:
        stop = start + rows * state.grid.width
        if self.needs_row_drafter():
            state.choose(start)  # the drafts of the next cells depend on its token
            return self._drafted_by_row(state, start, stop, known_slots(state, 1))
        return self._drafted(state, vertical_states(state, start, rows), start, stop)

    def redraft(self) -> Redraft | None:
        return self._drafted_by_row if self.needs_row_drafter() else None

    def _drafted_by_row(self, state: DecodeState, start: int, stop: int,
                        fixed: torch.Tensor) -> torch.Tensor:
        """fixed: [B] int64, how many of the first slots are known already."""
        slots = state.noise.slots[start:stop].expand(state.pictures, -1)
        noise = drafting_noise(state, start, stop, self.acceptance, self.draft_choice)
        return draft_by_row(state, slots, noise, fixed, self.draft_temperature)

    def _drafted(self, state: DecodeState, estimate: torch.Tensor, start: int,
                 stop: int) -> torch.Tensor:
        draft_probs = state.draft_probs(estimate, slice(start, stop), self.draft_temperature)
        sample_draft(state, start, draft_probs, self.acceptance, self.draft_choice)
        return draft_probs


def known_slots(state: DecodeState, count: int) -> torch.Tensor:
    """`count` for every picture, int64 [B]."""
    return state.noise.slots.new_full((state.pictures,), count)
