"""The row drafter: a small network that drafts a cell from its neighbours above and to the left.

Draft heads read a single cell, so the cells of a drafted row are independent of each other. The row
drafter estimates h of a cell from [h; e] of the cells above it and to its left. For a drafted
neighbour, h is the drafter's estimate and e belongs to the token sampled there. It drafts all cells
at once, `SWEEPS` times, so that every cell sees the drafts of its neighbours. The cost does not
depend on the width of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import nn

from ..model.grid import Grid
from ..model.products import Int8Matrix, product, put

# (row, column) of the neighbours relative to the cell: the row above, then the cells to the left
NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (-1, 2), (-1, 3), (0, -1), (0, -2))
ABOVE, LEFT = NEIGHBOURS.index((-1, 0)), NEIGHBOURS.index((0, -1))
SWEEPS = 4
WIDEST = 512  # limit of the inner width, which keeps a draft cheap
Choose = Callable[[torch.Tensor], torch.Tensor]


class SwiGLU(nn.Module):
    """x + W2(silu(W1 n) * W3 n), n = RMSNorm(x), inner width 2w."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.Parameter(torch.ones(width))
        self.w13 = nn.Parameter(torch.empty(4 * width, width))
        self.w2 = nn.Parameter(torch.empty(width, 2 * width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = F.rms_norm(x, x.shape[-1:], self.norm, 1e-6)
        gate, up = product(n, self.w13).chunk(2, dim=-1)
        return x + product(F.silu(gate) * up, self.w2)


class RowDrafter(nn.Module):
    """Estimates h of a cell from [h; e] of its `NEIGHBOURS`.

    A learned vector replaces a neighbour that lies outside the picture or is not known yet.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        count, width = len(NEIGHBOURS), min(hidden, WIDEST)
        self.mix = nn.Parameter(torch.empty(count, hidden))  # weights of h by component
        self.w_in = nn.Parameter(torch.empty(width, count * 2 * hidden))
        self.missing = nn.Parameter(torch.empty(count, width))
        self.blocks = nn.ModuleList(SwiGLU(width) for _ in range(2))
        self.out = nn.Parameter(torch.empty(hidden, width))

    @property
    def hidden(self) -> int:
        return self.mix.shape[1]

    def initialise(self, generator: torch.Generator) -> None:
        """Initialise as the identity on h of the cell above."""
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                zero = name in ("mix", "missing", "out") or name.endswith("w2")
                std = 0.0 if zero else weight.shape[1] ** -0.5
                nn.init.normal_(weight, std=std, generator=generator)
        with torch.no_grad():
            self.mix[ABOVE] = 1

    def forward(self, hidden: torch.Tensor, embedding: torch.Tensor,
                known: torch.Tensor) -> torch.Tensor:
        """h, e [..., 7, d] of the neighbours, known [..., 7] bool -> the estimate [..., d]."""
        hidden, embedding = (x.masked_fill(~known[..., None], 0) for x in (hidden, embedding))
        parts = [F.rms_norm(x, x.shape[-1:], eps=1e-6) for x in (hidden, embedding)]
        x = product(torch.cat(parts, dim=-1).flatten(-2), self.w_in)
        x = x + (~known).to(x.dtype) @ self.missing
        for block in self.blocks:
            x = block(x)
        return (hidden * self.mix).sum(-2) + product(x, self.out)

    def to_int8(self) -> None:
        """Replace the matrices with 8-bit integers; `mix` and `missing` stay as they are."""
        inner = ((block, ("w13", "w2")) for block in self.blocks)
        for module, names in ((self, ("w_in", "out")), *inner):
            for name in names:
                put(module, name, Int8Matrix.of(getattr(module, name)))


@lru_cache(maxsize=8)
def offsets_on(device: torch.device) -> torch.Tensor:
    """[7, 2] int64: NEIGHBOURS as a tensor, created once and usable in training."""
    with torch.inference_mode(False):
        return torch.tensor(NEIGHBOURS, device=device)


def neighbours(grid: Grid, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Slots [..., 7] of the neighbours of slots [...], and which of them lie in the picture.

    Neighbours outside the picture get slot 0.
    """
    offsets = offsets_on(slots.device)
    row = slots[..., None] // grid.width + offsets[:, 0]
    column = slots[..., None] % grid.width + offsets[:, 1]
    inside = (row >= 0) & (column >= 0) & (column < grid.columns)
    return torch.where(inside, row * grid.width + column, 0), inside
