"""Decode tokens to pixels. Knows no host."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..backbones.base import Backbone
from ..backbones.sessions import release_all
from ..weights.fit import make_room_for_pixels

BLANK = 0.94  # grey of rows that are not drawn yet


def pixels(backbone: Backbone, tokens: torch.Tensor) -> Iterator[torch.Tensor]:
    """Decode tokens [B, R, C] to pictures [H, W, 3], float 0..1 on the CPU.

    Pictures are decoded one at a time, to save memory and to let a host stop in between.
    """
    make_room_for_pixels(backbone)
    for codes in tokens:
        try:
            picture = decoded(backbone, codes)
        except torch.OutOfMemoryError:
            if not release_all():
                raise
            picture = decoded(backbone, codes)
        yield picture.clone()  # not an inference tensor, so callers can modify it


@torch.inference_mode()
def decoded(backbone: Backbone, codes: torch.Tensor) -> torch.Tensor:
    """The picture [H, W, 3] of codes [R, C], on the CPU."""
    return backbone.decode(codes[None].to(backbone.device))[0].cpu()


def tops(backbone: Backbone, tokens: torch.Tensor, rows: int) -> Iterator[torch.Tensor]:
    """Like `pixels`, for pictures whose first `rows` rows are drawn; the rest is BLANK."""
    width, height = backbone.size
    pictures = (pixels(backbone, repeat_last_row(tokens, rows)) if rows
                else (torch.empty(height, width, 3) for _ in tokens))
    for picture in pictures:
        picture[height // backbone.grid.rows * rows :] = BLANK
        yield picture


def repeat_last_row(tokens: torch.Tensor, rows: int) -> torch.Tensor:
    """Tokens [B, R, C] with the last of the first `rows` rows repeated to the bottom.

    The codec also reads cells below the one it decodes; repeated rows suit it better than zeros.
    """
    return tokens[:, torch.arange(tokens.shape[1]).clamp(max=rows - 1)]
