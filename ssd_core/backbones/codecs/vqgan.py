"""The VQGAN of taming-transformers, used by Janus-Pro, LlamaGen, Tar, Lumina-mGPT and Anole.

All share one encoder, codebook and decoder. Sizes come from tensor shapes, names from the rows of
`LAYOUTS`. Knows no file, device or backbone. Weights and pixels are float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from ...model.surroundings import scaled_dot_product_attention
from .codec import GROUPS, PublishedCodec, VQGANShape
from .files import (
    CODEBOOK_KEY,
    VQGAN_KIND,
    CodecNames,
    Shapes,
    matching_keys,
    measured,
    require_kind,
)

CELLS_AT_ONCE = 2048  # cells per chunk of distances to all codes
PRODUCTS_AT_ONCE = 256  # cells whose products with all codes are in memory together


class Norm(nn.GroupNorm):
    """Group normalisation; it accepts a condition and ignores it."""

    def __init__(self, channels: int) -> None:
        super().__init__(GROUPS, channels, eps=1e-6)

    def forward(self, x: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        return super().forward(x)


NormOf = Callable[[int], nn.Module]  # channels -> module called with (x, condition)


def same_size(channels_in: int, channels: int) -> nn.Conv2d:
    return nn.Conv2d(channels_in, channels, 3, padding=1)


class ResidualBlock(nn.Module):
    """Two convolutions, each after norm and SiLU, added to the input."""

    def __init__(self, channels_in: int, channels: int, norm: NormOf = Norm) -> None:
        super().__init__()
        self.norm1, self.conv1 = norm(channels_in), same_size(channels_in, channels)
        self.norm2, self.conv2 = norm(channels), same_size(channels, channels)
        changed = channels_in != channels
        self.shortcut = nn.Conv2d(channels_in, channels, 1) if changed else nn.Identity()

    def forward(self, x: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        h = self.conv1(F.silu(self.norm1(x, condition)))
        h = self.conv2(F.silu(self.norm2(h, condition)))
        return self.shortcut(x) + h


class Attention(nn.Module):
    """One head over all cells of a grid of any size, added to the input."""

    def __init__(self, channels: int, norm: NormOf = Norm) -> None:
        super().__init__()
        self.norm = norm(channels)
        self.query, self.key = nn.Linear(channels, channels), nn.Linear(channels, channels)
        self.value, self.project = nn.Linear(channels, channels), nn.Linear(channels, channels)

    def forward(self, x: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        cells = self.norm(x, condition).flatten(2).transpose(1, 2)[:, None]  # [B, 1, R*C, d]
        mixed = scaled_dot_product_attention(
            self.query(cells), self.key(cells), self.value(cells))
        return x + self.project(mixed)[:, 0].transpose(1, 2).reshape(x.shape)


class Downsample(nn.Conv2d):
    """Halve height and width; pads only the right and the bottom edge."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, 3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(F.pad(x, (0, 1, 0, 1)))


