"""The cells that a run draws. All others are pinned: their tokens are given, with probability 1.

Kept rows are pinned cells too. Pictures of a batch may differ; steps that all pictures take
together go by the cells that are free in any of them.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

import torch
import torch.nn.functional as F

from ..errors import SSDError
from ..model.grid import Grid
from ..model.knobs import coerce


class Region:
    """free [B or 1, R, C] bool on the CPU: the cells to draw, at least one in every picture.

    by_rows: they are given as a number of kept rows; events then list kept cells that a pass feeds.
    """

    def __init__(self, grid: Grid, free: torch.Tensor, by_rows: bool = False) -> None:
        self.grid, self.free, self.by_rows = grid, free, by_rows
        cells = free.any(0).flatten().nonzero()[:, 0].tolist()
        self.cells = len(cells)  # free in any picture
        self.slots = [grid.slot(cell) for cell in cells]
        self.first, self.last = self.slots[0], self.slots[-1]
        before_row_end = grid.row_end and cells[-1] % grid.columns == grid.columns - 1
        self.end = self.last + 1 + before_row_end
        # by slot: whether the run decides it, as a free cell or as the row end after one
        self.open: list[bool] = (~self.certain.all(0)).tolist()

    @classmethod
    def below(cls, grid: Grid, rows: int) -> Region:
        """All cells but those of the first `rows` rows."""
        return cls(grid, (torch.arange(grid.rows) >= rows)[None, :, None].expand(
            1, -1, grid.columns), by_rows=True)

    @classmethod
    def of(cls, place: Grid | Region) -> Region:
        """The region itself, or all cells of a grid."""
        return place if isinstance(place, Region) else cls.below(place, 0)

    @property
    def kept_rows(self) -> int:
        """The number of rows at the top without a free cell."""
        return self.first // self.grid.width

    @cached_property
    def scattered(self) -> bool:
        """Whether any cell after the first free one is pinned in any picture."""
        y, x = divmod(self.first, self.grid.width)
        return not bool(self.free.flatten(1)[:, y * self.grid.columns + x :].all())

    @cached_property
    def ragged(self) -> bool:
        """Whether the pictures of the batch differ."""
        return bool((self.free != self.free[:1]).any())

    @cached_property
    def certain(self) -> torch.Tensor:
        """[B or 1, slots] bool: pinned cells, and the row ends after pinned cells."""
        free = self.free
        if self.grid.row_end:
            free = torch.cat((free, free[..., -1:]), dim=-1)
        return ~free.flatten(1)

    @cached_property
    def _next(self) -> list[int]:
        following, slot = [], self.grid.slots
        for index in range(self.grid.slots - 1, -1, -1):
            slot = index if self.open[index] else slot
            following.append(slot)
        return [*reversed(following), self.grid.slots]

    def next(self, slot: int) -> int:
        """The first open slot from `slot` on; the number of slots if there is none."""
        return self._next[slot]

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """From the first open slot of start..stop-1 to behind the last; (stop, stop): none."""
        while stop > start and not self.open[stop - 1]:
            stop -= 1
        return min(self.next(start), stop), stop

    def count(self, start: int, stop: int) -> int:
        """The number of free cells in slots start..stop-1."""
        return bisect_right(self.slots, stop - 1) - bisect_right(self.slots, start - 1)

    # Pictures of their own

    @cached_property
    def each(self) -> list[list[int]]:
        """The slots of the free cells of each picture."""
        width, columns = self.grid.width, self.grid.columns
        return [[cell // columns * width + cell % columns
                 for cell in free.flatten().nonzero()[:, 0].tolist()] for free in self.free]

    def ahead(self, picture: int, slot: int, count: int) -> int:
        """A picture's slot `count` free cells after `slot`, at most its last; `slot` if none."""
        own = self.each[picture % len(self.each)]
        index = bisect_right(own, slot)
        return max(slot, own[min(index + count, len(own)) - 1])

    @property
    def widest_rows(self) -> int:
        """The rows of the widest stretch of pinned cells, which one pass feeds."""
        gaps = (after - before for own in self.each
                for before, after in zip([-1, *own], own, strict=False))
        return max(gaps) // self.grid.width


