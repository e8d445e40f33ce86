"""Decode tokens to pixels. Knows no host."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..backbones.base import Backbone


def pixels(backbone: Backbone, tokens: torch.Tensor) -> Iterator[torch.Tensor]:
    """Decode tokens [B, R, C] to pictures [H, W, 3], float 0..1 on the CPU.

    Pictures are decoded one at a time, which takes the least memory and lets a host stop in
    between.
    """
    for one in tokens:
        with torch.inference_mode():
            picture = backbone.decode(one[None].to(backbone.device))[0].cpu()
        yield picture.clone()  # not an inference tensor, so callers can modify it
