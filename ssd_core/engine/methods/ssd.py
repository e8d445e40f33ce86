"""Spatially Speculative Decoding (SSD): heads draft whole rows, the backbone corrects them.

Drafts go in two directions (Figure 2 of the paper): k_h horizontal heads draft row 0 along the
raster, and k_v vertical heads draft the rows below it, a block of k_v at a time (Eq. 2: heads.py).
The backbone verifies a block in r rounds, which accept or repair each draft by itself (Eq. 4 and 5:
accept.py), and one more pass commits it: r + 1 passes, however long its rows are (section 3.3).
`RowSchedule.schedule` says this, with the staged verification of appendix A.3. methods/rows.py runs
the same schedule without heads.

In code the paper's p (Eq. 1) is `state.target_probs`, q is `draft_probs`. After a round the tokens
are samples from that round's p, which is therefore q in the next round. The cache is rolled back by
feeding again from `state.stale`, the first slot whose keys and values are not those of its token.

Two things differ from the paper. It takes the likeliest draft (`draft_choice` argmax); samples are
what Eq. 4 and 5 hold for. And the first cell of a block is sampled from p instead of drafted, as
the commit before it has computed its h. Known cells (regions), `fused_commit` and
`coupled` are additions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch

from ...backbones.base import Preset
from ...model.grid import LONGEST_SIDE, Grid
from ..events import Pass, Plan, blocks
from ..region import Region
from ..state import DecodeState
from .base import (
    Block,
    Method,
    cells_drafted,
    commit,
    drafted_by,
    drafting_noise,
    group_slots,
    horizontal_states,
    knob,
    make_plan,
    require,
    rounds,
    sample_draft,
    verification_rounds,
    vertical_states,
)
from .groups import drafted_cells, group_bounds, group_passes, groups
from .row_drafts import draft_by_row

if TYPE_CHECKING:
    from typing_extensions import Self


class Drafted(NamedTuple):
    """Rows that are drafted together: their masked slots start..stop-1.

    after: the first masked slot behind them, None if there is none.
    """

    rows: range
    start: int
    stop: int
    after: int | None

    @property
    def gap(self) -> bool:
        """Whether known slots lie between these rows and the next masked slot."""
        return self.after is not None and self.after != self.stop


class Verify(NamedTuple):
    """At most `most` rounds over slots begin..stop-1.

    stage: "vertical" over a whole block (the paper's base rounds), "staged" over a later row.
    """

    stage: str
    begin: int
    stop: int
    most: int


class Commit(NamedTuple):
    """A pass that makes keys, values and hidden states before `stop` final, if they are not."""

    stop: int


def drafted_rows(region: Region, k_v: int) -> list[Drafted]:
    """Split the rows with masked cells, except row 0, into blocks of up to k_v rows."""
    width, slots, found = region.grid.width, region.grid.slots, []
    slot = region.next(max(width, region.first))
    while slot < slots:
        y = slot // width
        start, stop = region.span(slot, min(y + k_v, region.grid.rows) * width)
        slot = region.next(stop)
        after = slot if slot < slots else None
        found.append(Drafted(range(y, (stop - 1) // width + 1), start, stop, after))
    return found


@dataclass(frozen=True)
class RowSchedule(Method):
    """b joint rounds over a block, then i rounds for each further row of it (staged).

    `rounds` is r = b of the paper, `incremental` is i; `schedule` is the whole order. With
    `coupled`, k_v 1 and at least as many rounds as columns, every row converges, including row 0,
    and the picture is AR's.
    """

    k_h: int = cells_drafted()
    k_v: int = knob(None, "Rows drafted at a time (a block).", low=1, high=LONGEST_SIDE,
                           visibility="basic", none_means="the model's own")
    rounds: int = verification_rounds(None)
    incremental: int = knob(
        None, "Extra rounds for each later row of a block; used when k_v is above 1.", low=0,
        visibility="basic", none_means="the model's own, or 0 where rounds are given")
    acceptance: str = knob(
        "residual", "residual: the paper's rule. coupled: sample again with the seed's own noise. "
                    "With both, rounds stop early once nothing changes.",
        choices=("residual", "coupled"))
    fused_commit: bool = knob(
        False, "Merge the commit of a block with the next block's first round: saves one pass "
               "per block.")

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        region, width = state.region, state.grid.width
        if region.first < width:  # along the raster, in groups of k_h drafts
            yield from groups(state, region.first, width, self.k_h, self._group_rounds(state.grid),
                              self.draft_group, self.acceptance,
                              commit_to=self._commit_first_row(region))
        for step in self.schedule(region):  # downwards, in blocks of k_v rows
            if isinstance(step, Drafted):
                rows, block = step.rows, self._draft(state, step)
            elif isinstance(step, Commit):
                yield from commit(state, step.stop)
            elif state.stale >= step.stop:  # earlier rounds have converged beyond this row
                state.stats.converged_rows += 1
            else:
                yield from self._verify(state, block, step)
                state.stats.converged_rows += state.stats.converged * (
                    1 if self.incremental else len(rows))
        state.final = state.slots

    def schedule(self, region: Region) -> Iterator[Drafted | Verify | Commit]:
        """The steps below row 0: draft a block, verify it in r rounds, commit it.

        A block takes r + 1 passes (section 3.3). In staged verification (appendix A.3) the r = b
        joint rounds are followed, for each later row, by a commit of the rows above it and i rounds
        of its own: i + 1 more passes. Each round makes at least one more cell final, so there are
        never more rounds than cells.
        """
        width, exact = region.grid.width, self._first_exact(region)
        for drafted in drafted_rows(region, self.k_v):
            yield drafted
            # with an exact h the first cell is sampled from p, and no round need verify it
            cells = region.count(drafted.start, drafted.stop) - exact
            yield Verify("vertical", drafted.start + exact, drafted.stop, min(self.rounds, cells))
            for y in drafted.rows[1:] if self.incremental else ():
                begin, stop = region.span(y * width, (y + 1) * width)
                if begin == stop:
                    continue
                if not self.fused_commit:
                    yield Commit(begin)
                    begin += 1  # the commit computes the exact h of the row's first cell
                yield Verify("staged", begin, stop,
                             min(self.incremental, region.count(begin, stop)))
            exact = not self.fused_commit or drafted.gap
            if exact and drafted.after is not None:
                yield Commit(drafted.after)

    def _draft(self, state: DecodeState, drafted: Drafted) -> Block:
        """Draft a block; its first cell is sampled from p."""
        start, stop = drafted.start, drafted.stop
        state.final = start
        state.stats.converged.fill_(False)
        draft_probs = self.draft_rows(state, drafted)
        state.sample(start)
        if self.acceptance != "coupled":
            draft_probs[:, :1] = state.target_probs(slice(start, start + 1))
        state.clock.lap("draft")
        return Block(start, stop, draft_probs, self.acceptance, state.grid.width)

    def _verify(self, state: DecodeState, block: Block, step: Verify) -> Iterator[Pass]:
        """Verify and repair a block in some rounds, or a later row of it after the rows above."""
        begin, before = step.begin, 0
        if step.stage == "staged":
            before = self.rounds
            state.final = first = begin - (not self.fused_commit)
            # the commit has computed the exact h of the row's first cell, which needs no pass
            if first < begin and not block.part(first, begin).verify(state, 0).all():
                state.stale = first
        elif state.stale == begin:  # no commit is pending: the first cell was sampled from exact h
            begin += 1
        numbers = range(before + 1, before + step.most + 1)
        yield from rounds(state, block.part(begin, step.stop), numbers, step.stage)

    def draft_group(self, state: DecodeState, begin: int, end: int) -> torch.Tensor:
        """Write drafts along the raster after slot `begin`; returns q [B, end - begin - 1, V]."""
        raise NotImplementedError

    def draft_rows(self, state: DecodeState, drafted: Drafted) -> torch.Tensor:
        """Write drafts for the slots of a block, from the row above it; returns q [B, n, V]."""
        raise NotImplementedError

    def plan(self, place: Grid | Region) -> Plan:
        """The passes of the schedule if every draft is rejected."""
        region = Region.of(place)
        passes, stale = 1 + self._first_row_passes(region), region.first
        for step in self.schedule(region):
            if isinstance(step, Verify) and step.most:
                passes, stale = passes + step.most, region.cell(step.begin)
            elif isinstance(step, Commit) and stale < step.stop:
                passes, stale = passes + 1, step.stop
        return make_plan(region, passes, passes, self._paper_passes(region.grid))

    def pass_width(self, grid: Grid) -> int:
        block = self.k_v * (1 + self.fused_commit) * grid.width
        return max(min(block, grid.slots), group_slots(grid, self.k_h))

    def _first_row_passes(self, region: Region) -> int:
        width = region.grid.width
        if region.first >= width:
            return 0
        saved = self._commit_first_row(region) is None
        rounds_ = self._group_rounds(region.grid)
        return group_passes(region, region.first, width, self.k_h, rounds_) - saved

    def _commit_first_row(self, region: Region) -> int | None:
        """Where the commit pass of row 0 ends, None if it has none.

        A fused commit replaces it, unless the last group is a single cell: no round feeds that
        cell, so the first cell of the next row would have no h.
        """
        width = region.grid.width
        begin, end = group_bounds(region, region.first, width, self.k_h)[-1]
        after = region.next(width)
        fused = self.fused_commit and drafted_cells(region, begin, end) and after == end
        return None if after == region.grid.slots or fused else after

    def _first_exact(self, region: Region) -> bool:
        """Whether the first block starts with a cell that is sampled from an exact h.

        Fused commits count as if it did not, unless known cells lie before it.
        """
        width = region.grid.width
        _, end = region.span(0, width)
        return not self.fused_commit or (region.first < width and region.next(width) != end)

    def _group_rounds(self, grid: Grid) -> int:
        """Rounds for a group of row 0: one, as in the paper, or enough for it to converge."""
        converging = self.acceptance == "coupled" and self.rounds >= grid.columns
        return self.k_h if converging else 1

    def _paper_passes(self, grid: Grid) -> int | None:
        first = 1 + 2 * math.ceil((grid.columns - 1) / self.k_h) + grid.row_end
        return first + sum((self.rounds + 1) + (len(rows) - 1) * (self.incremental + 1)
                           for rows in blocks(1, grid.rows, self.k_v))

    def resolve(self, preset: Preset) -> Self:
        """Like `Method.resolve`, but if `rounds` is set, an unset `incremental` becomes 0."""
        preset = preset if self.rounds is None else replace(preset, incremental=0)
        return super().resolve(preset)

    def check(self) -> None:
        require(((not self.fused_commit or self.rounds >= 1,
                  "fused_commit merges commits with rounds: set rounds to at least 1"),))

    def guarantee_on(self, grid: Grid) -> str:
        """Lossless if every draft is a sample and is verified once more after final tokens only.

        `residual` verifies the groups of row 0 in one round, which is enough for one draft.
        """
        first_row = self.acceptance != "residual" or self.k_h == 1
        lossless = self.samples_drafts() and first_row and self._converges(grid)
        return "same distribution" if lossless else self.guarantee

    def samples_drafts(self) -> bool:
        """Whether drafts are samples from q; `coupled` does not require it."""
        return True

    def _converges(self, grid: Grid) -> bool:
        """Whether there is a round for each cell of a block, or of each of its rows in turn."""
        joint = self.rounds >= min(self.k_v, grid.rows) * grid.columns
        staged = not self.fused_commit and min(self.rounds, self.incremental) >= grid.columns
        return joint or staged


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

    def draft_rows(self, state: DecodeState, drafted: Drafted) -> torch.Tensor:
        start, stop, top = drafted.start, drafted.stop, drafted.rows.start * state.grid.width
        if self.needs_row_drafter():
            state.sample(start)  # the drafts of the next cells depend on its token
            return self._drafted_by_row(state, start, stop, known_slots(state, 1))
        estimate = vertical_states(state, top, len(drafted.rows))[:, start - top : stop - top]
        return self._drafted(state, estimate, start, stop)

    def _drafted_by_row(self, state: DecodeState, start: int, stop: int,
                        known: torch.Tensor) -> torch.Tensor:
        """known: [B] int64, how many of the first slots are known already."""
        slots = state.noise.slots[start:stop].expand(state.pictures, -1)
        noise = drafting_noise(state, start, stop, self.acceptance, self.draft_choice)
        return draft_by_row(state, slots, noise, known, self.draft_temperature)

    def _drafted(self, state: DecodeState, estimate: torch.Tensor, start: int,
                 stop: int) -> torch.Tensor:
        """Turn estimates of h into q by the backbone's norm and head, and write drafts from q."""
        draft_probs = state.draft_probs(estimate, slice(start, stop), self.draft_temperature)
        sample_draft(state, start, draft_probs, self.acceptance, self.draft_choice)
        return draft_probs


def known_slots(state: DecodeState, count: int) -> torch.Tensor:
    """`count` for every picture, int64 [B]."""
    return state.noise.slots.new_full((state.pictures,), count)
