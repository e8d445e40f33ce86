"""The postcard's picture tokenizer: 16 x 16 pixels to one of K codes and back.

A token is a patch: its principal components, compared with a codebook. The decoder lays the
codes' patches side by side and then repairs the seams. These convolutions run on the coarse grid
(space-to-depth in, depth-to-space out), so that it trains in minutes on a CPU. Where the weights
have it, a head doubles the sides of the decoded picture.
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


class Upsample(nn.Module):
    """Pixels [B, 3, H, W] -> [B, 3, 2 H, 2 W]: smooth enlargement, and what it lacks."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.channels = channels
        self.wide = nn.Conv2d(3, channels, 3, padding=1)
        self.back = nn.Conv2d(channels, 12, 3, padding=1)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        smooth = F.interpolate(pixels, scale_factor=2.0, mode="bilinear")
        return smooth + F.pixel_shuffle(self.back(F.silu(self.wide(pixels))), 2)


class VQTokenizer(PictureCodec):
    """Components, codebook [codes, dim] and decoder; pictures are [B, 3, H, W] in -1..1.

    encoder: a patch to its principal components, partly whitened; mosaic: the way back;
    repair: what the neighbouring codes add to a patch; upsample: the head for twice the size, None
    in weights without it.
    """

    patch = PATCH

    def __init__(self, codes: int = 4096, dim: int = 64, channels: int = 128,
                 blocks: int = 3, upsample: int = 0) -> None:
        """upsample: channels of that head; 0: none."""
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
        self.upsample = Upsample(upsample) if upsample else None
        self.scales = (2, 1) if upsample else (1,)

    @classmethod
    def sized_like(cls, tensors: Mapping[str, torch.Tensor]) -> VQTokenizer:
        """A tokenizer of the sizes of a state dict, with other values. KeyError if one is lacking.
        """
        blocks = sum(name.startswith("repair.") and name.endswith(".wide.weight")
                     for name in tensors)
        codes, dim = tensors["codebook"].shape
        upsample = len(tensors.get("upsample.wide.weight", ()))
        return cls(codes, dim, len(tensors["repair.0.weight"]), blocks, upsample)

    def nearest(self, z: torch.Tensor) -> torch.Tensor:
        """Latents [B, dim, R, C] -> codes [B, R, C] int64 of the nearest codebook rows."""
        flat = z.permute(0, 2, 3, 1).flatten(0, 2)
        distance = self.codebook.square().sum(-1) - 2 * flat @ self.codebook.T
        return distance.argmin(-1).view(z.shape[0], *z.shape[2:])

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.nearest(self.encoder(pictures))

    def pixels(self, vectors: torch.Tensor) -> torch.Tensor:
        return F.pixel_shuffle(self.mosaic(vectors) + self.repair(vectors), PATCH)

    def channels_per_pixel(self, scale: int) -> float:
        """At the widest layer of `decode`, per pixel that it returns."""
        cells = [m.out_channels for part in (self.mosaic, self.repair) for m in part.modules()
                 if isinstance(m, nn.Conv2d)]
        widest = max(cells) / PATCH**2
        if scale > 1 and self.upsample is not None:
            widest = max(widest, self.upsample.channels)
        return widest / scale**2

    def enlarged(self, pixels: torch.Tensor, scale: int) -> torch.Tensor:
        assert self.upsample is not None and scale == 2
        return self.upsample(pixels)
