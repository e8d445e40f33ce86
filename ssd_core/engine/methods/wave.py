"""Several rows in flight: a row starts as soon as the row above is `delay` cells ahead.

With one cell per row and pass this is ZipAR (2412.04062); with several it is parallel Jacobi
decoding (PJD, 2606.05703), which requires the delay only at a row's start. A cell sees the final
cells above and its own row. The approximation is that it does not see the ends of the rows above,
beyond the delay.

The delay affects quality. The number of cells affects only speed while cells are verified: from 2
to 24 cells, passes fall from 186 to 121, and neither NLL nor claims change by more than their
errors (lab/benchmarks/results/README.md). So the machine's step times may choose it. With
verification "none" more cells lower the quality, so they never do.

Without row ends, the token before a row may be unknown when the row starts. The last final token of
the row above then replaces it; only the row's first cell sees this placeholder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
import torch.nn.functional as F

from ...model.grid import LONGEST_SIDE, Grid
from ...model.noise import Purpose
from .. import accept
from ..events import Pass, Plan
from ..region import Region
from ..state import DecodeState
from .base import knob, make_plan, one_hot
from .window import Tunable

CELLS = (2, 3, 4, 6, 8, 12, 16, 24)  # cells per row that step times may choose
OPEN = 8  # cells per row if nothing is chosen


class Wavefront:
    """The progress of every row of every picture, and the next pass.

    done [B, R]: final cells of each row. Masks [B, slots]: `final`; `seen`, the cache holds the
    final token; `fed`, the next pass feeds it; `open`, the next pass samples its token;
    `placeholder`, fed before a row although not final. slots [B, n]: the slots to feed, of which
    the first `n_context` are no drafts. A picture that feeds fewer slots than another repeats one
    of its own slots, which changes nothing.
    """

    def __init__(self, region: Region, pictures: int, delay: int, cells: int,
                 device: torch.device) -> None:
        grid, (first_row, column) = region.grid, divmod(region.first, region.grid.width)
        self.grid, self.delay, self.cells = grid, min(delay, grid.columns), cells
        self.y, self.x = grid.coordinates.to(device).unbind(-1)
        self.place = torch.arange(grid.slots, device=device)
        self.row_end = self.x == grid.columns
        self.done = torch.zeros(pictures, grid.rows, dtype=torch.long, device=device)
        self.done[:, :first_row], self.done[:, first_row] = grid.columns, column + 1
        self.seen = (self.place < region.first).expand(pictures, -1)
        self.scattered = region.scattered
        self.known = region.known.to(device).expand(pictures, -1)
        self.free_from = next_free(region).to(device).expand(pictures, -1, -1)
        self.look_ahead()

    def look_ahead(self) -> None:
        """Decide what the next pass feeds."""
        columns = self.grid.columns
        if self.scattered:
            self._pass_over_known()
        self.above = F.pad(self.done[:, :-1], (1, 0), value=columns)
        behind = (self.above - self.delay + 1).clamp(min=0)
        self.limit = torch.where(self.above < columns, behind, columns)
        growing = (self.done < columns) & (self.limit > 0)
        starting = F.pad(growing & (self.done == 0), (0, 1))[:, self.y + 1]
        done, growing = self.done[:, self.y], growing[:, self.y]
        self.final = self.x < done
        front = growing & (self.x == done - 1) | self.final & ~self.seen
        if self.scattered:  # row ends above rows that begin with a known cell
            front = front | self.row_end & ~self.seen & (done == columns)
        leading = starting & (self.x == self.grid.width - 1)
        self.placeholder = leading & ~self.final & ~self.row_end
        window = growing & ~self.final & ~self.row_end
        self.open = window & (self.x < done + self.cells)
        drafts = window & (self.x < (done + self.cells).clamp(max=columns) - 1)
        self._order_slots(torch.where(drafts, 2, 3).masked_fill(leading, 1).masked_fill(front, 0))

    def _pass_over_known(self) -> None:
        """Make known cells final that follow the final cells of a row, up to its limit."""
        columns = self.grid.columns
        for y in range(self.grid.rows):
            own = self.done[:, y : y + 1]
            above = self.done[:, y - 1 : y] if y else torch.full_like(own, columns)
            limit = (above - self.delay + 1).clamp(min=0).masked_fill(above == columns, columns)
            free = self.free_from[:, y].gather(1, own)
            self.done[:, y : y + 1] = torch.maximum(own, torch.minimum(free, limit))

    def _order_slots(self, order: torch.Tensor) -> None:
        """Sort slots by order [B, slots]: final or forced 0, placeholders 1, drafts 2, not fed 3.

        This is the run's only wait for the device.
        """
        self.fed = order < 3
        known, fed = (order < 2).sum(1), self.fed.sum(1)
        complete = (self.done == self.grid.columns).long().cumprod(1).sum(1)
        self.complete, self.n_context, drafts, self.stop = torch.stack((
            complete.min(), known.max(), (fed - known).max(),
            (self.fed * (self.place + 1)).max())).tolist()
        ordered = order.argsort(dim=1, stable=True)
        first = torch.where(self.place[: self.n_context] < known[:, None],
                            ordered[:, : self.n_context], ordered[:, :1])
        index = (known[:, None] + self.place[:drafts]).minimum((fed[:, None] - 1).clamp(min=0))
        self.slots = torch.cat((first, ordered.gather(1, index)), 1)

    def visible(self) -> torch.Tensor:
        """[B, n, stop] bool: a slot sees final tokens before it and all fed slots of its row."""
        known = self.seen | self.fed & (self.final | self.row_end)
        own = self.y[self.slots][..., None] == self.y[: self.stop]
        before = self.place[: self.stop] <= self.slots[..., None]
        return (known[:, None, : self.stop] | self.fed[:, None, : self.stop] & own) & before

    def reported_slots(self) -> torch.Tensor:
        """The slots [B, n], with a final slot in place of each placeholder."""
        replaced = self.placeholder.gather(1, self.slots)
        return torch.where(replaced, self.slots[:, :1], self.slots)

    def advance(self, unchanged: torch.Tensor, again: torch.Tensor | None) -> None:
        """Make the open cells of each row final up to and including the first that changed.

        unchanged [B, slots] bool. again [B, slots] bool or None: with it, a row's first cell is
        final only if it is True there or if the row above is complete.
        """
        rows = (self.grid.rows, self.grid.width)
        whole = (self.final | unchanged).unflatten(1, rows).long().cumprod(-1).sum(-1)
        sampled = self.done + self.open.unflatten(1, rows).sum(-1)
        done = torch.minimum(whole + 1, sampled).minimum(self.limit)
        if again is not None:
            waits = (self.done == 0) & (self.above < self.grid.columns)
            done = torch.where(waits & ~again.unflatten(1, rows)[..., 0], 0, done)
        self.done = done

    def stored(self, same: torch.Tensor) -> torch.Tensor:
        """[B, slots] bool: where the pass fed a token that is final now; same: it is unchanged."""
        now = same & (self.row_end | (self.x < self.done[:, self.y]))
        self.seen = self.seen | self.fed & now
        return now


def next_free(region: Region) -> torch.Tensor:
    """[B or 1, R, C + 1]: the first free column of each row from each column on; C if none."""
    columns = region.grid.columns
    place = torch.arange(columns).expand_as(region.mask).masked_fill(~region.mask, columns)
    return F.pad(place.flip(-1).cummin(-1).values.flip(-1), (0, 1), value=columns)


def passes_at_once(place: Grid | Region, delay: int, cells: int) -> int:
    """The passes over a region if every cell is final as soon as it is sampled."""
    region = Region.of(place)
    mask = tuple(region.mask.any(0).flatten().tolist())
    return counted(region.grid, mask, delay, cells)


@lru_cache(1024)  # a plan asks for a few dozen
def counted(grid: Grid, is_free: tuple[bool, ...], delay: int, cells: int) -> int:
    """`passes_at_once` of a region, by whether each cell is free in any picture."""
    region = Region(grid, torch.tensor(is_free).view(1, grid.rows, grid.columns))
    passes, free = 1, next_free(region)[0].tolist()
    columns, (first, column) = region.grid.columns, divmod(region.first, region.grid.width)
    done = [column + 1] + [0] * (region.grid.rows - 1 - first)

    def limit(above: int) -> int:
        return columns if above == columns else max(above - delay + 1, 0)

    def over_known(done: list[int]) -> list[int]:
        above, reached = columns, []
        for y, own in enumerate(done, first):
            above = max(own, min(free[y][own], limit(above)))
            reached.append(above)
        return reached

    done = over_known(done)
    while done[-1] < columns:
        above = [columns, *done]
        done = over_known([min(own + cells, limit(over))
                            for own, over in zip(done, above, strict=False)])
        passes += 1
    return passes


@dataclass(frozen=True)
class Wave(Tunable):
    """Decodes several rows side by side, each some cells behind the row above."""

    delay: int = knob(
        9, "Cells that each row stays behind the row above; a whole row or more is AR's order.",
        low=1, high=LONGEST_SIDE, visibility="basic")
    cells: int | None = knob(
        None, "Cells of each row in flight that a pass samples.", low=1, high=LONGEST_SIDE,
        visibility="basic",
        none_means=str(OPEN))
    verification: str = knob(
        "coupled", "When a cell beyond a row's next one is final. coupled: once it is sampled "
                   "again with the seed's own noise. residual: by the rule of p/q. none: at once.",
        choices=("coupled", "residual", "none"))
    adaptive: bool = knob(
        False, "Keep a row's first cell only if it is sampled again one cell later.")
    name: ClassVar[str] = "wave"
    window_knob: ClassVar[str] = "cells"

    @property
    def each(self) -> int:
        """Cells per row and pass."""
        return self.cells or OPEN

    def windows(self, grid: Grid) -> Sequence[int]:
        return [size for size in CELLS if size <= grid.columns]

    def default_window(self, grid: Grid, device: str, cells: int | None = None) -> int:
        return OPEN

    def slowest_passes(self, grid: Grid) -> int:
        return passes_at_once(grid, min(self.delay, grid.columns), 1)

    def typical_pass_width(self, grid: Grid) -> int:
        """The cells of a typical pass, from the rows in flight and the open cells of each.

        The end of a row, or of the final cells above, cuts off a part of many cells: on postcard a
        pass has 2.6 cells at 1, 14 at 8 and 26 at 24.
        """
        rows = min(grid.columns / min(self.delay, grid.columns), grid.rows)
        return max(1, round(rows * self.each / (1 + self.each * 1.5 / grid.columns)))

    def guarantee_on(self, grid: Grid) -> str:
        """After whole rows every cell sees all that AR sees; then only unverified cells differ."""
        verified = self.verification != "none" or self.cells == 1
        whole = self.delay >= grid.columns
        return "same distribution" if whole and verified else self.guarantee

    def plan(self, place: Grid | Region) -> Plan:
        region = Region.of(place)
        grid, delay = region.grid, min(self.delay, region.grid.columns)
        waiting = self.adaptive and delay < grid.columns
        most = passes_at_once(region, grid.columns if waiting else delay,
                              self.each if self.verification == "none" else 1)
        known = not waiting and (self.verification == "none" or self.cells == 1)
        known = known and not region.ragged
        return make_plan(region, most if known else None, most, None)

    def pass_width(self, grid: Grid) -> int:
        in_flight = min(-(-grid.columns // min(self.delay, grid.columns)) + 1, grid.rows)
        each = self.each * (2 if self.verification == "none" else 1) + 1
        return min(in_flight * min(each, grid.width), grid.slots)

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        state.sample(state.region.first)
        front = Wavefront(state.region, state.pictures, self.delay, self.each,
                          state.tokens.device)
        drafts = Drafts(state, front, self)
        while front.complete < state.grid.rows:
            state.stats.finished_early += front.done[:, -1] == state.grid.columns
            drafts.fill()
            state.clock.lap("draft")
            state.feed_seeing(front.slots, front.visible())
            slots, n_context = front.reported_slots(), front.n_context
            accepted, unchanged = (mask.gather(1, slots) for mask in drafts.verify())
            front.look_ahead()
            state.clock.lap("verify")
            state.final = front.complete * state.grid.width
            yield state.record_pass_at(slots, accepted, unchanged, n_context)
        state.final = state.slots  # a picture of one cell takes no pass


class Drafts:
    """The tokens of a wavefront's open cells: first drafts, and the samples of each pass.

    has_token, is_sampled [B, slots] bool: the slot has a token; the last pass sampled it.
    """

    def __init__(self, state: DecodeState, front: Wavefront, method: Wave) -> None:
        self.state, self.front, self.method = state, front, method
        self.is_sampled = torch.zeros_like(front.seen)
        self.has_token = front.known & ~front.row_end
        self.probs: torch.Tensor | None = None  # [B, n, V] of the last pass, at `index`
        self.index = torch.zeros_like(state.tokens)

    def fill(self) -> None:
        """Copy the token above, or the nearest final token, to slots that enter without a token.

        Row 0 and placeholders take the last final token of their own row.
        """
        front, tokens = self.front, self.state.tokens[:, :-1]
        row = torch.where((front.y == 0) | front.placeholder, front.y, front.y - 1)
        column = torch.minimum(front.x, (front.done.gather(1, row) - 1).clamp(min=0))
        entering = front.fed & ~front.final & ~front.row_end & ~self.has_token
        source = row * self.state.grid.width + column
        tokens.copy_(torch.where(entering, tokens.gather(1, source), tokens))
        self.has_token = self.has_token | entering

    def verify(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose the open cells and advance the wavefront.

        Returns two masks [B, slots]: which fed tokens are final now, and which are unchanged.
        """
        state, front = self.state, self.front
        next_slots, fed = front.slots + 1, state.tokens[:, :-1].clone()
        state.write(next_slots, self._sampled(next_slots))
        same = fed == state.tokens[:, :-1]
        again = front.open & self.has_token & same
        front.advance(front.open if self.method.verification == "none" else again,
                      again & self.is_sampled if self.method.adaptive else None)
        self.has_token, self.is_sampled = self.has_token | front.open, front.open
        unchanged = again | front.final
        return front.stored(same), unchanged

    def _sampled(self, next_slots: torch.Tensor) -> torch.Tensor:
        """Tokens [B, n] for `next_slots`: new tokens where the slots are open."""
        state, noise, old = self.state, self.state.noise, self.state.codes(next_slots)
        probs = state.target_probs(next_slots)
        tokens = accept.coupled(old, probs, noise.fixed_at(next_slots)).tokens
        if self.method.verification == "residual":
            result = accept.residual(old, self._draft_probs(next_slots, old), probs,
                                     noise.uniform(Purpose.ACCEPT, state.passes, next_slots),
                                     noise.fresh(Purpose.REPAIR, state.passes, next_slots))
            tokens = torch.where(at(next_slots, self.has_token), result.tokens, tokens)
            # pictures whose masks differ may feed more slots together than a picture has
            index = torch.arange(next_slots.shape[1], device=old.device).expand_as(next_slots)
            self.probs = probs
            self.index = torch.zeros_like(self.index).scatter(1, next_slots, index)
        return torch.where(at(next_slots, self.front.open), tokens, old)

    def _draft_probs(self, next_slots: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        """q [B, n, V]: p of the last pass where it sampled the token, else 1 for the copied one."""
        copied = one_hot(self.state, old)
        if self.probs is None:
            return copied
        index = self.index.gather(1, next_slots)[..., None].expand(-1, -1, copied.shape[2])
        from_last_pass = at(next_slots, self.is_sampled)[..., None]
        return torch.where(from_last_pass, self.probs.gather(1, index), copied)


def at(slots: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """mask [B, slots of the picture] at slots [B, n]; False after the picture."""
    return F.pad(mask, (0, 1)).gather(1, slots)
