"""The interface of a picture codec, and the sizes of codecs read from published files.

Knows no file, device or backbone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from ...errors import SSDError

GROUPS = 32
AT_ONCE = 1024  # codes compared with all others at a time


class PictureCodec(nn.Module):
    """Tokens [B, R, C] to pixels [B, 3, H, W] of about -1..1 and back."""

    patch: int  # pixels per side of a cell
    scales: tuple[int, ...] = (1,)  # sides that `decode` offers, against those that `encode` reads
    codebook: torch.Tensor  # [codes, d]
    glances: bool = False  # whether there is a `glance`
    encoder_bytes: int = 0  # that `encode` loads besides
    _similar: torch.Tensor | None = None

    @property
    def code_vectors(self) -> torch.Tensor:
        """The codebook [codes, d], scaled as the encoder compares latents with it."""
        return self.codebook

    def quantised(self, tokens: torch.Tensor) -> torch.Tensor:
        """Codes [B, R, C] -> their vectors [B, d, R, C]."""
        return F.embedding(tokens, self.code_vectors).permute(0, 3, 1, 2)

    def similar_codes(self, codes: int, count: int) -> torch.Tensor:
        """[codes, count] int32: each of the first codes, then the nearest others; cached."""
        if self._similar is None or self._similar.shape[0] != codes or (
                self._similar.shape[1] < count):
            self._similar = nearest_others(self.code_vectors[:codes].detach().float(), count)
        return self._similar[:, :count]

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        """Pixels [B, 3, H, W] in -1..1, sides divisible by `patch` -> codes [B, R, C]."""
        raise NotImplementedError

    def pixels(self, vectors: torch.Tensor) -> torch.Tensor:
        """Code vectors [B, d, R, C] -> pixels [B, 3, H, W] of about -1..1, not clamped."""
        raise NotImplementedError

    def decode(self, tokens: torch.Tensor, scale: int = 1) -> torch.Tensor:
        """Codes [B, R, C] int64 -> pixels [B, 3, H, W] float32 of about -1..1, not clamped.

        scale: one of `scales`; a cell has patch * scale pixels a side.
        """
        pixels = self.pixels(self.quantised(tokens))
        return pixels if scale == 1 else self.enlarged(pixels, scale)

    def glance(self, tokens: torch.Tensor) -> torch.Tensor:
        """Pixels much like those of `decode`, at scale 1, in a small part of its time."""
        raise NotImplementedError

    def code_colours(self) -> torch.Tensor | None:
        """[codes, 3] in 0..1: the mean colour of each code's cell; None if only pictures tell."""
        return None

    def enlarged(self, pixels: torch.Tensor, scale: int) -> torch.Tensor:
        """What `pixels` returned, at another one of `scales`."""
        raise NotImplementedError


@contextmanager
def in_float32(codec: nn.Module) -> Iterator[None]:
    """Compute a loaded model's codec in float32; afterwards its tensors are its own again."""
    with torch.inference_mode(False):  # inference tensors could not be used outside
        own = {value: value.data for value in (*codec.parameters(), *codec.buffers())
               if value.dtype in (torch.bfloat16, torch.float16)}
        for value in own:
            value.data = value.data.float()
    try:
        yield
    finally:
        with torch.inference_mode(False):
            for value, data in own.items():
                value.data = data


def nearest_others(vectors: torch.Tensor, count: int) -> torch.Tensor:
    """[n, count] int32: for each of vectors [n, d] its own index, then the nearest others."""
    parts = []
    for first in range(0, len(vectors), AT_ONCE):
        distance = torch.cdist(vectors[first : first + AT_ONCE], vectors)
        distance.diagonal(first).fill_(-1)  # itself comes first, even where codes are equal
        parts.append(distance.topk(count, largest=False).indices.int())
    return torch.cat(parts)


@dataclass(frozen=True)
class VQGANShape:
    """Sizes of a VQGAN; level 0 is the finest, each further level halves height and width.

    `normalised`: codes and latents are scaled to unit length (l2) before they are compared.
    """

    channels: int = 128
    multipliers: tuple[int, ...] = (1, 1, 2, 2, 4)
    res_blocks: int = 2
    z_channels: int = 256
    codes: int = 16384
    code_dim: int = 8
    normalised: bool = False
    attention_levels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.multipliers or self.channels % GROUPS or min(self.multipliers) < 1:
            raise SSDError(f"a picture codec of {self.channels} channels times {self.multipliers}: "
                           f"expected levels, and multiples of {GROUPS} channels")

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels of every level."""
        return tuple(self.channels * multiplier for multiplier in self.multipliers)

    @property
    def patch(self) -> int:
        """Pixels per side of a cell."""
        return 2 ** (len(self.multipliers) - 1)


class PublishedCodec(PictureCodec):
    """A codec whose sizes come from the tensors of a published file."""

    def __init__(self, shape: VQGANShape) -> None:
        super().__init__()
        self.shape = shape
        self.patch = shape.patch

    @property
    def pixel_channels(self) -> float:
        """Channels per pixel of the widest feature maps."""
        return max(self.shape.widths[:2])
