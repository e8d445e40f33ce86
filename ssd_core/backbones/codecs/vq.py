"""The postcard's picture tokenizer: 16 x 16 pixels to one of K codes and back.

A token is a patch: its principal components, compared with a codebook. The decoder lays the
codes' patches side by side, adds what patches of each code have beyond their components on average,
and then repairs the seams. These convolutions run on the coarse grid (space-to-depth in,
depth-to-space out), so that it trains in minutes on a CPU. Where the weights have it, a head
doubles the sides of the decoded picture.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import nn

from .codec import PictureCodec

PATCH = 16
EDGE = 0.3  # of -1..1: steps between cells that are this large belong to the picture
BLOCK = 2  # pixels of a side that the head for twice the size takes as one


class Residual(nn.Module):
    """Normalise, convolve 3 x 3, activate, convolve 1 x 1, add."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.wide = nn.Conv2d(channels, channels, 3, padding=1)
        self.back = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.back(F.silu(self.wide(F.silu(self.norm(x)))))


class ByteTable(nn.Module):
    """Rows of numbers, each number in 8 bits and each row with a scale of its own."""

    values: torch.Tensor  # int8 [rows, columns]
    scale: torch.Tensor  # [rows]

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.register_buffer("values", torch.zeros(rows, columns, dtype=torch.int8))
        self.register_buffer("scale", torch.zeros(rows))

    @classmethod
    def of(cls, weight: torch.Tensor) -> ByteTable:
        """The table that is nearest to weight [rows, columns]."""
        table = cls(*weight.shape)
        table.scale = (weight.abs().amax(1) / 127).clamp(min=2**-14).half().float()
        table.values = (weight / table.scale[:, None]).round().clamp(-127, 127).to(torch.int8)
        return table

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """The rows [..., columns] of these numbers, int64 [...]."""
        return self.values[numbers] * self.scale[numbers][..., None]


