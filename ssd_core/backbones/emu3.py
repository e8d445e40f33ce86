"""Emu3-Gen: a Llama with grouped keys, one vocabulary for words and 32,768 codes, MoVQ pixels.

Reads the original files and both layouts of the transformers port. The prompt states the size in
digits. The unconditional branch is a fixed negative prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ..errors import SSDError, first_line
from ..files import is_here, refuse_partial, small_text
from ..model.transformer import DecoderShape
from . import presets, sizes
from .codecs.find import draws, read_codec
from .codecs.movq import movq_of
from .prompts.own_words import OwnWords
from .prompts.text import WORDS, Text, read_text, read_tiktoken, require_length
from .reading.checkpoint import Checkpoint
from .reading.decoder_config import head_key, number, read_constants, require_names
from .reading.weights import decoder_shape, two_sizes
from .shared_vocabulary import SharedVocabulary, Vocabulary, code_range, vocabulary_sources

FAMILY = "Emu3"
SLOTS, END = 9216, 3  # longest training sequence; tokens that close a picture
IDS, HEAD_DIM, THETA, EPS = 184622, 128, 1e6, 1e-5  # published models
Q_NORM = "model.layers.0.self_attn.q_norm.weight"  # only Emu3.5 has it (emu3_5.py)
OWN_WORDS = OwnWords(
    after=" masterpiece, film grained, best quality.",
    negative="lowres, bad anatomy, bad hands, text, error, missing fingers, extra digit, fewer "
             "digits, cropped, worst quality, low quality, normal quality, jpeg artifacts, "
             "signature, watermark, username, blurry.")
BEGIN, ROW_END = "<|extra_203|>", "<|extra_200|>"
PICTURE, CELLS = "<|image start|>", "<|image token|>"
RANKS, VISION = "emu3.tiktoken", "emu3_vision_tokens.txt"
CODEC = "put model.safetensors of BAAI/Emu3-VisionTokenizer into its subfolder vq"


@dataclass(frozen=True)
class TensorNames:
    """Names of the decoder and the head in a file."""

    prefix: str
    head: str

    @property
    def embedding(self) -> str:
        return f"{self.prefix}embed_tokens.weight"


LAYOUTS = (TensorNames("model.", "lm_head.weight"),
           TensorNames("text_model.model.", "text_model.lm_head.weight"),  # early ports
           TensorNames("model.text_model.", "lm_head.weight"))  # newer ports


class Emu3(SharedVocabulary):
    """Rows end with a forced token; the prompt states the grid in digits."""

    name = "emu3-gen"
    patch = sizes.EMU3_PATCH
    preset = presets.EMU3
    own_words = OWN_WORDS

    def __init__(self, shape: DecoderShape, vocabulary: Vocabulary, theta: float,
                 area: float = sizes.EMU3_AREA) -> None:
        super().__init__(shape, vocabulary, theta)
        self.sizes = sizes.emu3(area)
        self.begin, self.picture, self.cells = map(vocabulary.text.id, (BEGIN, PICTURE, CELLS))

    def apply_size(self) -> None:
        """Also set the prompt limit: the rest of a training sequence beside the picture."""
        self.prompt_limit = SLOTS - END - self.drawn_grid().slots
        super().apply_size()

    def in_template(self, words: str) -> list[int]:
        """Words, then begin-of-image and the grid's size in digits."""
        text = self.vocabulary.text
        text.require_plain(words)
        size = text.encode(f"{self.grid.rows}*{self.grid.columns}")
        ids = [self.begin, *text.encode(words), self.picture, *size, self.cells]
        require_length(self.name, ids, self.prompt_limit)
        return ids

    def tokenize(self, prompt: str) -> list[int]:
        return self.in_template(self.own_words.written(prompt))

    def tokenize_negative(self, prompt: str) -> list[int]:
        return self.in_template(prompt)

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return self.in_template(self.own_words.negative)


