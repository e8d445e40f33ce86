"""SimpleAR 0.5B and 1.5B: a Qwen2 that draws 1024 x 1024 px, with NVIDIA's Cosmos as its codec.

Words and codes share one vocabulary; the codes have the ids after the tokenizer's. Rows do not end
with a token. The unconditional branch is a fixed negative prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import torch

from ..errors import SSDError
from ..files import is_here, small_text
from ..model.transformer import DecoderShape
from . import presets
from .codecs.cosmos import Cosmos, cosmos_of
from .codecs.files import load_weights
from .prompts.own_words import OwnWords
from .prompts.text import (
    ADDED,
    MERGES,
    VOCABULARY,
    Text,
    read_text,
    read_vocabulary_files,
    require_length,
)
from .reading.checkpoint import Checkpoint
from .reading.decoder_config import head_key, number, read_constants, refusal, require_names
from .reading.weights import decoder_shape, two_sizes
from .shared_vocabulary import SharedVocabulary, Vocabulary, vocabulary_sources

FAMILY = "SimpleAR"
IDS = 215_672  # of the published models
SIZE = (1024, 1024)  # px of its training pictures
THETA, EPS = 1e6, 1e-6  # of the published models, if config.json has none
SIZES = {896: ("simplear-0.5b", 14), 1536: ("simplear-1.5b", 12)}  # name and heads by width
PREFIX, EMBEDDING, HEAD = "model.", "model.embed_tokens.weight", "lm_head.weight"
BIAS = "model.layers.0.self_attn.q_proj.bias"
BEGIN, PICTURE = "<|t2i|>", "<|soi|>"
NEGATIVE = "An image of "
OWN_WORDS = OwnWords(
    before="A highly realistic image of ",
    negative="aerial view, overexposed, low quality, deformation, a poor composition, bad hands, "
             "bad teeth, bad eyes, bad limbs, distortion")
CODEC = "put autoencoder.jit of nvidia/Cosmos-1.0-Tokenizer-DV8x16x16 into its subfolder cosmos"
OTHERS = re.compile(r"(?i)cosmos-0\.1|[48]x8x8")  # same shapes, other codes


class SimpleAR(SharedVocabulary):
    """Square pictures; a prompt and a negative prompt begin with different words."""

    patch = 16
    prompt_limit = 1024
    preset = presets.SIMPLEAR
    own_words = OWN_WORDS
    sizes = (SIZE,)

    def __init__(self, shape: DecoderShape, vocabulary: Vocabulary, theta: float) -> None:
        super().__init__(shape, vocabulary, theta)
        self.begin, self.picture = map(vocabulary.text.id, (BEGIN, PICTURE))

    def in_template(self, words: str) -> list[int]:
        text = self.vocabulary.text
        ids = [self.begin, *text.encode(words), self.picture]
        require_length(self.name, ids, self.prompt_limit)
        return ids

    def tokenize(self, prompt: str) -> list[int]:
        self.vocabulary.text.require_plain(prompt)
        return self.in_template(self.own_words.written(prompt.strip()))

    def tokenize_negative(self, prompt: str) -> list[int]:
        self.vocabulary.text.require_plain(prompt)
        return self.in_template(NEGATIVE + prompt.strip())

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return self.in_template(NEGATIVE + self.own_words.negative)


def matches(checkpoint: Checkpoint) -> bool:
    """A Qwen2 (its queries have biases) of the published vocabulary, or with its control token."""
    if BIAS not in checkpoint.shapes or not head_key(checkpoint, HEAD, EMBEDDING):
        return False
    texts = (checkpoint.folder / name for name in (ADDED, "tokenizer.json"))
    return checkpoint.shapes[EMBEDDING][:1] == (IDS,) or any(
        BEGIN in small_text(path, errors="replace") for path in texts if is_here(path))


def read_words(checkpoint: Checkpoint) -> Text:
    """The tokenizer from tokenizer.json, or from the files that older libraries save instead."""
    folder, rows = checkpoint.folder, two_sizes(checkpoint, EMBEDDING)[0]
    if all(is_here(folder / name) for name in (VOCABULARY, MERGES, ADDED)):
        text = read_vocabulary_files(folder)
        text.require_ids(rows)
        return text
    return read_text(checkpoint.path("tokenizer.json"), rows)


def read_vocabulary(checkpoint: Checkpoint, codes: int) -> Vocabulary:
    """The tokenizer, whose ids must end where the codec's codes begin."""
    text, rows = read_words(checkpoint), two_sizes(checkpoint, EMBEDDING)[0]
    if (entries := text.entries) != rows - codes:
        raise SSDError(f"{text.source}: has {entries} entries, expected {rows - codes} beside the "
                       f"{codes} codes: take the tokenizer and the codec that belong to this model")
    return Vocabulary(text, entries, entries, codes)


def holding(net: str) -> Callable[[Checkpoint], bool]:
    """A test for files with this half of the codec."""
    return lambda other: f"{net}.conv_in.0.conv3d.weight" in other.shapes


def read_cosmos(checkpoint: Checkpoint, device: torch.device) -> Cosmos:
    """Load the codec from one archive, or its two halves from two; SSDError says what is wrong."""
    holders = [checkpoint.companion(holding(net)) for net in ("decoder", "encoder")]
    found = [holder for holder in holders if holder is not None]
    if len(found) < len(holders):
        raise SSDError(f"{checkpoint.root}: the picture codec is missing: {CODEC}")
    if other := OTHERS.search(" ".join(found[0].names())):
        raise SSDError(f"{found[0].files[0]}: {other[0]} is another tokenizer, with other codes: "
                       f"{CODEC}")
    shapes = {key: shape for holder in found for key, shape in holder.shapes.items()}
    try:
        codec, keys = cosmos_of(shapes)
        load_weights(codec, keys, lambda key: next(
            holder for holder in found if key in holder.shapes).floating(key).to(device))
    except SSDError as error:
        raise SSDError(f"{found[0].files[0]}: {error}") from error
    return codec


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> SimpleAR:
    """Read a model with Hugging Face's names; the codec first, as it is often missing."""
    config = checkpoint.config()
    if config.get("use_sliding_window"):
        raise refusal(checkpoint, "use_sliding_window is set: cells must see the whole prompt")
    constants = read_constants(checkpoint, config, THETA, EPS)
    hidden = two_sizes(checkpoint, EMBEDDING)[1]
    name, heads = SIZES.get(hidden, ("simplear", 0))
    heads = int(number(checkpoint, config, "num_attention_heads", heads))  # 0 is refused by name
    shape = decoder_shape(checkpoint, PREFIX, heads, config=config, eps=constants.eps,
                          qkv_bias=True)
    codec = read_cosmos(checkpoint, device)
    vocabulary = read_vocabulary(checkpoint, codec.shape.codes)
    with torch.device("meta"):
        backbone = SimpleAR(shape, vocabulary, constants.theta)
    backbone.name = name
    head = require_names(head_key(checkpoint, HEAD, EMBEDDING), checkpoint, FAMILY)
    sources = vocabulary_sources(vocabulary, shape, PREFIX, head)
    backbone.load(checkpoint, sources, codec, device, dtype)
    return backbone
