"""The pixels of kept cells: the picture's own, not what the codec makes of their tokens.

The codec also reads the cells around the one it decodes, and it only approximates a photograph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F

from ..backbones.base import Backbone
from ..errors import SSDError
from .drawing import mask_of_picture
from .pixels import pixels


def with_kept_pixels(backbone: Backbone, drawn: Iterable[torch.Tensor], mask: torch.Tensor,
                     keep: torch.Tensor, own: torch.Tensor | None) -> Iterator[torch.Tensor]:
    """The pictures drawn [H, W, 3], kept cells with their own pixels; see `blended`.

    mask: bool [R, C] or [B or 1, R, C], True for kept cells. keep: tokens [B or 1, R, C] of the
    picture they are from. own: its pixels [B or 1, H, W, 3]; None: those that keep decodes to.
    """
    if own is None:
        own = torch.stack(list(pixels(backbone, keep)))
    for n, picture in enumerate(drawn):
        yield blended(picture, own[n % len(own)].to(picture), mask_of_picture(mask, n))


def blended(drawn: torch.Tensor, own: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """A picture [H, W, 3]: free cells as drawn, kept ones as in `own`, to the byte.

    A kept cell beside a free one turns from the drawn picture to its own, over its width.
    """
    weight = weights(known, (drawn.shape[0], drawn.shape[1]))[..., None]
    return torch.where(weight == 0, own, torch.lerp(own, drawn, weight.to(drawn)))


def weights(known: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """The share [H, W] of the drawn picture in every pixel: 1 in free cells, 0 away from them."""
    rows, columns = known.shape
    tall, wide = size[0] // rows, size[1] // columns
    mask = F.pad((~known.cpu()).float(), (1, 1, 1, 1))
    near = torch.zeros(rows, tall, columns, wide)
    for y in (-1, 0, 1):
        for x in (-1, 0, 1):
            far = torch.hypot(distances(tall, y)[:, None], distances(wide, x)[None])
            ramp = (1 - far).clamp(min=0)
            beside = mask[1 + y : 1 + y + rows, 1 + x : 1 + x + columns]
            near = near.maximum(beside[:, None, :, None] * (ramp * ramp * (3 - 2 * ramp))[:, None])
    return near.reshape(rows * tall, columns * wide)


def distances(pixels_: int, to: int) -> torch.Tensor:
    """From a cell's pixels to the cell before it (-1), to itself (0) or behind it (1), in cells."""
    places = (torch.arange(pixels_) + 0.5) / pixels_
    return {-1: places, 0: torch.zeros(pixels_), 1: 1 - places}[to]


def size_of(own: torch.Tensor | None) -> tuple[int, int] | None:
    """(width, height) of pixels [B, H, W, 3], if they are any."""
    return (own.shape[2], own.shape[1]) if own is not None and own.dim() == 4 else None


def as_large_as(own: torch.Tensor | None, backbone: Backbone) -> torch.Tensor | None:
    """Pixels [B, H, W, 3] at the backbone's size; unchanged unless they have another size of its
    grid.
    """
    size = size_of(own)
    if own is None or size == backbone.size or size not in backbone.sizes_of_grid:
        return own
    width, height = backbone.size
    mode = "bilinear" if width > own.shape[2] else "area"
    return F.interpolate(own.permute(0, 3, 1, 2), (height, width), mode=mode).permute(0, 2, 3, 1)


def check_pixels(own: torch.Tensor | None, size: tuple[int, int], pictures: int) -> None:
    """Raise SSDError if keep_pixels do not fit pictures of this (width, height)."""
    if own is None:
        return
    width, height = size
    if own.dim() != 4 or tuple(own.shape[1:]) != (height, width, 3) or len(own) not in (
            1, pictures):
        raise SSDError(f"keep_pixels: pixels of shape {tuple(own.shape)} do not fit {pictures} "
                       f"pictures of {width}x{height}: give [B or 1, H, W, 3]")
