"""The cells that a run draws. All others are known: their tokens have probability 1.

Kept rows are known cells too. Pictures of a batch may differ; steps that all pictures take
together go by the cells that are masked in any of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property

import torch
import torch.nn.functional as F

from ..errors import SSDError
from ..model.grid import Grid
from ..model.knobs import coerce
from ..model.surroundings import undisturbed


class Region:
    """mask [B or 1, R, C] bool on the CPU: True for cells to draw, at least one in every picture.

    by_rows: they are given as a number of kept rows; events then list kept cells that a pass feeds.
    """

    def __init__(self, grid: Grid, mask: torch.Tensor, by_rows: bool = False) -> None:
        self.grid, self.mask, self.by_rows = grid, mask, by_rows
        cells = mask.any(0).flatten().nonzero()[:, 0].tolist()
        self.cells = len(cells)  # masked in any picture
        self.slots = [grid.slot(cell) for cell in cells]
        self.first, self.last = self.slots[0], self.slots[-1]
        before_row_end = grid.row_end and cells[-1] % grid.columns == grid.columns - 1
        self.end = self.last + 1 + before_row_end
        # by slot: whether the run decides it, as a masked cell or as the row end after one
        self.slot_mask: list[bool] = (~self.known.all(0)).tolist()

    @classmethod
    def below(cls, grid: Grid, rows: int) -> Region:
        """All cells but those of the first `rows` rows."""
        return cls(grid, (torch.arange(grid.rows) >= rows)[None, :, None].expand(
            1, -1, grid.columns), by_rows=True)

    @classmethod
    def of(cls, place: Grid | Region) -> Region:
        """The region itself, or all cells of a grid."""
        return place if isinstance(place, Region) else cls.below(place, 0)

    @cached_property
    def whole(self) -> bool:
        """Whether all cells of all pictures are masked."""
        return bool(self.mask.all())

    @property
    def kept_rows(self) -> int:
        """The number of rows at the top without a masked cell."""
        return self.first // self.grid.width

    @cached_property
    def scattered(self) -> bool:
        """Whether any cell after the first masked one is known in any picture."""
        y, x = divmod(self.first, self.grid.width)
        return not bool(self.mask.flatten(1)[:, y * self.grid.columns + x :].all())

    @cached_property
    def ragged(self) -> bool:
        """Whether the pictures of the batch differ."""
        return bool((self.mask != self.mask[:1]).any())

    @cached_property
    def known(self) -> torch.Tensor:
        """[B or 1, slots] bool: known cells, and the row ends after known cells."""
        mask = self.mask
        if self.grid.row_end:
            mask = torch.cat((mask, mask[..., -1:]), dim=-1)
        return ~mask.flatten(1)

    @cached_property
    def _next(self) -> list[int]:
        following, slot = [], self.grid.slots
        for index in range(self.grid.slots - 1, -1, -1):
            slot = index if self.slot_mask[index] else slot
            following.append(slot)
        return [*reversed(following), self.grid.slots]

    def next(self, slot: int) -> int:
        """The first masked slot from `slot` on; the number of slots if there is none."""
        return self._next[slot]

    def cell(self, slot: int) -> int:
        """The first masked cell from `slot` on; the end of the run if there is none."""
        index = bisect_left(self.slots, slot)
        return self.slots[index] if index < len(self.slots) else self.end

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """From the first masked slot of start..stop-1 to behind the last; (stop, stop): none."""
        while stop > start and not self.slot_mask[stop - 1]:
            stop -= 1
        return min(self.next(start), stop), stop

    def count(self, start: int, stop: int) -> int:
        """The number of masked cells in slots start..stop-1."""
        return bisect_left(self.slots, stop) - bisect_left(self.slots, start)

    # Pictures of their own

    @cached_property
    def each(self) -> list[list[int]]:
        """The slots of the masked cells of each picture."""
        width, columns = self.grid.width, self.grid.columns
        return [[cell // columns * width + cell % columns
                 for cell in mask.flatten().nonzero()[:, 0].tolist()] for mask in self.mask]

    def ahead(self, picture: int, slot: int, count: int) -> int:
        """A picture's slot `count` masked cells after `slot`, at most its last; `slot` if none."""
        own = self.each[picture % len(self.each)]
        index = bisect_right(own, slot)
        return max(slot, own[min(index + count, len(own)) - 1])

    @property
    def widest_rows(self) -> int:
        """The rows of the widest stretch of known cells, which one pass feeds."""
        gaps = (after - before for own in self.each
                for before, after in zip([-1, *own], own, strict=False))
        return max(gaps) // self.grid.width


class KnownCells:
    """The known cells of a batch on its device, needed if they lie between masked ones.

    known [B, slots + 1] bool: known cells and row ends. codes [B, slots + 1] int64: their
    tokens, 0 at row ends. lasts [B]: the last masked cell of each picture.
    """

    def __init__(self, region: Region, codes: torch.Tensor, row_end: torch.Tensor | None) -> None:
        """codes: the result of `by_slot`. row_end [slots + 1] bool."""
        device, slots = codes.device, region.grid.slots
        self.codes = codes
        known = F.pad(region.known.to(device), (0, 1)).expand(len(codes), -1)
        self.known = known if row_end is None else known | row_end
        self.lasts = torch.tensor([own[-1] for own in region.each], device=device)
        most = max(map(len, region.each))
        order = torch.tensor([own + [region.end] * (most + 1 - len(own)) for own in region.each])
        mask = F.pad(~region.known, (0, 1))
        if region.grid.row_end:
            mask[:, region.grid.columns :: region.grid.width] = False
        self._rank = mask[:, : slots + 1].long().cumsum(1).to(device).expand(len(codes), -1)
        self._order = order.to(device).expand(len(codes), -1)

    def cells_on(self, slots: torch.Tensor, count: int) -> torch.Tensor:
        """The slots [B] of the `count`-th masked cells after slots [B]; the run's end if none."""
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


@undisturbed()
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
    known = keep_mask[None] if keep_mask.dim() == 2 else keep_mask
    if tuple(known.shape[1:]) != (grid.rows, grid.columns) or len(known) not in (1, pictures):
        raise SSDError(f"keep_mask: a mask of shape {tuple(keep_mask.shape)} does not fit "
                       f"{pictures} pictures of {grid}")
    if known.flatten(1).all(1).any():
        raise SSDError("keep_mask: every cell is kept, so nothing is left to draw; set the cells "
                       "to draw to False")
    if not known.any():
        raise SSDError("keep_mask: no cell is kept; set the cells to keep to True, or leave the "
                       "mask out")
    return Region(grid, ~known.cpu())
