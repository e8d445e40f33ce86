"""Raster geometry of a token picture: cells, rows and their positions in the sequence.

Knows nothing about models, caches or methods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch

from ..errors import SSDError

LONGEST_SIDE = 128  # rows or columns of the largest picture that a known backbone draws


def size_of(text: str | None) -> tuple[int, int] | None:
    """Parse a size such as "384x640" into (width, height) in px; empty text gives None.

    Raises SSDError if the text is not a size.
    """
    if not text:
        return None
    width, _, height = text.lower().partition("x")
    if not (text.isascii() and width.isdecimal() and height.isdecimal() and len(text) < 12):
        raise SSDError(f"size {text[:20]!r}: write width x height, for example 384x384")
    return int(width), int(height)


def nearest_sizes(size: tuple[int, int], sizes: Iterable[tuple[int, int]]
                  ) -> list[tuple[int, int]]:
    """Sizes in the order of how little their sides differ, as factors; (width, height) in px."""
    def distance(other: tuple[int, int]) -> float:
        return sum(math.log(max(1, wanted) / side) ** 2
                   for wanted, side in zip(size, other, strict=True))

    return sorted(sizes, key=distance)


@dataclass(frozen=True)
class Grid:
    """R rows of C cells; with `row_end` a forced token ends every row.

    Image slots count from the first image token: cell (y, x) is slot y * width + x.
    """

    rows: int
    columns: int
    row_end: bool = False

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1:
            raise SSDError(f"grid {self.rows}x{self.columns}: rows and columns must be at least 1")

    @classmethod
    def parse(cls, text: str, row_end: bool = False) -> Grid:
        """Read "24x24" as rows x columns."""
        rows, _, columns = text.lower().partition("x")
        if not (text.isascii() and rows.isdecimal() and columns.isdecimal() and len(text) < 20):
            raise SSDError(f"grid {text[:20]!r}: write rows x columns, for example 24x24")
        if max(int(rows), int(columns)) > LONGEST_SIDE:
            raise SSDError(f"grid {text}: at most {LONGEST_SIDE} rows and {LONGEST_SIDE} columns")
        return cls(int(rows), int(columns), row_end)

    @property
    def width(self) -> int:
        """Slots per row, W': C, or C + 1 with a forced row end."""
        return self.columns + self.row_end

    @property
    def cells(self) -> int:
        return self.rows * self.columns

    @property
    def slots(self) -> int:
        return self.rows * self.width

    def slot(self, cell: int) -> int:
        """Image slot of a raster cell; `cell == cells` gives the slot after the picture."""
        y, x = divmod(cell, self.columns)
        return y * self.width + x

    def is_row_end(self, slot: int) -> bool:
        """Whether a slot holds a forced row end."""
        return self.row_end and slot % self.width == self.columns

    @cached_property
    def coordinates(self) -> torch.Tensor:
        """[slots, 2] int64: (row, column) of every slot; a row end has column C."""
        slot = torch.arange(self.slots)
        return torch.stack((slot // self.width, slot % self.width), dim=-1)

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}" + (" + row end" if self.row_end else "")
