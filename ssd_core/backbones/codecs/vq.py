"""The postcard's picture tokenizer: 16 x 16 pixels to one of K codes and back.

A token is a patch: its principal components, compared with a codebook. The decoder lays the
codes' patches side by side and then repairs the seams. All convolutions run on the coarse grid
(space-to-depth in, depth-to-space out), so that it trains in minutes on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import nn

from .codec import PictureCodec

PATCH = 16


class Residual(nn.Module):
    """Normalise, convolve 3 x 3, activate, convolve 1 x 1, add."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.wide = nn.Conv2d(channels, channels, 3, padding=1)
        self.back = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.back(F.silu(self.wide(F.silu(self.norm(x)))))


class VQTokenizer(PictureCodec):
    """Components, codebook [codes, dim] and decoder; pictures are [B, 3, H, W] in -1..1.

    encoder: a patch to its principal components, partly whitened; mosaic: the way back;
    repair: what the neighbouring codes add to a patch.
    """

    patch = PATCH

    def __init__(self, codes: int = 4096, dim: int = 64, channels: int = 128,
                 blocks: int = 3) -> None:
        super().__init__()
        pixels = 3 * PATCH**2
        self.encoder = nn.Sequential(nn.PixelUnshuffle(PATCH), nn.Conv2d(pixels, dim, 1))
        self.codebook = nn.Parameter(torch.randn(codes, dim))
        self.mosaic = nn.Conv2d(dim, pixels, 1)
        wide = 4 * channels
        self.repair = nn.Sequential(
            nn.Conv2d(dim, channels, 3, padding=1), *(Residual(channels) for _ in range(blocks)),
            nn.GroupNorm(8, channels), nn.SiLU(),
            nn.Conv2d(channels, wide, 1), nn.SiLU(), nn.Conv2d(wide, pixels, 1))

    @classmethod
    def sized_like(cls, tensors: Mapping[str, torch.Tensor]) -> VQTokenizer:
        """A tokenizer of the sizes of a state dict, with other values. KeyError if one is lacking.
        """
        blocks = sum(name.endswith(".wide.weight") for name in tensors)
        codes, dim = tensors["codebook"].shape
        return cls(codes, dim, len(tensors["repair.0.weight"]), blocks)

    def nearest(self, z: torch.Tensor) -> torch.Tensor:
        """Latents [B, dim, R, C] -> codes [B, R, C] int64 of the nearest codebook rows."""
        flat = z.permute(0, 2, 3, 1).flatten(0, 2)
        distance = self.codebook.square().sum(-1) - 2 * flat @ self.codebook.T
        return distance.argmin(-1).view(z.shape[0], *z.shape[2:])

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.nearest(self.encoder(pictures))

    def pixels(self, vectors: torch.Tensor) -> torch.Tensor:
        return F.pixel_shuffle(self.mosaic(vectors) + self.repair(vectors), PATCH)
