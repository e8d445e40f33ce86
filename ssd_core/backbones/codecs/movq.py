"""MoVQ: the codec of Emu3. It encodes video; a picture is the first frame of one.

The two-dimensional networks are the VQGAN's. This file adds the layers over time, the norm that the
codes scale and shift, and Emu3's names. Knows no file, device or backbone. Weights and pixels are
float32.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from .codec import PublishedCodec, VQGANShape
from .files import (
    MOVQ_KIND,
    MOVQGAN_KIND,
    CodecNames,
    Shapes,
    count,
    matching_keys,
    measured,
    require_kind,
)
from .vqgan import TAMING_RULES, VQGAN, Decoder, Encoder, Norm, nearest_codes


@dataclass(frozen=True)
class MoVQShape(VQGANShape):
    """Sizes of a MoVQ; `halvings`: how many times it halves the number of frames."""

    halvings: int = 2


class CausalConv(nn.Conv3d):
    """A convolution over [B, d, frames, R, C], padded with two empty frames before the first."""

    def __init__(self, channels_in: int, channels: int, kernel: tuple[int, int, int] = (3, 3, 3),
                 frame_stride: int = 1) -> None:
        super().__init__(channels_in, channels, kernel, stride=(frame_stride, 1, 1),
                         padding=(0, kernel[1] // 2, kernel[2] // 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(F.pad(x, (0, 0, 0, 0, 2, 0)))


class FixedBatchNorm(nn.Module):
    """Batch normalisation with the mean and variance stored from training."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.ones(channels)) for _ in range(2))
        self.mean, self.variance = (nn.Parameter(torch.ones(channels)) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, self.mean, self.variance, self.weight, self.bias)


