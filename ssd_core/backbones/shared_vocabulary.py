"""Backbones whose words, control tokens and picture codes share one vocabulary.

These are Chameleon's family and Emu3. One table embeds prompts and cells, a range of the head's
rows predicts cells, and a row may end with a control token. Knows no prompt template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from ..errors import SSDError
from ..model.grid import Grid
from ..model.transformer import Decoder, DecoderShape, sequence_angles
from .base import Backbone
from .codecs.codec import PictureCodec
from .prompts.text import Text
from .reading.checkpoint import Checkpoint
from .reading.weights import (
    Concat,
    Slice,
    Source,
    decoder_sources,
    fill,
    fingerprint_of,
    pieces,
    require_known,
)


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

    @property
    def word_reader(self) -> Text:
        return self.vocabulary.text

    def drawn_grid(self) -> Grid:
        """The grid of a picture of the current size."""
        width, height = self.size
        return Grid(height // self.patch, width // self.patch, self.row_end)

    def apply_size(self) -> None:
        self.grid = self.drawn_grid()
        slots = self.prompt_limit + self.grid.slots
        self.angles = sequence_angles(slots, self.decoder.shape.head_dim, self.theta)
        self.angles = self.angles.to(self.device)

    def load(self, checkpoint: Checkpoint, sources: Mapping[str, Source], codec: PictureCodec,
             device: torch.device, dtype: torch.dtype) -> None:
        """Fill in the weights, take the codec, then prepare for the current size.

        Where the same rows embed and predict the codes they are stored once. A file may hold the
        codec too, also where another one is used, and a head though it is tied.
        """
        require_known(checkpoint, sources, (r"(model\.)?vqmodel\..*", r".*lm_head\.weight"))
        if checkpoint.adopted:
            self.sha256 = fingerprint_of(checkpoint, sources).hexdigest()
            sources = self.with_whole_table(checkpoint, sources)
        tied = sources["head"] == sources.get("code_embedding")
        if tied:
            self.head = self.code_embedding
            sources = {name: source for name, source in sources.items() if name != "head"}
        prints = fill(self, sources, checkpoint, device, dtype)
        self.sha256 = self.sha256 or prints.hexdigest()
        if tied:
            self.head = self.code_embedding
        self.requires_grad_(False).eval()
        self.picture_codec = codec
        self.apply_size()

    def with_whole_table(self, checkpoint: Checkpoint,
                         sources: Mapping[str, Source]) -> dict[str, Source]:
        """Embed words and cells by a loaded model's whole table, which need not be copied then."""
        key = next(pieces(checkpoint, sources["word_embedding"]))[0]
        del self.code_embedding
        self.word_embedding = nn.Parameter(torch.empty(checkpoint.shapes[key], device="meta"))
        return {**{name: source for name, source in sources.items() if name != "code_embedding"},
                "word_embedding": key}

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        if hasattr(self, "code_embedding"):
            return super().embed(tokens)
        ids = tokens + self.vocabulary.first_code
        if (row_end := self.vocabulary.row_end) is not None:
            ids = ids.where(tokens < self.codes, row_end)
        return F.embedding(ids, self.word_embedding)


def vocabulary_sources(vocabulary: Vocabulary, shape: DecoderShape, prefix: str,
                       head: str) -> dict[str, Source]:
    """Sources of all parameters of a SharedVocabulary, by Hugging Face's names."""
    embedding, v, s = f"{prefix}embed_tokens.weight", vocabulary, shape
    codes = Slice(embedding, v.first_code, v.first_code + v.codes)
    row_end = () if v.row_end is None else (Slice(embedding, v.row_end, v.row_end + 1),)
    return {"word_embedding": Slice(embedding, 0, v.size),
            "code_embedding": Concat((codes, *row_end)) if row_end else codes,
            "head": Slice(head, v.first_code, v.first_code + v.codes),
            "norm": f"{prefix}norm.weight",
            **decoder_sources(prefix, s.layers, qk_norm=s.qk_norm, qkv_bias=s.qkv_bias,
                              rms_normed=(s.heads, s.kv_heads) if s.qk_rms_norm else None)}
