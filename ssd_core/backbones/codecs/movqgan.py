"""SBER's MoVQGAN, the codec of Lumina-mGPT 2.0.

It is the VQGAN with a decoder whose norms the codes scale and shift, as in Emu3's MoVQ, without
layers over time. Knows no file, device or backbone. Weights and pixels are float32.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from .codec import VQGANShape
from .files import MOVQGAN_KIND, CodecNames, Shapes, matching_keys, measured, require_kind
from .movq import SPATIAL_RULES, SpatialNorm
from .vqgan import TAMING_RULES, VQGAN, Decoder

LAYOUT = CodecNames((*SPATIAL_RULES, *TAMING_RULES), up_reversed=True)  # ai-forever/MoVQGAN


class MoVQGAN(VQGAN):
    """Tokens [B, R, C] to pixels and back, for grids of any size."""

    def __init__(self, shape: VQGANShape) -> None:
        super().__init__(shape)
        self.decoder = Decoder(shape, partial(SpatialNorm, shape.code_dim))

    def pixels(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.from_code(vectors), vectors)


def movqgan_of(shapes: Shapes) -> tuple[MoVQGAN, dict[str, str]]:
    """The codec of a file on the meta device, and {own name: file key} for `load_weights`.

    Raises SSDError if a tensor is missing, unknown or of another shape.
    """
    layout = replace(LAYOUT, prefix=require_kind(shapes, MOVQGAN_KIND))
    with torch.device("meta"):
        codec = MoVQGAN(measured(shapes, layout))
    return codec, matching_keys(codec, layout, shapes)