def layout_of(checkpoint: Checkpoint) -> TensorNames | None:
    """Return the names in these files; a head tied to the embedding gets the embedding's name."""
    heads = ((layout, head_key(checkpoint, layout.head, layout.embedding)) for layout in LAYOUTS)
    return next((replace(layout, head=head) for layout, head in heads if head), None)


def matches(checkpoint: Checkpoint) -> bool:
    """Recognise ports by their keys, the original (named like any Llama) by ids or config."""
    if Q_NORM in checkpoint.shapes:
        return False
    layout = layout_of(checkpoint)
    if layout is None or layout.prefix != LAYOUTS[0].prefix:
        return layout is not None
    kind = str(checkpoint.config().get("model_type")).lower()
    return kind == "emu3" or checkpoint.shapes[layout.embedding][:1] == (IDS,)


def code_name(code: int) -> str:
    return f"<|visual token {code:06}|>"


def read_words(checkpoint: Checkpoint, ids: int) -> Text:
    """The original's tokenizer if its two files exist, else tokenizer.json."""
    ranks, vision = (checkpoint.folder / name for name in (RANKS, VISION))
    if is_here(ranks) and is_here(vision):
        return original_words(ranks, vision, ids)
    if not is_here(checkpoint.folder / "tokenizer.json"):
        raise SSDError(f"{checkpoint.folder}: the tokenizer is missing: put {RANKS} and {VISION} "
                       "of BAAI/Emu3-Gen, or tokenizer.json of Emu3-community/Emu3-Gen-hf, into it")
    return read_text(checkpoint.path("tokenizer.json"), ids)


def original_words(ranks: Path, vision: Path, ids: int) -> Text:
    """The tokenizer of a model with `ids` ids: words by rank, then control tokens, then codes."""
    refuse_partial(vision)
    try:
        codes = small_text(vision).removeprefix("\ufeff").split("\n")
    except (OSError, ValueError) as error:
        raise SSDError(f"{vision}: not a text of tokens ({first_line(error)}): get it again"
                       ) from error
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>",
               *(f"<|extra_{i}|>" for i in range(205)), *codes]
    text = read_tiktoken(ranks, WORDS, [name.strip() for name in control if name.strip()])
    text.require_ids(ids)
    return text


def vocabulary_of(text: Text) -> Vocabulary:
    """The vocabulary of a tokenizer; all ids that prompts use come before the codes."""
    codes = code_range(text, r"<\|visual token \d{6}\|>", code_name)
    if codes is None or max(map(text.id, (BEGIN, PICTURE, CELLS, ROW_END))) > codes[0]:
        raise SSDError(f"{text.source}: has no picture tokens such as {code_name(0)} behind the "
                       "words: take the tokenizer that belongs to this model")
    return Vocabulary(text, codes[0], *codes, text.id(ROW_END))


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Emu3:
    """Read a model in any of the layouts; the codec first, as it is often missing."""
    layout = require_names(layout_of(checkpoint), checkpoint, FAMILY)
    config = checkpoint.config()
    own = config.get("text_config")
    own = own if isinstance(own, dict) else config
    query = f"{layout.prefix}layers.0.self_attn.q_proj.weight"
    heads = number(checkpoint, own, "num_attention_heads",
                   two_sizes(checkpoint, query)[0] // HEAD_DIM or 1)
    constants = read_constants(checkpoint, own, THETA, EPS)
    shape = decoder_shape(checkpoint, layout.prefix, int(heads), config=own, eps=constants.eps)
    vocabulary = vocabulary_of(read_words(checkpoint, two_sizes(checkpoint, layout.embedding)[0]))
    with torch.device("meta"):
        backbone = Emu3(shape, vocabulary, constants.theta,
                        number(checkpoint, config, "image_area", sizes.EMU3_AREA))
    codec = read_codec(checkpoint, device, CODEC, draws(vocabulary.codes), movq_of)
    sources = vocabulary_sources(vocabulary, shape, layout.prefix, layout.head)
    backbone.load(checkpoint, sources, codec, device, dtype)
    return backbone
