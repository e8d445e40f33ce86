"""The sizes that determine a backbone's memory, whether it is loaded or only in the catalogue.

Knows no run and no device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from torch import nn

from ..backbones.base import SHORT_NAMES as SHORT_NAMES
from ..backbones.base import Backbone, Preset
from ..backbones.base import stored_bytes as stored_bytes
from ..backbones.base import stored_dtype as stored_dtype
from ..backbones.codecs.vq import VQTokenizer
from ..errors import SSDError
from ..model.grid import Grid
from ..model.products import Int8Matrix
from ..model.transformer import DecoderShape
from .catalogue import KnownBackbone
from .quantize import IMAGE_HEAD

LONG_PROMPT, MANY = 128, 1000  # prompt length assumed where the limit is at least MANY


@dataclass(frozen=True)
class ModelSize:
    """The sizes that determine a backbone's memory."""

    name: str
    shape: DecoderShape
    grid: Grid
    codes: int
    preset: Preset
    patch: int
    prompt_slots: int
    other_parameters: int  # outside the layers and the codec: embeddings, norm, head
    codec_parameters: int  # of 4 bytes each, also what its tables of bytes take
    codec_channels: float  # per pixel, at the codec's widest layer
    image_head: int = 0  # of other_parameters: the matrices between hidden state and logits
    tied: bool = False  # that matrix embeds the codes too
    dtype: str = "bf16"
    offload: bool = False

    @classmethod
    def of(cls, target: ModelSize | Backbone | KnownBackbone,
           prompt_slots: int | None = None) -> ModelSize:
        """The sizes of a backbone or catalogue row; prompts have up to `prompt_slots` ids."""
        if isinstance(target, ModelSize):
            model = target
        else:
            model = of_row(target) if isinstance(target, KnownBackbone) else of_backbone(target)
        return model if prompt_slots is None else replace(model, prompt_slots=prompt_slots)

    @property
    def largest_matrix(self) -> tuple[int, int]:
        """(outputs, inputs) of the largest matrix of a layer."""
        s = self.shape
        return max((2 * s.ffn, s.hidden), ((s.heads + 2 * s.kv_heads) * s.head_dim, s.hidden),
                   key=math.prod)

    @property
    def matrices(self) -> int:
        """Parameters in the matrices of all layers."""
        s = self.shape
        attention = 2 * s.hidden * s.head_dim * (s.heads + s.kv_heads)
        return s.layers * (attention + 3 * s.hidden * s.ffn)

    @property
    def parameters(self) -> int:
        return self.matrices + self.other_parameters + self.codec_parameters

    def resized(self, size: tuple[int, int] | None) -> ModelSize:
        """Return the sizes at (width, height) px, without checking that the backbone has it."""
        if size is None:
            return self
        columns, rows = (side // self.patch for side in size)
        if (columns * self.patch, rows * self.patch) != tuple(size):
            raise SSDError(f"size {size[0]}x{size[1]}: {self.name} draws in steps of {self.patch} "
                           "pixels")
        return replace(self, grid=Grid(rows, columns, self.grid.row_end))


def of_row(row: KnownBackbone) -> ModelSize:
    """The sizes of a catalogue row; embeddings and head are as wide as the decoder."""
    others = (row.vocabulary + (2 - row.tied) * row.codes + 1) * row.shape.hidden
    return ModelSize(row.name, row.shape, row.grid, row.codes, row.preset, row.patch,
                     row.prompt_slots, others, row.codec_parameters, row.codec_channels,
                     row.codes * row.shape.hidden, row.tied)


def of_backbone(backbone: Backbone) -> ModelSize:
    """The sizes of a loaded backbone; a prompt limit of MANY or more is no usual length."""
    codec = getattr(backbone, "picture_codec", None) or nn.Identity()
    patch = backbone.size[0] // backbone.grid.columns
    count = sum(weight.numel() for weight in backbone.parameters()) - sum(
        module.scales.numel() for module in backbone.modules() if isinstance(module, Int8Matrix))
    head = sum(math.prod(getattr(backbone, name).shape) for name in IMAGE_HEAD
               if hasattr(backbone, name))
    in_codec = sum(weight.numel() for weight in codec.parameters())
    tables = sum(stored_bytes(table) for table in codec.buffers())
    prompt = backbone.prompt_limit + 2 if backbone.prompt_limit < MANY else LONG_PROMPT
    if (sketch := backbone.sketch()) is not None:
        prompt += sketch.grid.cells
    model = ModelSize(backbone.name, backbone.decoder.shape, backbone.grid, backbone.codes,
                      backbone.preset, patch, prompt, 0, in_codec + tables // 4,
                      codec_channels(codec, patch, backbone.scale), head,
                      backbone.head is getattr(backbone, "code_embedding", None),
                      stored_dtype(backbone), backbone.offloader is not None)
    return replace(model, other_parameters=count - in_codec - model.matrices)


def codec_channels(codec: nn.Module, patch: int, scale: int) -> float:
    """Channels per pixel at the codec's widest layer; codecs without levels work on cells."""
    if (known := getattr(codec, "pixel_channels", None)) is not None:
        return known
    if isinstance(codec, VQTokenizer):
        return codec.channels_per_pixel(scale)
    channels = (m.out_channels for m in codec.modules() if isinstance(m, nn.Conv2d))
    return max(channels, default=0) / patch**2
