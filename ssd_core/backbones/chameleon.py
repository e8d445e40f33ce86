"""Lumina-mGPT and Anole: Chameleon's decoder, vocabulary and VQGAN with two prompt templates.

Both decoders have the same tensors. Lumina-mGPT draws many sizes, given as size tokens in the
prompt, and ends each row with a forced token. Anole draws 32 x 32 cells without row ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import torch

from ..errors import SSDError
from ..model.transformer import DecoderShape
from . import presets, sizes
from .codecs.find import draws, read_codec
from .prompts.text import read_text, require_length
from .reading.checkpoint import Checkpoint
from .reading.decoder_config import head_key, read_constants, require_names
from .reading.weights import Concat, Slice, Source, decoder_shape, pieces, two_sizes
from .shared_vocabulary import SharedVocabulary, Vocabulary, code_range, vocabulary_sources

FAMILY = "Chameleon (Lumina-mGPT, Anole)"
TARGETS = "512, 768 or 1024"  # Lumina-mGPT was trained for the area of one of these squares
TARGET = re.compile(r"(?i)lumina.*(?<!\d)(512|768|1024)(?!\d)")
VOCABULARY = 65536  # ids of Chameleon; Lumina-mGPT 2.0 has more (lumina2.py)
FIRST_CODE, CODES = 4, 8192  # for files that do not name the picture tokens
THETA, EPS = 10_000.0, 1e-5  # of the published models
PREFIX, EMBEDDING, HEAD = "model.", "model.embed_tokens.weight", "lm_head.weight"
NORM, QUERY = "model.layers.0.self_attn.q_norm.weight", "model.layers.0.self_attn.q_proj.weight"
CODEC = "put model.safetensors of leloy/Anole-7b-v0.1-vqvae-hf into its subfolder vq"
BEGIN, TURN, PICTURE, ROW_END = "<s>", "<reserved08706>", "<racm3:break>", "<reserved08799>"


class Chameleon(SharedVocabulary):
    """Shared by both: named control tokens and 16 x 16 px per cell."""

    patch = 16
    prompt_limit = 1024

    def __init__(self, shape: DecoderShape, vocabulary: Vocabulary, theta: float,
                 begin: str = BEGIN) -> None:
        super().__init__(shape, vocabulary, theta)
        self.begin, self.turn, self.picture = map(vocabulary.text.id, (begin, TURN, PICTURE))

    def in_template(self, words: str, tail: list[int]) -> list[int]:
        ids = [self.begin, *self.vocabulary.text.encode(words), self.turn, self.picture, *tail]
        require_length(self.name, ids, self.prompt_limit)
        return ids


class Lumina(Chameleon):
    """Lumina-mGPT: the prompt states the size in words and as size tokens in steps of 32 px."""

    preset = presets.LUMINA

    def tokenize(self, prompt: str) -> list[int]:
        text, (width, height) = self.vocabulary.text, self.size
        text.require_plain(prompt)
        steps = (side // sizes.LUMINA_STEP for side in (height, width))
        sides = [text.id(f"<reserved{8800 + number:05}>") for number in steps]
        return self.in_template(self.instruction(prompt), sides)

    def instruction(self, prompt: str) -> str:
        """The words that the model was trained to follow."""
        width, height = self.size
        return f"Generate an image of {width}x{height} according to the following prompt:\n{prompt}"

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        """Only begin-of-image and the size; positions of this branch start there."""
        return prompt_ids[-3:]


class Anole(Chameleon):
    """Anole: 512 x 512 px; begin-of-image directly follows the prompt's end of turn."""

    name = "anole-7b"
    preset = presets.ANOLE
    sizes = ((512, 512),)

    def tokenize(self, prompt: str) -> list[int]:
        self.vocabulary.text.require_plain(prompt)
        return self.in_template(prompt, [])

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return [prompt_ids[0], prompt_ids[-1]]


def target_of(checkpoint: Checkpoint) -> int:
    """The side in px of the square a Lumina-mGPT was trained for, taken from names on disk."""
    names = (*checkpoint.names(), checkpoint.made_from)
    target = next((match for name in names if (match := TARGET.search(name))), None)
    if target is None:
        raise SSDError(f"{checkpoint.folder}: Lumina-mGPT's files do not tell the size they were "
                       f"trained for ({TARGETS}): name the folder after it, or give --family, for "
                       "example Lumina-mGPT-7B-768")
    return int(target[1])


def matches(checkpoint: Checkpoint) -> bool:
    """Whether these are a Chameleon's tensors, with its vocabulary."""
    return is_chameleon(checkpoint) and checkpoint.shapes[EMBEDDING][:1] <= (VOCABULARY,)


def is_chameleon(checkpoint: Checkpoint) -> bool:
    """Only Chameleon's decoder has query norms with a bias."""
    norms = {NORM, NORM.replace("weight", "bias")}
    return norms <= set(checkpoint.shapes) and bool(head_key(checkpoint, HEAD, EMBEDDING))


