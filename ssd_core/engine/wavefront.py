"""Bookkeeping for several rows in flight: which slots a pass feeds, what they see, what is final.

Every row stays `delay` cells behind the row above. Knows no tokens and no probabilities.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F

from ..model.grid import Grid
from .region import Region


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