class TimeBlock(nn.Module):
    """Two causal convolutions, each after norm and SiLU, added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = FixedBatchNorm(channels), CausalConv(channels, channels)
        self.norm2, self.conv2 = FixedBatchNorm(channels), CausalConv(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        return x + self.conv2(F.silu(self.norm2(h)))


class TimeEncoder(nn.Module):
    """Latents [B, z, R, C] of a picture, repeated as a still video -> [B, z, 1, R, C]."""

    def __init__(self, shape: MoVQShape) -> None:
        super().__init__()
        z = shape.z_channels
        self.convs = nn.ModuleList(CausalConv(z, z, (4, 3, 3), 2) for _ in range(shape.halvings))
        self.blocks = nn.ModuleList(TimeBlock(z) for _ in range(shape.res_blocks))

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        x = torch.stack([latents] * 2 ** len(self.convs), dim=2)
        for conv in self.convs:
            x = F.silu(conv(x))
        for block in self.blocks:
            x = block(x)
        return x


class TimeDecoder(nn.Module):
    """[B, z, 1, R, C] -> latents [B, z, R, C] of the first frame.

    The video decoder repeats frames before each convolution. Convolutions are causal, so the first
    frame depends only on the first of them, and only that one is computed.
    """

    def __init__(self, shape: MoVQShape) -> None:
        super().__init__()
        z = shape.z_channels
        self.blocks = nn.ModuleList(TimeBlock(z) for _ in range(shape.res_blocks))
        self.convs = nn.ModuleList(CausalConv(z, z) for _ in range(shape.halvings))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        for conv in self.convs:
            x = F.silu(conv(x))
        return x[:, :, 0]


class SpatialNorm(nn.Module):
    """Group normalisation, scaled and shifted per cell by the picture's codes."""

    def __init__(self, code_dim: int, channels: int) -> None:
        super().__init__()
        self.norm = Norm(channels)
        self.scale = nn.Conv2d(code_dim, channels, 1)
        self.shift = nn.Conv2d(code_dim, channels, 1)

    def forward(self, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        condition = F.interpolate(condition, size=x.shape[-2:], mode="nearest")
        # in place: at 720 x 720 pixels each of these tensors takes half a gigabyte
        return self.norm(x).mul_(self.scale(condition)).add_(self.shift(condition))


class MoVQ(PublishedCodec):
    """Tokens [B, R, C] to pixels and back, for grids of any size."""

    def __init__(self, shape: MoVQShape) -> None:
        super().__init__(shape)
        self.encoder, self.time_encoder = Encoder(shape), TimeEncoder(shape)
        self.time_decoder = TimeDecoder(shape)
        self.decoder = Decoder(shape, partial(SpatialNorm, shape.code_dim))
        self.codebook = nn.Parameter(torch.randn(shape.codes, shape.code_dim))
        self.to_code = CausalConv(shape.z_channels, shape.code_dim, (3, 1, 1))
        self.from_code = CausalConv(shape.code_dim, shape.z_channels, (3, 1, 1))

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        latents = self.to_code(self.time_encoder(self.encoder(pictures.float())))[:, :, 0]
        return nearest_codes(latents.permute(0, 2, 3, 1), self.codebook)

    def pixels(self, vectors: torch.Tensor) -> torch.Tensor:
        codes = vectors.unsqueeze(2)
        return self.decoder(self.time_decoder(self.from_code(codes)), self.time_decoder(codes))


SPATIAL_RULES = ((r"\.(norm\w*)\.norm\.", r".\1.norm_layer."), (r"\.scale\.", ".conv_y."),
                 (r"\.shift\.", ".conv_b."))
EMU3_RULES = (
    (r"^to_code", "quant_conv.conv"), (r"^from_code", "post_quant_conv.conv"),
    (r"^time_(\w+)\.convs\.(\d+)", r"\1.time_conv.\2.conv.conv"),
    (r"^time_(\w+)\.blocks\.(\d+)\.conv(\d)", r"\1.time_res_stack.\2.conv\3.conv"),
    (r"^time_(\w+)\.blocks\.", r"\1.time_res_stack."), (r"\.mean$", ".running_mean"),
    (r"\.variance$", ".running_var"), *SPATIAL_RULES, *TAMING_RULES)
EMU3_HF_RULES = (
    *EMU3_RULES, (r"\.mid\.attn_1\.norm\.", ".mid.attn_norm."), (r"\.mid\.", ".middle_block."),
    (r"\.attn\.(\d+)\.norm\.", r".attn_norms.\1."), (r"\.(down|up)\.", r".\1_block.\1."),
    (r"\.([qkv])\.", r".\1_proj."), (r"\.proj_out\.", ".out_proj."))

LAYOUTS = {
    "emu3": CodecNames(EMU3_RULES, up_reversed=True),  # BAAI/Emu3-VisionTokenizer
    "emu3-hf": CodecNames(EMU3_HF_RULES, up_reversed=True),  # Emu3 saved by transformers
}


def layout_of(shapes: Shapes) -> CodecNames:
    """The row of LAYOUTS that a file follows, with the file's prefix."""
    prefix = require_kind(shapes, MOVQ_KIND)
    hf = any(key.startswith(f"{prefix}decoder.middle_block.") for key in shapes)
    return replace(LAYOUTS["emu3-hf" if hf else "emu3"], prefix=prefix)


def shape_of(shapes: Shapes) -> MoVQShape:
    """The codec's sizes, from tensor shapes. Raises SSDError if a tensor is missing."""
    layout = layout_of(shapes)
    return MoVQShape(**asdict(measured(shapes, layout)),
                     halvings=count(shapes, layout, "time_encoder.convs.{}.weight"))


def movq_of(shapes: Shapes) -> tuple[MoVQ, dict[str, str]]:
    """The codec of a file on the meta device, and {own name: file key} for `load_weights`.

    Raises SSDError if a tensor is missing, unknown or of another shape.
    """
    shape = shape_of(shapes)
    with torch.device("meta"):
        codec = MoVQ(shape)
    return codec, matching_keys(codec, layout_of(shapes), shapes)


SBER_LAYOUT = CodecNames((*SPATIAL_RULES, *TAMING_RULES), up_reversed=True)  # ai-forever/MoVQGAN


class MoVQGAN(VQGAN):
    """SBER's codec, of Lumina-mGPT 2.0: tokens [B, R, C] to pixels and back, for grids of any size.

    The VQGAN with the decoder of Emu3's MoVQ, whose norms the codes scale and shift, without layers
    over time.
    """

    def __init__(self, shape: VQGANShape) -> None:
        super().__init__(shape)
        self.decoder = Decoder(shape, partial(SpatialNorm, shape.code_dim))

    def pixels(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.from_code(vectors), vectors)


def movqgan_of(shapes: Shapes) -> tuple[MoVQGAN, dict[str, str]]:
    """The codec of a file on the meta device, and {own name: file key} for `load_weights`.

    Raises SSDError if a tensor is missing, unknown or of another shape.
    """
    layout = replace(SBER_LAYOUT, prefix=require_kind(shapes, MOVQGAN_KIND))
    with torch.device("meta"):
        codec = MoVQGAN(measured(shapes, layout))
    return codec, matching_keys(codec, layout, shapes)
