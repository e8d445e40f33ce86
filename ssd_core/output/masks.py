"""Masks as people paint them, white for what is redrawn, and the cells of a grid they free."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from ..errors import SSDError
from ..model.grid import Grid
from .picture_files import Size, fitted, layers, mask_of, opened

WHITE = 0.5  # a pixel is white from here on
LEAST = 0.25  # a cell is redrawn if this share of its area is white


def redrawn_cells(mask: torch.Tensor, grid: Grid) -> torch.Tensor:
    """The cells to redraw, bool [B, R, C], of masks [H, W], [B, H, W] or [B, 1, H, W] of any size,
    0..1.

    Raises SSDError for a mask that frees no cell.
    """
    white = mask.reshape(-1, *mask.shape[-2:]).float().cpu() >= WHITE
    area = F.interpolate(white[:, None].float(), (grid.rows, grid.columns), mode="area")[:, 0]
    cells = area >= LEAST
    if not white.numel() or not white.flatten(1).any(1).all():
        raise SSDError("mask: nothing in it is white, so nothing would be redrawn: paint white "
                       "what is to change")
    if not cells.flatten(1).any(1).all():
        raise SSDError(f"mask: what is white fills no quarter of any of the {grid} cells: paint a "
                       "larger area")
    return cells


def mask_of_file(path: Path, size: Size) -> torch.Tensor:
    """A mask [H, W] of a picture, scaled and cut to `size` (width, height) as a photograph is: what
    is transparent, or else what is bright, is white.
    """
    with opened(path) as image:
        return white_part(image, size)


def transparent_part(source: Path | bytes, size: Size, name: str | None = None
                     ) -> torch.Tensor | None:
    """The same of what is transparent in a picture, see `opened`; None if nothing is."""
    with opened(source, name) as image:
        seen_through = image.has_transparency_data and layers(image)[1]  # pixels only if need be
        return white_part(image, size) if seen_through else None


def white_part(image: Image.Image, size: Size) -> torch.Tensor:
    return torch.from_numpy(np.array(fitted(mask_of(image), [size]))).float() / 255


def mask_of_box(x: int, y: int, width: int, height: int, size: tuple[int, int]) -> torch.Tensor:
    """A mask [H, W] of a picture of `size` (width, height), white in a box in pixels."""
    if min(x, y) < 0 or min(width, height) < 1 or x + width > size[0] or y + height > size[1]:
        raise SSDError(f"box {x},{y},{width},{height}: it must lie within {size[0]}x{size[1]} "
                       "pixels; give x,y,width,height")
    mask = torch.zeros(size[1], size[0])
    mask[y : y + height, x : x + width] = 1
    return mask
