"""NVIDIA's Cosmos tokenizer DV8x16x16 for single pictures (SimpleAR): wavelets, convolutions, FSQ.

The published network is for video and causal: the first frame is padded with copies of itself. With
one frame every convolution over time sums its kernel, attention over time passes its values on, and
the wavelets over time keep the mean. A code is six digits, each a level of one channel (finite
scalar quantisation, arXiv:2309.15505), so no codebook is stored. Weights and pixels are
float32.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from ...errors import SSDError
from ...model.surroundings import scaled_dot_product_attention
from .codec import PictureCodec
from .files import Shapes

# Levels of a code's channels by their number, the fastest digit first (the paper's Table 1).
LEVELS = {3: (8, 6, 5), 4: (8, 5, 5, 5), 6: (8, 8, 8, 5, 5, 5)}
WAVELETS = 2  # steps, each halves height, width and time
HALVINGS = 2  # of height and width by the network, at its finest levels
FIRST = "conv_in.0.conv3d.weight"


@dataclass(frozen=True)
class CosmosShape:
    """Sizes of the network; level 0 is the finest, at a quarter of the picture's resolution."""

    channels: int = 128
    multipliers: tuple[int, ...] = (2, 4, 4)
    res_blocks: int = 2
    z_channels: int = 16
    levels: tuple[int, ...] = LEVELS[6]

    @property
    def codes(self) -> int:
        return math.prod(self.levels)

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels of every level."""
        return tuple(self.channels * multiplier for multiplier in self.multipliers)


class Convolution(nn.Module):
    """A causal convolution over one frame, named and stored as one over video."""

    def __init__(self, channels_in: int, channels: int, side: int = 1, time: int = 1,
                 stride: int = 1) -> None:
        super().__init__()
        self.conv3d = nn.Conv3d(channels_in, channels, (time, side, side))
        self.stride, self.padding = stride, 0 if stride > 1 else side // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.conv3d.weight.sum(2)  # all frames before the first are the first
        return F.conv2d(x, weight, self.conv3d.bias, self.stride, self.padding)


def factorised(channels_in: int, channels: int) -> nn.Sequential:
    """A convolution over the picture, then one over time."""
    return nn.Sequential(Convolution(channels_in, channels, 3), Convolution(channels, channels,
                                                                           time=3))


class Norm(nn.Module):
    """Normalises all channels of a picture together."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(1, channels, eps=1e-6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class ResidualBlock(nn.Module):
    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = Norm(channels_in), factorised(channels_in, channels)
        self.norm2, self.conv2 = Norm(channels), factorised(channels, channels)
        changed = channels_in != channels
        self.nin_shortcut = Convolution(channels_in, channels) if changed else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        return self.nin_shortcut(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    """One head over all cells, added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = Norm(channels)
        self.q, self.k = Convolution(channels, channels), Convolution(channels, channels)
        self.v, self.proj_out = Convolution(channels, channels), Convolution(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        q, k, v = (part(h).flatten(2).transpose(1, 2)[:, None] for part in (self.q, self.k, self.v))
        mixed = scaled_dot_product_attention(q, k, v)[:, 0].transpose(1, 2)
        return x + self.proj_out(mixed.reshape(x.shape))


class TimeAttention(nn.Module):
    """Attention over the only frame, which takes its value whole."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = Norm(channels)
        self.v, self.proj_out = Convolution(channels, channels), Convolution(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.proj_out(self.v(self.norm(x)))


class Downsample(nn.Module):
    """Halve height and width, and convolve over time at `time`; else only pass on."""

    def __init__(self, channels: int, space: bool, time: bool) -> None:
        super().__init__()
        self.space, self.time = space, time
        if space:
            self.conv1 = Convolution(channels, channels, 3, stride=2)
        if time:
            self.conv2 = Convolution(channels, channels, time=3)
        if space or time:
            self.conv3 = Convolution(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.space:
            padded = F.pad(x, (0, 1, 0, 1))
            x = self.conv1(padded) + F.avg_pool2d(padded, 2)
        if self.time:
            x = self.conv2(x) + x
        return self.conv3(x) if self.space or self.time else x


class Upsample(nn.Module):
    """Convolve over time at `time`, and double height and width; else only pass on."""

    def __init__(self, channels: int, space: bool, time: bool) -> None:
        super().__init__()
        self.space, self.time = space, time
        if time:
            self.conv1 = Convolution(channels, channels, time=3)
        if space:
            self.conv2 = Convolution(channels, channels, 3)
        if space or time:
            self.conv3 = Convolution(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.time:
            x = self.conv1(x) + x
        if self.space:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = self.conv2(x) + x
        return self.conv3(x) if self.space or self.time else x


class Level(nn.Module):
    """Residual blocks at one resolution, then `resize` under the file's name for it."""

    def __init__(self, channels_in: int, channels: int, blocks: int, name: str = "",
                 resize: nn.Module | None = None) -> None:
        super().__init__()
        self.block = nn.ModuleList(ResidualBlock(channels if i else channels_in, channels)
                                   for i in range(blocks))
        self.name = name
        if resize is not None:
            self.add_module(name, resize)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.block:
            x = block(x)
        return self.get_submodule(self.name)(x) if self.name else x


class Middle(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block_1 = ResidualBlock(channels, channels)
        self.attn_1 = nn.Sequential(Attention(channels), TimeAttention(channels))
        self.block_2 = ResidualBlock(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block_2(self.attn_1(self.block_1(x)))


class Encoder(nn.Module):
    """Wavelets [B, 192, H / 4, W / 4] -> latents [B, z, H / 16, W / 16]."""

    def __init__(self, shape: CosmosShape) -> None:
        super().__init__()
        widths, last = shape.widths, len(shape.widths) - 1
        self.conv_in = factorised(3 * 8**WAVELETS, shape.channels)
        self.down = nn.ModuleList(
            Level(widths[i - 1] if i else shape.channels, width, shape.res_blocks,
                  *(("downsample", Downsample(width, i < HALVINGS, i < 1)) if i < last else ()))
            for i, width in enumerate(widths))
        self.mid = Middle(widths[-1])
        self.norm_out, self.conv_out = Norm(widths[-1]), factorised(widths[-1], shape.z_channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv_in(x)
        for level in self.down:
            x = level(x)
        return self.conv_out(F.silu(self.norm_out(self.mid(x))))


class Decoder(nn.Module):
    """Latents [B, z, R, C] -> wavelets [B, 192, 4 R, 4 C]; the files count `up` from the finest."""

    def __init__(self, shape: CosmosShape) -> None:
        super().__init__()
        widths, last = shape.widths, len(shape.widths) - 1
        self.conv_in = factorised(shape.z_channels, widths[-1])
        self.mid = Middle(widths[-1])
        self.up = nn.ModuleList(
            Level(widths[min(i + 1, last)], width, shape.res_blocks + 1,
                  *(("upsample", Upsample(width, last - i < HALVINGS, last - i == 1)) if i else ()))
            for i, width in enumerate(widths))
        self.norm_out, self.conv_out = Norm(widths[0]), factorised(widths[0], 3 * 8**WAVELETS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mid(self.conv_in(x))
        for level in reversed(self.up):
            x = level(x)
        return self.conv_out(F.silu(self.norm_out(x)))


class Cosmos(PictureCodec):
    """Tokens [B, R, C] to pixels and back, for grids of any size."""

    patch = 2 ** (WAVELETS + HALVINGS)

    def __init__(self, shape: CosmosShape) -> None:
        super().__init__()
        self.shape = shape
        self.encoder, self.decoder = Encoder(shape), Decoder(shape)
        digits = len(shape.levels)
        self.quant_conv = Convolution(shape.z_channels, digits)
        self.post_quant_conv = Convolution(digits, shape.z_channels)

    @property
    def pixel_channels(self) -> float:
        """Channels per pixel of the widest feature maps."""
        return max(self.shape.widths[:2]) / 4**WAVELETS

    @property
    def code_vectors(self) -> torch.Tensor:
        device = next(self.parameters()).device
        return vectors_of(torch.arange(self.shape.codes, device=device), self.shape.levels)

    def quantised(self, tokens: torch.Tensor) -> torch.Tensor:
        return vectors_of(tokens, self.shape.levels).permute(0, 3, 1, 2)

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        latents = self.quant_conv(self.encoder(waves(pictures.float())))
        return codes_of(latents.permute(0, 2, 3, 1), self.shape.levels)

    def pixels(self, vectors: torch.Tensor) -> torch.Tensor:
        return unwaved(self.decoder(self.post_quant_conv(vectors)))


def places(levels: tuple[int, ...], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """(levels, value of each digit's place), int64 [digits] each."""
    count = torch.tensor(levels, device=device)
    return count, torch.cat((count.new_ones(1), count[:-1])).cumprod(0)


def vectors_of(codes: torch.Tensor, levels: tuple[int, ...]) -> torch.Tensor:
    """Codes [...] -> vectors [..., digits] float32 in -1..1."""
    count, place = places(levels, codes.device)
    half = count // 2
    return (codes[..., None] // place % count - half) / half


def codes_of(latents: torch.Tensor, levels: tuple[int, ...]) -> torch.Tensor:
    """Latents [..., digits] -> codes [...] int64: each channel bounded, then rounded to a level."""
    count, place = places(levels, latents.device)
    half = (count - 1) * (1 + 1e-3) / 2
    offset = (1 - count % 2) / 2  # even counts have no level in the middle
    bounded = (latents + (offset / half).atanh()).tanh() * half - offset
    return ((bounded.round().long() + count // 2) * place).sum(-1)


def waves(pixels: torch.Tensor) -> torch.Tensor:
    """Haar wavelets [B, 192, H / 4, W / 4] of pixels [B, 3, H, W]; changes over time are 0."""
    for _ in range(WAVELETS):
        a, b, c, d = (pixels[..., y::2, x::2] for y in (0, 1) for x in (0, 1))
        parts = (a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d)
        still = torch.cat(parts, 1) / 4
        pixels = torch.cat((still, torch.zeros_like(still)), 1)
    return pixels


def unwaved(waves: torch.Tensor) -> torch.Tensor:
    """Pixels of the last frame that Haar wavelets [B, 192, R, C] describe, [B, 3, 4 R, 4 C]."""
    for _ in range(WAVELETS):
        early, change = waves.chunk(2, 1)
        mean, x, y, xy = (early - change).chunk(4, 1)
        a, b, c, d = mean + x + y + xy, mean - x + y - xy, mean + x - y - xy, mean - x - y + xy
        rows = (torch.stack(pair, -1).flatten(-2) for pair in ((a, b), (c, d)))
        waves = torch.stack(tuple(rows), -2).flatten(-3, -2)
    return waves


PARTS = ("encoder", "decoder", "quantizer", "quant_conv", "post_quant_conv")


def cosmos_of(shapes: Shapes) -> tuple[Cosmos, dict[str, str]]:
    """The codec of a file on the meta device, and {own name: file key} for `load_weights`.

    Raises SSDError if a tensor is missing, of another shape, or of none of the codec's parts. These
    hold more tensors, of moving pictures.
    """
    shape = shape_of(shapes)
    with torch.device("meta"):
        codec = Cosmos(shape)
    for name, own in codec.state_dict().items():
        if name not in shapes:
            raise SSDError(f"the picture codec's tensor {name} is missing")
        if shapes[name] != tuple(own.shape):
            raise SSDError(f"the picture codec's tensor {name} has shape {shapes[name]}, expected "
                           f"{tuple(own.shape)}")
    if other := next((name for name in shapes if name.partition(".")[0] not in PARTS), None):
        raise SSDError(f"the picture codec's tensor {other} has no place in a Cosmos")
    return codec, {name: name for name in codec.state_dict()}


def shape_of(shapes: Mapping[str, tuple[int, ...]]) -> CosmosShape:
    """The network's sizes, from tensor shapes. Raises SSDError if a tensor is missing."""
    def rows(name: str) -> int:
        if len(shapes.get(name, ())) != 5:
            raise SSDError(f"the picture codec's tensor {name} is missing, or not of a video codec")
        return shapes[name][0]

    def count(pattern: str) -> int:
        return len({found[1] for name in shapes if (found := re.match(pattern, name))})

    channels, digits = rows(f"encoder.{FIRST}"), rows("quant_conv.conv3d.weight")
    if digits not in LEVELS:
        raise SSDError(f"the picture codec's codes have {digits} channels: expected a discrete one "
                       "with 6, such as DV8x16x16")
    level = "encoder.down.{}.block.0.conv1.0.conv3d.weight"
    return CosmosShape(
        channels, tuple(rows(level.format(i)) // channels
                        for i in range(count(r"encoder\.down\.(\d+)\."))),
        count(r"encoder\.down\.0\.block\.(\d+)\."), rows("post_quant_conv.conv3d.weight"),
        LEVELS[digits])