class Upsample(nn.Module):
    """Pixels [B, 3, H, W] -> [B, 3, 2 H, 2 W]: smooth enlargement, and what it lacks.

    Computed on blocks of BLOCK x BLOCK pixels of cells of PATCH x PATCH, so sides are divisible by
    PATCH. place: what a block's place in its cell adds, since borders of cells are to vanish.
    """

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.channels = channels
        self.wide = nn.Conv2d(3 * BLOCK**2, channels, 3, padding=1)
        self.place = nn.Parameter(torch.zeros(channels, PATCH // BLOCK, PATCH // BLOCK))
        self.middle = nn.Conv2d(channels, channels, 3, padding=1)
        self.back = nn.Conv2d(channels, 12 * BLOCK**2, 3, padding=1)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        smooth = F.interpolate(pixels, scale_factor=2.0, mode="bilinear")
        cells = pixels.shape[-2] // PATCH, pixels.shape[-1] // PATCH
        x = self.wide(F.pixel_unshuffle(pixels, BLOCK)) + self.place.repeat(1, *cells)
        x = F.silu(x)
        x = x + F.silu(self.middle(x))
        return smooth + F.pixel_shuffle(self.back(x), 2 * BLOCK)


class VQTokenizer(PictureCodec):
    """Components, codebook [codes, dim] and decoder; pictures are [B, 3, H, W] in -1..1.

    encoder: a patch to its principal components, partly whitened; mosaic: the way back; residual:
    what a code's patches have beyond it on average, None in weights without it; repair: what the
    neighbouring codes add to a patch; upsample: the head for twice the size, None in weights
    without it.
    """

    patch = PATCH
    glances = True

    residual: nn.Module | None

    def __init__(self, codes: int = 4096, dim: int = 64, channels: int = 128,
                 blocks: int = 3, upsample: int = 0, residual: bool = False) -> None:
        """upsample: channels of that head; 0: none."""
        super().__init__()
        pixels = 3 * PATCH**2
        self.encoder = nn.Sequential(nn.PixelUnshuffle(PATCH), nn.Conv2d(pixels, dim, 1))
        self.codebook = nn.Parameter(torch.randn(codes, dim))
        self.mosaic = nn.Conv2d(dim, pixels, 1)
        self.residual = ByteTable(codes, pixels) if residual else None
        wide = 4 * channels
        self.repair = nn.Sequential(
            nn.Conv2d(dim, channels, 3, padding=1), *(Residual(channels) for _ in range(blocks)),
            nn.GroupNorm(8, channels), nn.SiLU(),
            nn.Conv2d(channels, wide, 1), nn.SiLU(), nn.Conv2d(wide, pixels, 1))
        self.set_upsample(Upsample(upsample) if upsample else None)

    @classmethod
    def sized_like(cls, tensors: Mapping[str, torch.Tensor]) -> VQTokenizer:
        """A tokenizer of the sizes of a state dict, with other values. KeyError if one is lacking.
        """
        blocks = sum(name.startswith("repair.") and name.endswith(".wide.weight")
                     for name in tensors)
        codes, dim = tensors["codebook"].shape
        upsample = len(tensors.get("upsample.wide.weight", ()))
        return cls(codes, dim, len(tensors["repair.0.weight"]), blocks, upsample,
                   "residual.values" in tensors)

    def set_upsample(self, head: Upsample | None) -> None:
        """Set the head for twice the size, or let there be none."""
        self.upsample = head
        self.scales = (2, 1) if head else (1,)

    def nearest(self, z: torch.Tensor) -> torch.Tensor:
        """Latents [B, dim, R, C] -> codes [B, R, C] int64 of the nearest codebook rows."""
        flat = z.permute(0, 2, 3, 1).flatten(0, 2)
        distance = self.codebook.square().sum(-1) - 2 * flat @ self.codebook.T
        return distance.argmin(-1).view(z.shape[0], *z.shape[2:])

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.nearest(self.encoder(pictures))

    def pixels(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.drawn(vectors, self.nearest(vectors))

    def decode(self, tokens: torch.Tensor, scale: int = 1) -> torch.Tensor:
        pixels = self.drawn(self.quantised(tokens), tokens)
        return pixels if scale == 1 else self.enlarged(pixels, scale)

    def drawn(self, vectors: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Pixels of code vectors [B, d, R, C] and their numbers [B, R, C]."""
        return F.pixel_shuffle(self.patches(vectors, tokens) + self.repair(vectors), PATCH)

    def patches(self, vectors: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The patch of each code by itself, [B, 3 * PATCH**2, R, C]."""
        patches = self.mosaic(vectors)
        if self.residual is not None:
            patches = patches + self.residual(tokens).permute(0, 3, 1, 2)
        return patches

    def glance(self, tokens: torch.Tensor) -> torch.Tensor:
        """The codes' own patches, with small steps at their seams levelled in place of the repair.
        """
        pixels = F.pixel_shuffle(self.patches(self.quantised(tokens), tokens), PATCH)
        return levelled(levelled(pixels).mT).mT

    def code_colours(self) -> torch.Tensor:
        codes = torch.arange(len(self.codebook), device=self.codebook.device)[None, None]
        patches = self.patches(self.quantised(codes), codes)[0, :, 0].detach()
        return patches.unflatten(0, (3, -1)).mean(1).T.add(1).div(2).clamp(0, 1)

    def channels_per_pixel(self, scale: int) -> float:
        """At the widest layer of `decode`, per pixel that it returns."""
        cells = [m.out_channels for part in (self.mosaic, self.repair) for m in part.modules()
                 if isinstance(m, nn.Conv2d)]
        widest = max(cells) / PATCH**2
        if scale > 1 and self.upsample is not None:
            widest = max(widest, self.upsample.channels / BLOCK**2)
        return widest / scale**2

    def enlarged(self, pixels: torch.Tensor, scale: int) -> torch.Tensor:
        assert self.upsample is not None and scale == 2
        return self.upsample(pixels)


def levelled(pixels: torch.Tensor) -> torch.Tensor:
    """Pixels [..., C * PATCH] with both sides of a step between cells drawn to its middle, the
    less the larger it is, and the cells' other pixels in proportion.
    """
    cells = pixels.unflatten(-1, (-1, PATCH))
    half = (cells[..., 1:, 0] - cells[..., :-1, -1]) / 2
    half = half * (-(half / EDGE).square()).exp()
    across = (torch.arange(PATCH, device=pixels.device) + 0.5) / PATCH
    right, left = F.pad(half, (0, 1))[..., None], F.pad(half, (1, 0))[..., None]
    return (cells + right * across - left * (1 - across)).flatten(-2)
