"""Decode tokens to pixels. Knows no host."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..backbones.base import Backbone

BLANK = 0.94  # the grey of what is not drawn yet


def pixels(backbone: Backbone, tokens: torch.Tensor) -> Iterator[torch.Tensor]:
    """Decode tokens [B, R, C] to pictures [H, W, 3], float 0..1 on the CPU.

    Pictures are decoded one at a time, which takes the least memory and lets a host stop in
    between.
    """
    for one in tokens:
        with torch.inference_mode():
            picture = backbone.decode(one[None].to(backbone.device))[0].cpu()
        yield picture.clone()  # not an inference tensor, so callers can modify it


def tops(backbone: Backbone, tokens: torch.Tensor, rows: int) -> Iterator[torch.Tensor]:
    """Like `pixels`, for pictures of which only the first `rows` rows are drawn; below is BLANK."""
    height = backbone.size[1] // backbone.grid.rows * rows
    for picture in pixels(backbone, lengthened(tokens, rows)) if rows else blanks(backbone, tokens):
        picture[height:] = BLANK
        yield picture


def lengthened(tokens: torch.Tensor, rows: int) -> torch.Tensor:
    """Tokens [B, R, C] with the last of the first `rows` rows repeated to the bottom.

    The codec also reads cells below the one it decodes: this is a better guess than none.
    """
    return tokens[:, torch.arange(tokens.shape[1]).clamp(max=rows - 1)]


def blanks(backbone: Backbone, tokens: torch.Tensor) -> Iterator[torch.Tensor]:
    width, height = backbone.size
    return (torch.empty(height, width, 3) for _ in tokens)