class Upsample(nn.Conv2d):
    """Double height and width: nearest neighbour, then a convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class Level(nn.Module):
    """Residual blocks at one resolution, each followed by attention if the level has it."""

    def __init__(self, channels_in: int, channels: int, blocks: int, attention: bool,
                 resize: nn.Module | None = None, norm: NormOf = Norm) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ResidualBlock(channels if i else channels_in, channels, norm)
                                    for i in range(blocks))
        self.attentions = nn.ModuleList(Attention(channels, norm)
                                        for _ in range(blocks if attention else 0))
        self.resize = resize or nn.Identity()

    def forward(self, x: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        for i, block in enumerate(self.blocks):
            x = block(x, condition)
            if self.attentions:
                x = self.attentions[i](x, condition)
        return self.resize(x)


class Middle(nn.Module):
    """Residual block, attention, residual block at the coarsest resolution."""

    def __init__(self, channels: int, norm: NormOf = Norm) -> None:
        super().__init__()
        self.block1 = ResidualBlock(channels, channels, norm)
        self.attention = Attention(channels, norm)
        self.block2 = ResidualBlock(channels, channels, norm)

    def forward(self, x: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        return self.block2(self.attention(self.block1(x, condition), condition), condition)


class Encoder(nn.Module):
    """Pixels [B, 3, H, W] -> latents [B, z, H / patch, W / patch]."""

    def __init__(self, shape: VQGANShape) -> None:
        super().__init__()
        widths, last = shape.widths, len(shape.widths) - 1
        self.conv_in = same_size(3, shape.channels)
        self.down = nn.ModuleList(
            Level(widths[i - 1] if i else shape.channels, width, shape.res_blocks,
                  i in shape.attention_levels, Downsample(width) if i < last else None)
            for i, width in enumerate(widths))
        self.middle = Middle(widths[-1])
        self.norm_out = Norm(widths[-1])
        self.conv_out = same_size(widths[-1], shape.z_channels)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = self.conv_in(pixels)
        for level in self.down:
            x = level(x)
        return self.conv_out(F.silu(self.norm_out(self.middle(x))))


class Decoder(nn.Module):
    """Latents [B, z, R, C] -> pixels [B, 3, R * patch, C * patch]; `up` runs coarse to fine."""

    def __init__(self, shape: VQGANShape, norm: NormOf = Norm) -> None:
        super().__init__()
        widths, last = shape.widths, len(shape.widths) - 1
        self.conv_in = same_size(shape.z_channels, widths[-1])
        self.middle = Middle(widths[-1], norm)
        self.up = nn.ModuleList(
            Level(widths[min(i + 1, last)], widths[i], shape.res_blocks + 1,
                  i in shape.attention_levels, Upsample(widths[i]) if i else None, norm)
            for i in range(last, -1, -1))
        self.norm_out = norm(widths[0])
        self.conv_out = same_size(widths[0], 3)

    def forward(self, latents: torch.Tensor,
                condition: torch.Tensor | None = None) -> torch.Tensor:
        x = self.middle(self.conv_in(latents), condition)
        for level in self.up:
            x = level(x, condition)
        return self.conv_out(F.silu(self.norm_out(x, condition)))


def nearest_codes(latents: torch.Tensor, codebook: torch.Tensor) -> torch.Tensor:
    """Latents [..., d] -> indices [...] int64 of the nearest rows of codebook [K, d]."""
    lengths = codebook.square().sum(-1)
    nearest = [torch.addmm(lengths, part, codebook.T, alpha=-2).argmin(-1)
               for part in latents.flatten(0, -2).split(CELLS_AT_ONCE)]
    return torch.cat(nearest).view(latents.shape[:-1])


class VQGAN(PublishedCodec):
    """Tokens [B, R, C] to pixels and back, for grids of any size."""

    def __init__(self, shape: VQGANShape) -> None:
        super().__init__(shape)
        self.encoder, self.decoder = Encoder(shape), Decoder(shape)
        self.codebook = nn.Parameter(torch.randn(shape.codes, shape.code_dim))
        self.to_code = nn.Conv2d(shape.z_channels, shape.code_dim, 1)
        self.from_code = nn.Conv2d(shape.code_dim, shape.z_channels, 1)

    def unit(self, vectors: torch.Tensor) -> torch.Tensor:
        """Vectors [..., d], scaled to unit length if this codec compares directions only."""
        return F.normalize(vectors, dim=-1) if self.shape.normalised else vectors

    @property
    def code_vectors(self) -> torch.Tensor:
        return self.unit(self.codebook)

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        latents = self.to_code(self.encoder(pictures.float())).permute(0, 2, 3, 1)
        return nearest_codes(self.unit(latents), self.code_vectors)

    def pixels(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.from_code(vectors))


RULES = ((r"^codebook$", CODEBOOK_KEY), (r"^to_code", "quant_conv"),
         (r"^from_code", "post_quant_conv"), (r"^(encoder.*)resize", r"\1downsample.conv"),
         (r"^(decoder.*)resize", r"\1upsample.conv"), (r"\.shortcut\.", ".nin_shortcut."),
         (r"\.attentions\.", ".attn."), (r"\.project\.", ".proj_out."),
         (r"\.query\.", ".q."), (r"\.key\.", ".k."), (r"\.value\.", ".v."),
         (r"\.middle\.", ".mid."))
TAMING_RULES = (*RULES, (r"\.blocks\.", ".block."), (r"\.mid\.block(\d)", r".mid.block_\1"),
                (r"\.mid\.attention", ".mid.attn_1"))
LLAMAGEN_RULES = (*RULES, (r"\.blocks\.", ".res."), (r"\.(up|down)\.", ".conv_blocks."),
                  (r"\.mid\.block1", ".mid.0"), (r"\.mid\.attention", ".mid.1"),
                  (r"\.mid\.block2", ".mid.2"))

# A file's prefix depends on what else it holds (none, `gen_vision_model.`, `model.vqmodel.`);
# `layout_of` finds it.
LAYOUTS = {
    "llamagen": CodecNames(LLAMAGEN_RULES),  # LlamaGen, Tar, Janus-Pro's original
    "janus-hf": CodecNames(TAMING_RULES),  # Janus-Pro saved by transformers
    "taming": CodecNames(TAMING_RULES, up_reversed=True),  # Chameleon, Anole
}


def layout_of(shapes: Shapes) -> CodecNames:
    """The row of LAYOUTS that a file follows, with the file's prefix."""
    prefix = require_kind(shapes, VQGAN_KIND)
    if any(key.startswith(f"{prefix}decoder.conv_blocks.") for key in shapes):
        layout = LAYOUTS["llamagen"]
    elif f"{prefix}decoder.up.0.upsample.conv.weight" in shapes:
        layout = LAYOUTS["janus-hf"]
    else:
        layout = LAYOUTS["taming"]
    return replace(layout, prefix=prefix)


