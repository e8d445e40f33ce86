"""Groups of cells in raster order: row 0 of `ssd`, or a whole picture by `mtp` and `jacobi`."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from .. import repeat_near_ties
from ..events import Pass
from ..region import Region
from ..state import DecodeState
from .base import Block, Draft, commit, rounds


def group_bounds(region: Region, start: int, stop: int, k: int) -> list[tuple[int, int]]:
    """Split slots start..stop-1 into groups: one sampled, up to k drafted cells, row ends.

    A group also covers stretches of at most k known slots between its cells.
    """
    bounds: list[tuple[int, int]] = []
    end, cells = start, 0
    for slot in (slot for slot in range(start, stop) if region.slot_mask[slot]):
        row_end = region.grid.is_row_end(slot)
        if bounds and (slot - end <= k if cells <= k else row_end and slot == end):
            bounds[-1] = (bounds[-1][0], slot + 1)
        else:
            bounds.append((slot, slot + 1))
            cells = 0
        end, cells = slot + 1, cells + (not row_end)
    return bounds


def drafted_cells(region: Region, begin: int, end: int) -> int:
    """The number of drafted cells in a group: all but its first, which is sampled, and row ends."""
    return region.count(begin + 1, end)


def group_passes(region: Region, start: int, stop: int, k: int, rounds_: int) -> int:
    """Passes that `groups` takes, including the last group's commit."""
    return sum(1 + min(rounds_, drafted_cells(region, begin, end))
               for begin, end in group_bounds(region, start, stop, k))


def converged(state: DecodeState, block: Block, last: int) -> Generator[Pass, None, bool]:
    """Run rounds over a block until it converges, and repeat its near ties as AR makes them.

    After each token that changes, the cells after it converge again. Returns False, with nothing
    settled, once the run would take more passes than AR does.
    """
    slot: int | None = block.start
    while slot:
        block = block if slot == block.start else block.part(slot, block.stop)
        if repeat_near_ties.beyond_ar(state, 1):
            return False
        for each in rounds(state, block, range(1, last + 1), "horizontal"):
            yield each
            if state.stale < block.stop and repeat_near_ties.beyond_ar(state, 1):
                return False
        if slot := (yield from repeat_near_ties.recheck(state, block.start, block.stop)):
            state.stale = slot
    return True


def groups(state: DecodeState, start: int, stop: int, k: int, rounds_: int, draft: Draft,
           acceptance: str, commit_to: int | None) -> Iterator[Pass]:
    """Decode in groups: row 0 of SSD, or a whole picture by 1-D multi-token prediction.

    A group's commit feeds everything before the next group, and also computes the exact h of its
    first slot, which then needs no extra pass. commit_to: where the last commit ends; None: none.
    """
    bounds = group_bounds(state.region, start, stop, k)
    following = [*(begin for begin, _ in bounds[1:]), commit_to]
    for (begin, end), after in zip(bounds, following, strict=True):
        state.sample(begin)
        if ties := acceptance == "coupled" and bool(state.margin):
            yield from repeat_near_ties.recheck(state, begin, begin + 1)
        if cells := drafted_cells(state.region, begin, end):
            block = Block(begin + 1, end, draft(state, begin, end), acceptance, reach=1)
            state.clock.lap("draft")
            last = min(rounds_, cells)  # each round makes at least one more cell final
            if not ties:
                yield from rounds(state, block, range(1, last + 1), "horizontal")
            elif not (yield from converged(state, block, last)):
                yield from repeat_near_ties.cells_by_ar(state, stop)
                end, after = stop, commit_to
        if after is not None:
            yield from commit(state, after)
        state.final = end
        if end == stop:
            return