def is_lumina(checkpoint: Checkpoint) -> bool:
    """Whether the config names Lumina's class, or the norms are stored once for all heads."""
    classes = str(checkpoint.config().get("architectures"))
    if checkpoint.adopted:  # transformers has one class and one shape of norms for both
        return any(TARGET.search(name) for name in (*checkpoint.names(), checkpoint.made_from))
    return "XLLMX" in classes or two_sizes(checkpoint, NORM)[0] == 1


def read_vocabulary(checkpoint: Checkpoint, row_end: bool) -> Vocabulary:
    """The tokenizer and its picture tokens, whose ids must be in order if they are named."""
    size = two_sizes(checkpoint, EMBEDDING)[0]
    text = read_text(checkpoint.path("tokenizer.json"), size)
    codes = code_range(text, "IMGIMG[A-J]+Z", code_name) or (FIRST_CODE, CODES)
    return Vocabulary(text, size, *codes, text.id(ROW_END) if row_end else None)


def code_name(code: int) -> str:
    """The vocabulary's name of a picture code: its digits as letters."""
    return "IMGIMG" + "".join("ABCDEFGHIJ"[int(digit)] for digit in str(code)) + "Z"


def sources_of(checkpoint: Checkpoint, vocabulary: Vocabulary,
               shape: DecoderShape) -> dict[str, Source]:
    """The sources of all parameters. Raises SSDError if the files belong to another model."""
    head = require_names(head_key(checkpoint, HEAD, EMBEDDING), checkpoint, FAMILY)
    sources = vocabulary_sources(vocabulary, shape, PREFIX, head)
    norms = {name: [key for key, _, _ in pieces(checkpoint, source)]
             for name, source in sources.items() if "qk_norm_" in name}
    return sources | norm_sources(checkpoint, norms, shape)


def norm_sources(checkpoint: Checkpoint, keys: dict[str, list[str]],
                 shape: DecoderShape) -> dict[str, Source]:
    """Norms for every head; a file may store them once, per group of heads or per head.

    keys: of q and of k, by our names. Raises SSDError if norms are grouped in more than one way.
    """
    rows = [rows_of_all(checkpoint, own) for own in zip(*keys.values(), strict=True)]
    counts = list(zip((shape.heads, shape.kv_heads), rows, strict=True))
    return {name: Concat(tuple(source for key, (heads, stored) in zip(own, counts, strict=True)
                               for source in for_every_head(key, heads, stored)))
            for name, own in keys.items()}


def for_every_head(key: str, heads: int, rows: int) -> list[Source]:
    """A tensor's rows, each as often as heads share it; as they are if they do not divide."""
    each, uneven = divmod(heads, rows)
    if uneven or each == 1:
        return [key]
    return [Slice(key, head // each, head // each + 1) for head in range(heads)]


def rows_of_all(checkpoint: Checkpoint, keys: Iterable[str]) -> int:
    """Return the number of rows of these tensors; SSDError if they differ."""
    keys_by_rows = {two_sizes(checkpoint, key)[0]: key for key in keys}
    if len(keys_by_rows) > 1:
        (rows, key), (others, _), *_ = keys_by_rows.items()
        raise SSDError(f"{checkpoint.file_of(key)}: tensor {key} has {rows} rows, norms beside it "
                       f"{others}: the model was altered")
    return min(keys_by_rows)


def shape_in(checkpoint: Checkpoint, config: dict, eps: float) -> DecoderShape:
    """Return the decoder's sizes; SSDError for 30B, which normalises after its layers."""
    if config.get("swin_norm"):
        raise SSDError(f"{checkpoint.folder / 'config.json'}: swin_norm is set, as in Chameleon "
                       "30B: only the 7B models are supported")
    width = two_sizes(checkpoint, NORM)[1]
    heads = two_sizes(checkpoint, QUERY)[0] // width or 1
    return decoder_shape(checkpoint, PREFIX, heads, config=config, eps=eps)


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Chameleon:
    """Read a model with Hugging Face's names; the codec first, as it is often missing."""
    config, lumina = checkpoint.config(), is_lumina(checkpoint)
    constants = read_constants(checkpoint, config, THETA, EPS)
    shape = shape_in(checkpoint, config, constants.eps)
    vocabulary = read_vocabulary(checkpoint, row_end=lumina)
    with torch.device("meta"):
        backbone = (Lumina if lumina else Anole)(shape, vocabulary, constants.theta)
    if lumina:
        target = target_of(checkpoint)
        backbone.sizes, backbone.name = sizes.lumina(target), f"lumina-mgpt-7b-{target}"
    codec = read_codec(checkpoint, device, CODEC, draws(vocabulary.codes))
    backbone.load(checkpoint, sources_of(checkpoint, vocabulary, shape), codec, device, dtype)
    if not (backbone.head.is_meta or backbone.head.any()):
        head = head_key(checkpoint, HEAD, EMBEDDING) or HEAD
        raise SSDError(f"{checkpoint.file_of(head)}: {head} has only zeros for picture tokens: "
                       "this Chameleon was published without them; get Lumina-mGPT or Anole")
    return backbone
