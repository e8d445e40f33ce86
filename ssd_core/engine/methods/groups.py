"""Groups of cells in raster order: row 0 of `ssd`, or a whole picture by `mtp` and `jacobi`."""

from __future__ import annotations

from collections.abc import Iterator

from .. import repeat_near_ties
from ..events import Pass
from ..region import Region
from ..state import DecodeState
from .base import Block, Draft, commit, rounds


def group_bounds(region: Region, start: int, stop: int, k: int) -> list[tuple[int, int]]:
    """Split slots start..stop-1 into groups: one sampled, up to k drafted cells, row ends.

    A group also covers stretches of at most k known slots between its cells.
    """
    grid, bounds = region.grid, []
    begin = slot = region.next(start)
    while begin < stop:
        cells = 0
        while slot < stop and (cells <= k or grid.is_row_end(slot)):
            cells += not grid.is_row_end(slot)
            end, slot = slot + 1, region.next(slot + 1)
            if slot - end > (k if cells <= k else 0):
                break
        bounds.append((begin, end))
        begin = slot
    return bounds


def drafted_cells(region: Region, begin: int, end: int) -> int:
    """The number of drafted cells in a group: all but its first, which is sampled, and row ends."""
    return region.count(begin + 1, end)


def group_passes(region: Region, start: int, stop: int, k: int, rounds_: int) -> int:
    """Passes that `groups` takes, including the last group's commit."""
    return sum(1 + min(rounds_, drafted_cells(region, begin, end))
               for begin, end in group_bounds(region, start, stop, k))


def converged_again(state: DecodeState, start: int, block: Block, last: int) -> Iterator[Pass]:
    """Repeat the near ties of a converged block as AR makes them.

    After each token that changes, runs rounds over the cells after it until they converge.
    """
    while (slot := (yield from repeat_near_ties.recheck(state, start, block.start, block.stop))):
        block = block.part(slot, block.stop)
        state.stale = slot
        yield from rounds(state, block, range(1, last + 1), "horizontal")


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
        if acceptance == "coupled" and state.margin:
            yield from repeat_near_ties.recheck(state, start, begin, begin + 1)
        if cells := drafted_cells(state.region, begin, end):
            block = Block(begin + 1, end, draft(state, begin, end), acceptance, reach=1)
            state.clock.lap("draft")
            last = min(rounds_, cells)  # each round makes at least one more cell final
            yield from rounds(state, block, range(1, last + 1), "horizontal")
            if acceptance == "coupled" and state.margin:
                yield from converged_again(state, start, block, last)
        if after is not None:
            yield from commit(state, after)
        state.final = end