class Pinned:
    """The pinned cells of a batch on its device, needed if they lie between free ones.

    certain [B, slots + 1] bool: pinned cells and row ends. codes [B, slots + 1] int64: their
    tokens, 0 at row ends. lasts [B]: the last free cell of each picture.
    """

    def __init__(self, region: Region, codes: torch.Tensor, row_end: torch.Tensor | None) -> None:
        """codes: the result of `by_slot`. row_end [slots + 1] bool."""
        device, slots = codes.device, region.grid.slots
        self.codes = codes
        certain = F.pad(region.certain.to(device), (0, 1)).expand(len(codes), -1)
        self.certain = certain if row_end is None else certain | row_end
        self.lasts = torch.tensor([own[-1] for own in region.each], device=device)
        most = max(map(len, region.each))
        order = torch.tensor([own + [region.end] * (most + 1 - len(own)) for own in region.each])
        free = F.pad(~region.certain, (0, 1))
        if region.grid.row_end:
            free[:, region.grid.columns :: region.grid.width] = False
        self._rank = free[:, : slots + 1].long().cumsum(1).to(device).expand(len(codes), -1)
        self._order = order.to(device).expand(len(codes), -1)

    def cells_on(self, slots: torch.Tensor, count: int) -> torch.Tensor:
        """The slots [B] of the `count`-th free cells after slots [B]; the run's end if none."""
        index = self._rank.gather(1, slots[:, None]) + count - 1
        return self._order.gather(1, index.clamp(max=self._order.shape[1] - 1))[:, 0]


def by_slot(grid: Grid, tokens: torch.Tensor) -> torch.Tensor:
    """Tokens [B, R, C] by slot, [B, slots + 1]; 0 at row ends and behind the picture."""
    return F.pad(F.pad(tokens.long(), (0, grid.row_end)).flatten(1), (0, 1))


def cells_on(grid: Grid, slots: torch.Tensor, count: int) -> torch.Tensor:
    """The slots [B] of the cells that are `count` cells after slots [B], not counting row ends."""
    if not grid.row_end:
        return slots + count
    y, x = slots // grid.width, slots % grid.width
    cell = y * grid.columns + (x + 1).clamp(max=grid.columns) + count - 1
    return cell // grid.columns * grid.width + cell % grid.columns


def region_of(grid: Grid, pictures: int = 1, keep_rows: int = 0,
              keep_mask: torch.Tensor | None = None) -> Region:
    """The cells to decode; raises SSDError if none are left or the mask does not fit."""
    keep_rows = coerce("keep_rows", keep_rows, int)
    if not 0 <= keep_rows < grid.rows:
        raise SSDError(f"keep_rows {keep_rows}: must lie in 0 .. {grid.rows - 1}")
    if keep_mask is None:
        return Region.below(grid, keep_rows)
    if keep_rows:
        raise SSDError("keep_rows and keep_mask: give one of them; a mask can hold whole rows too")
    if not isinstance(keep_mask, torch.Tensor) or keep_mask.dtype != torch.bool:
        raise SSDError(f"keep_mask: must be a tensor of bool, True for cells that stay, not "
                       f"{getattr(keep_mask, 'dtype', type(keep_mask).__name__)}")
    stays = keep_mask[None] if keep_mask.dim() == 2 else keep_mask
    if tuple(stays.shape[1:]) != (grid.rows, grid.columns) or len(stays) not in (1, pictures):
        raise SSDError(f"keep_mask: a mask of shape {tuple(keep_mask.shape)} does not fit "
                       f"{pictures} pictures of {grid}")
    if stays.flatten(1).all(1).any():
        raise SSDError("keep_mask: every cell is kept, so nothing is left to draw; set the cells "
                       "to draw to False")
    if not stays.any():
        raise SSDError("keep_mask: no cell is kept; set the cells to keep to True, or leave the "
                       "mask out")
    return Region(grid, ~stays.cpu())
