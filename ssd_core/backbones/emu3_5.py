"""Emu3.5-Image: Emu3's decoder with norms of queries and keys, 131,072 codes and IBQ pixels.

The prompt is a chat turn, then begin-of-image and the grid's size in digits, which the model would
otherwise write itself. Published pictures end their last row with end-of-image instead of a row
end; nothing follows that token, so it changes no cell.
"""

from __future__ import annotations

import torch

from ..model.transformer import DecoderShape
from . import presets
from .codecs.find import draws, read_codec
from .codecs.vqgan import ibq_of
from .emu3 import (
    BEGIN,
    CELLS,
    EPS,
    HEAD_DIM,
    LAYOUTS,
    PICTURE,
    Q_NORM,
    RANKS,
    THETA,
    VISION,
    original_words,
    vocabulary_of,
)
from .prompts.text import require_length
from .reading.checkpoint import Checkpoint
from .reading.decoder_config import head_key, number, read_constants, require_names
from .reading.weights import decoder_shape, two_sizes
from .shared_vocabulary import SharedVocabulary, Vocabulary, vocabulary_sources
from .sizes import EMU3_5, EMU3_5_PATCH

FAMILY = "Emu3.5"
PREFIX, EMBEDDING, HEAD = LAYOUTS[0].prefix, LAYOUTS[0].embedding, LAYOUTS[0].head
QUERY = Q_NORM.replace("q_norm", "q_proj")
IDS = 282_926  # of the published models
PROMPT_LIMIT = 2048
TURN = "<|extra_100|>"  # ends the turn
TEMPLATE = "You are a helpful assistant for t2i task. USER: {prompt} ASSISTANT: "
PLAIN = "You are a helpful assistant. USER: {prompt} ASSISTANT: "  # of the unconditional branch
CODEC = "put model.ckpt of BAAI/Emu3.5-VisionTokenizer into its subfolder vq"


class Emu35(SharedVocabulary):
    """Rows end with a forced token; the prompt states the grid in digits."""

    name = "emu3.5-image"
    patch = EMU3_5_PATCH
    preset = presets.EMU3_5
    sizes = EMU3_5
    prompt_limit = PROMPT_LIMIT

    def __init__(self, shape: DecoderShape, vocabulary: Vocabulary, theta: float) -> None:
        super().__init__(shape, vocabulary, theta)
        names = (BEGIN, TURN, PICTURE, CELLS)
        self.begin, self.turn, self.picture, self.cells = map(vocabulary.text.id, names)

    def in_template(self, template: str, prompt: str) -> list[int]:
        """A chat turn, then begin-of-image and the grid's size in digits."""
        text = self.vocabulary.text
        text.require_plain(prompt)
        size = text.encode(f"{self.grid.rows}*{self.grid.columns}")
        words = text.encode(template.format(prompt=prompt))
        ids = [self.begin, *words, self.turn, self.picture, *size, self.cells]
        require_length(self.name, ids, self.prompt_limit)
        return ids

    def tokenize(self, prompt: str) -> list[int]:
        return self.in_template(TEMPLATE, prompt)

    def tokenize_negative(self, prompt: str) -> list[int]:
        return self.in_template(PLAIN, prompt)

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return self.in_template(PLAIN, "")


def matches(checkpoint: Checkpoint) -> bool:
    """Emu3's names with one norm for all query heads, and Emu3.5's ids or Emu3's config."""
    shapes = checkpoint.shapes
    if Q_NORM not in shapes or not head_key(checkpoint, HEAD, EMBEDDING):
        return False
    kind = str(checkpoint.config().get("model_type")).lower()
    return len(shapes[Q_NORM]) == 1 and (kind.startswith("emu3") or shapes[EMBEDDING][:1] == (IDS,))


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Emu35:
    """Read a model; the codec first, as it is often missing. SSDError names what is wrong."""
    config = checkpoint.config()
    head = require_names(head_key(checkpoint, HEAD, EMBEDDING), checkpoint, FAMILY)
    heads = number(checkpoint, config, "num_attention_heads",
                   two_sizes(checkpoint, QUERY)[0] // HEAD_DIM or 1)
    constants = read_constants(checkpoint, config, THETA, EPS)
    shape = decoder_shape(checkpoint, PREFIX, int(heads), config=config, eps=constants.eps)
    ranks, vision = map(checkpoint.path, (RANKS, VISION))
    vocabulary = vocabulary_of(
        original_words(ranks, vision, two_sizes(checkpoint, EMBEDDING)[0]))
    with torch.device("meta"):
        backbone = Emu35(shape, vocabulary, constants.theta)
    codec = read_codec(checkpoint, device, CODEC, draws(vocabulary.codes), ibq_of)
    sources = vocabulary_sources(vocabulary, shape, PREFIX, head)
    backbone.load(checkpoint, sources, codec, device, dtype)
    return backbone
