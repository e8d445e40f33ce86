"""Sizes, grids and positions of GLM-Image. Knows no weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

from ..errors import SSDError
from ..model.grid import Grid
from .reading.checkpoint import read_json

STEP = 32  # px along a cell
SHORTEST, LONGEST = 256, 2048  # px along a side
SKETCH = 16  # cells along the side of a square sketch


def sketch_grid(grid: Grid) -> Grid:
    """The sketch of a grid: about 256 cells of the same shape, as the published processor rounds.
    """
    ratio = grid.rows / grid.columns
    return Grid(max(int(math.sqrt(ratio) * SKETCH), 1), max(int(math.sqrt(1 / ratio) * SKETCH), 1))


def cell_positions(grid: Grid, first: int) -> torch.Tensor:
    """[cells, 3]: the time, row and column of a grid's cells, counted from `first`."""
    return F.pad(grid.coordinates, (1, 0)) + first


def prompt_positions(sources: Sequence[torch.Tensor], words: int) -> torch.Tensor:
    """[n, 3]: positions of source pictures with a token before and behind each, then of words."""
    parts, at = [], 0
    for codes in sources:
        rows, columns = codes.shape
        behind = at + 1 + max(rows, columns)
        parts += [torch.full((1, 3), at), cell_positions(Grid(rows, columns), at + 1),
                  torch.full((1, 3), behind)]
        at = behind + 1
    return torch.cat((*parts, torch.arange(at, at + words + 1)[:, None].expand(-1, 3)))


def source_sides(file: Path) -> tuple[int, ...]:
    """The least and the greatest side in px of a source picture, as a processor's file says."""
    if not file.is_file():
        return ()
    known = read_json(file)
    size = known.get("size")
    edges = size if isinstance(size, dict) else {}
    areas = [known.get(f"{word}_pixels", edges.get(f"{name}_edge"))
             for word, name in (("min", "shortest"), ("max", "longest"))]
    sides = [round(math.sqrt(area)) for area in areas if isinstance(area, int) and area > 0]
    return tuple(sides) if len(sides) == len(areas) else ()


def require_size(name: str, size: tuple[int, int]) -> None:
    """Raise SSDError for a size that is not in steps of 32 px; it names the nearest two."""
    if all(SHORTEST <= side <= LONGEST and side % STEP == 0 for side in size):
        return
    nearest = [[min(max(side // STEP * STEP + more, SHORTEST), LONGEST) for side in size]
               for more in (0, STEP)]
    legal = " or ".join(dict.fromkeys(f"{width}x{height}" for width, height in nearest))
    raise SSDError(f"size {size[0]}x{size[1]}: {name} draws sides of {SHORTEST} to {LONGEST} px in "
                   f"steps of {STEP}: choose {legal}")
