"""What every backbone is to the engine: prompts in, hidden states, logits, pixels out.

A backbone is a decoder between two thin ends. The decoding loop calls these methods and
nothing else, so a mock of thirty lines can stand in for eight billion weights.
"""

from __future__ import annotations

from copy import copy
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import nn

from ..errors import SSDError
from ..model.grid import Grid
from ..model.kv_cache import KVCache
from ..model.transformer import Decoder
from .codecs.codec import PictureCodec
from .offload import TakesTurns
from .presets import Preset

M = TypeVar("M", bound=nn.Module)


def empty(*sizes: int) -> nn.Parameter:
    """A parameter whose values come from a file."""
    return nn.Parameter(torch.empty(sizes))


def place_of(module: nn.Module) -> torch.device:
    """Where a module's weights are; a picture codec may be elsewhere than its decoder."""
    return next(module.parameters()).device


class Backbone(nn.Module):
    """Decoder plus embeddings, final norm and image head.

    Subclasses set the attributes below and write `tokenize`, `unconditional` and `embed_prompt`;
    `lay_out` too, where they draw several sizes. Token ids of picture slots run over 0..codes-1;
    the forced row end, where the grid has one, is id `codes`.
    """

    name: str
    sha256: str = ""
    grid: Grid
    codes: int
    sizes: tuple[tuple[int, int], ...]  # legal (width, height) in px, the present one first
    prompt_limit: int
    takes_negative: bool = True
    preset: Preset
    decoder: Decoder
    code_embedding: torch.Tensor
    norm: torch.Tensor
    head: torch.Tensor
    angles: torch.Tensor | None = None
    positions: torch.Tensor | None = None
    turns: TakesTurns | None = None  # with offload: whether decoder or codec is on the device
    picture_codec: PictureCodec

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in px of the pictures drawn now; `resized` gives another."""
        return self.sizes[0]

    def resized(self, size: tuple[int, int] | None) -> Backbone:
        """This backbone drawing `size` (None: as it is): a view that shares all weights."""
        if size is None or tuple(size) == self.size:
            return self
        if tuple(size) not in self.sizes:
            legal = ", ".join(f"{width}x{height}" for width, height in self.sizes)
            raise SSDError(f"size {size[0]}x{size[1]}: {self.name} draws {legal}")
        view = copy(self)
        others = [other for other in self.sizes if other != tuple(size)]
        view.sizes = ((size[0], size[1]), *others)
        view.lay_out()
        return view

    def lay_out(self) -> None:
        """Set what follows from `size`: grid, angles, positions."""
        raise NotImplementedError

    @property
    def hidden_size(self) -> int:
        return self.decoder.shape.hidden

    @property
    def device(self) -> torch.device:
        return self.norm.device

    @property
    def dtype(self) -> torch.dtype:
        return self.norm.dtype

    def tokenize(self, prompt: str) -> list[int]:
        """Prompt ids, special tokens included; the last one predicts cell (0, 0)."""
        raise NotImplementedError

    def tokenize_negative(self, prompt: str) -> list[int]:
        """Ids of a negative prompt, where they are not simply those of a prompt."""
        return self.tokenize(prompt)

    def unknown_words(self, prompt: str) -> list[str]:
        """Words of a prompt that say nothing to this backbone, each with its reason where it is
        not simply unknown."""
        return []

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        """Prompt ids of the guidance branch that has no text."""
        raise NotImplementedError

    def hidden_slots(self, prompt_ids: list[int]) -> int:
        """How many of the prompt's first slots nobody may attend to."""
        return 0

    def embed_prompt(self, ids: torch.Tensor) -> torch.Tensor:
        """[rows, P] int64 -> [rows, P, d]."""
        raise NotImplementedError

    def awake(self, module: M) -> M:
        """The decoder or the picture codec, on the device: with offload they take turns there."""
        if self.turns is not None:
            self.turns.take(module)
        return module

    def decode(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [B, R, C] int64 -> pictures [B, H, W, 3] float32 in 0..1."""
        codec = self.awake(self.picture_codec)
        pixels = codec.decode(tokens.to(place_of(codec)))
        return pixels.permute(0, 2, 3, 1).add(1).div(2).clamp(0, 1)

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        """Pictures [B, H, W, 3] float in 0..1, of `size` -> tokens [B, R, C] int64."""
        width, height = self.size
        if tuple(pictures.shape[1:]) != (height, width, 3):
            raise SSDError(f"{self.name} encodes pictures of {width}x{height} pixels, "
                           f"not {pictures.shape[2]}x{pictures.shape[1]}: resize it first")
        codec = self.awake(self.picture_codec)
        pixels = pictures.to(place_of(codec), torch.float32).permute(0, 3, 1, 2) * 2 - 1
        return codec.encode(pixels)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """e of the paper: [rows, n] slot tokens -> [rows, n, d] input embeddings."""
        return F.embedding(tokens, self.code_embedding)

    def forward(self, x: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        """One pass: embeddings [rows, n, d] -> h_pre [rows, n, d], before the final RMSNorm.

        Slots come from the cache; without one they are 0..n-1.
        """
        slots = slice(0, x.shape[1]) if cache is None else cache.slots
        angles = None if self.angles is None else self.angles[slots]
        if angles is not None and angles.dim() == 3:
            angles = angles[:, None]
        if self.positions is not None:
            x = x + self.positions[slots]
        return self.awake(self.decoder)(x, angles, cache)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """GenHead(RMSNorm(h)): [..., d] -> float32 [..., codes]; for exact and drafted h alike."""
        hidden = F.rms_norm(hidden, hidden.shape[-1:], self.norm, self.decoder.shape.eps)
        return F.linear(hidden, self.head).float()

    def new_cache(self, rows: int, slots: int) -> KVCache:
        return self.awake(self.decoder).new_cache(rows, slots)
