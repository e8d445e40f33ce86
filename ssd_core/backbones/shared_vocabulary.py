"""Backbones whose words, control tokens and picture codes share one vocabulary.

These are Chameleon's family and Emu3. One table embeds prompts and cells, a range of the head's
rows predicts cells, and a row may end with a control token. Knows no prompt template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from ..errors import SSDError
from ..model.grid import Grid
from ..model.transformer import Decoder, DecoderShape, sequence_angles
from .base import Backbone
from .prompts.text import Text
from .reading.checkpoint import Checkpoint
from .reading.weights import Concat, Slice, Source, decoder_sources, fill


@dataclass(frozen=True)
class Vocabulary:
    """Words have ids below `size`; picture codes have `codes` ids from `first_code` on.

    row_end: the control token that closes every row, or None.
    """

    text: Text
    size: int
    first_code: int
    codes: int
    row_end: int | None = None


def code_range(text: Text, pattern: str, name_of: Callable[[int], str]) -> tuple[int, int] | None:
    """(first id, count) of the picture tokens, found by their names.

    None if no token's name matches. Raises SSDError if their ids are not in order.
    """
    named = {name: i for name, i in text.tokenizer.get_vocab().items()
             if re.fullmatch(pattern, name)}
    if not named:
        return None
    first = min(named.values())
    if named != {name_of(code): first + code for code in range(len(named))}:
        raise SSDError(f"{text.source}: the picture tokens such as {name_of(0)} are not numbered "
                       "in order: take the tokenizer that belongs to this model")
    return first, len(named)


class SharedVocabulary(Backbone):
    """Cells of `patch` x `patch` px; subclasses set sizes and templates, then call `apply_size`."""

    patch: int

    def __init__(self, shape: DecoderShape, vocabulary: Vocabulary, theta: float) -> None:
        super().__init__()
        def table(ids: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(ids, shape.hidden))

        self.vocabulary, self.codes, self.theta = vocabulary, vocabulary.codes, theta
        self.row_end = vocabulary.row_end is not None
        self.decoder, self.norm = Decoder(shape), nn.Parameter(torch.empty(shape.hidden))
        self.word_embedding = table(vocabulary.size)
        self.code_embedding, self.head = table(self.codes + self.row_end), table(self.codes)

    def drawn_grid(self) -> Grid:
        """The grid of a picture of the current size."""
        width, height = self.size
        return Grid(height // self.patch, width // self.patch, self.row_end)

    def apply_size(self) -> None:
        self.grid = self.drawn_grid()
        slots = self.prompt_limit + self.grid.slots
        self.angles = sequence_angles(slots, self.decoder.shape.head_dim, self.theta)
        self.angles = self.angles.to(self.device)

    def load(self, checkpoint: Checkpoint, sources: Mapping[str, Source], device: torch.device,
             dtype: torch.dtype) -> None:
        """Fill in the weights, then prepare for the current size."""
        self.sha256 = fill(self, sources, checkpoint, device, dtype).hexdigest()
        self.requires_grad_(False).eval()
        self.apply_size()


def vocabulary_sources(vocabulary: Vocabulary, layers: int, prefix: str, head: str,
                       qk_norm: bool = False, qk_rms_norm: bool = False) -> dict[str, Source]:
    """Sources of all parameters of a SharedVocabulary, by Hugging Face's names."""
    embedding, v = f"{prefix}embed_tokens.weight", vocabulary
    codes = Slice(embedding, v.first_code, v.first_code + v.codes)
    row_end = () if v.row_end is None else (Slice(embedding, v.row_end, v.row_end + 1),)
    return {"word_embedding": Slice(embedding, 0, v.size),
            "code_embedding": Concat((codes, *row_end)),
            "head": Slice(head, v.first_code, v.first_code + v.codes),
            "norm": f"{prefix}norm.weight",
            **decoder_sources(prefix, layers, qk_norm=qk_norm, qk_rms_norm=qk_rms_norm)}