def shape_of(shapes: Shapes) -> VQGANShape:
    """The codec's sizes, from tensor shapes. Raises SSDError if a tensor is missing.

    Shapes do not tell whether codes are normalised. Files that count `up` from the coarsest level
    (LlamaGen's) have normalised codes; those that count from the finest (taming's) do not.
    """
    layout = layout_of(shapes)
    return replace(measured(shapes, layout), normalised=not layout.up_reversed)


def vqgan_of(shapes: Shapes) -> tuple[VQGAN, dict[str, str]]:
    """The codec of a file on the meta device, and {own name: file key} for `load_weights`.

    Raises SSDError if a tensor is missing, unknown or of another shape.
    """
    shape = shape_of(shapes)
    with torch.device("meta"):
        codec = VQGAN(shape)
    return codec, matching_keys(codec, layout_of(shapes), shapes)


class IBQ(VQGAN):
    """Emu3.5's codec, whose encoder chooses codes by inner product: tokens [B, R, C] to pixels."""

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        latents = self.to_code(self.encoder(pictures.float())).permute(0, 2, 3, 1)
        likeliest = [(part @ self.codebook.T).argmax(-1)
                     for part in latents.flatten(0, -2).split(PRODUCTS_AT_ONCE)]
        return torch.cat(likeliest).view(latents.shape[:-1])


def ibq_of(shapes: Shapes) -> tuple[IBQ, dict[str, str]]:
    """The codec of a file on the meta device, and {own name: file key} for `load_weights`.

    Raises SSDError if a tensor is missing, unknown or of another shape.
    """
    layout = layout_of(shapes)
    with torch.device("meta"):
        codec = IBQ(measured(shapes, layout))
    return codec, matching_keys(codec, layout, shapes)
