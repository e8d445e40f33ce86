"""LlamaGen: pictures from ImageNet classes (c2i: B, L, XL, XXL, 3B) or from text (t2i XL).

Rotary positions follow the picture's cells. In the condition slots before the picture the complex
rotation is 0, so their queries and keys are zero. Reads the original .pt files and Hugging Face's
names.

assets/imagenet_classes.txt has one line per class in the order of ImageNet-1k: its WordNet names,
separated by commas.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F

from ..errors import SSDError
from ..files import ASSETS
from ..model.grid import Grid
from ..model.transformer import Decoder, DecoderShape, axial_angles
from . import presets
from .base import Backbone, empty
from .codecs.find import draws, read_codec
from .prompts.text import Text
from .prompts.text_model import SLOTS, FlanT5, PromptCache
from .reading.checkpoint import Checkpoint
from .reading.decoder_config import head_key, require_names
from .reading.weights import (
    HF,
    LLAMAGEN,
    LayerNames,
    Source,
    decoder_shape,
    decoder_sources,
    fill,
    require_known,
    two_sizes,
)

NAMES = ASSETS / "imagenet_classes.txt"
FAMILY = "LlamaGen"
HIDDEN, NO_TEXT = -1, -2  # stand-ins for text ids: masked slot, learned features
CLASSES, NO_CAPTION = "cls_embedding.embedding_table.weight", "cls_embedding.uncond_embedding"
CAPTION = ("cls_embedding.cap_proj.fc1.weight", "cls_embedding.cap_proj.fc2.weight")
TABLE = "freqs_cis"  # rotary positions, stored in some files
HEADS = {3200: 32, 4096: 32}  # 3B and 7B; all others have a head_dim of 64
SIZES = {768: "-b", 1024: "-l", 1280: "-xl", 1536: "-xxl", 3200: "-3b"}
EPS = 1e-5  # regardless of config.json


def class_of(prompt: str, classes: int) -> int:
    """The class of a prompt: a number, a whole line of names, or one name of a line.

    Raises SSDError with near matches for an unknown name, and with the class numbers for a name
    that several classes share.
    """
    wanted = " ".join(prompt.lower().split())
    if wanted.isascii() and wanted.isdecimal():
        if int(wanted) >= classes:
            raise SSDError(f"class {wanted}: give 0 .. {classes - 1}, or the name of a class")
        return int(wanted)
    numbers = [number for number in classes_by_name().get(wanted, ()) if number < classes]
    if not numbers:
        near = get_close_matches(wanted, classes_by_name(), n=4)
        raise SSDError(f"class {prompt.strip()!r} is not one of ImageNet's: give a number or a "
                       f"name, such as {', '.join(near or ('golden retriever', 'balloon'))}")
    if len(numbers) > 1:
        raise SSDError(f"class {prompt.strip()!r} is the name of several classes: give a number, "
                       f"{' or '.join(map(str, numbers))}")
    return numbers[0]


def label_of(number: int) -> str:
    """The names of a class, or its number where another class has the same."""
    line = names()[number]
    return line if classes_by_name()[line.lower()] == (number,) else str(number)


@cache
def names() -> list[str]:
    """One line of names per class, in the order of their numbers."""
    return NAMES.read_text(encoding="utf-8").splitlines()


@cache
def classes_by_name() -> dict[str, tuple[int, ...]]:
    """Class numbers by lower-case name, both whole lines and their parts.

    A line's first name takes precedence over the same word among other lines' further names.
    """
    lines = [line.lower().split(", ") for line in names()]
    first: dict[str, tuple[int, ...]] = {}
    further: dict[str, tuple[int, ...]] = {}
    for number, (name, *others) in enumerate(lines):
        first[name] = (*first.get(name, ()), number)
        for other in others:
            further[other] = (*further.get(other, ()), number)
    whole = {", ".join(names): (number,) for number, names in enumerate(lines) if len(names) > 1}
    return further | first | whole


@dataclass(frozen=True)
class TensorNames:
    """Tensor names in one kind of file, except those of the conditions."""

    prefix: str
    layers: LayerNames
    embedding: str
    head: str


LAYOUTS = (TensorNames("", LLAMAGEN, "tok_embeddings.weight", "output.weight"),
           TensorNames("model.", HF, "model.embed_tokens.weight", "lm_head.weight"))


class LlamaGen(Backbone):
    """Shared by both kinds: everything except the conditions."""

    condition_slots: int
    kinds: tuple[str, str]  # parts of file names: own kind, and the kind with the other codec
    sides: tuple[int, ...]  # published picture sizes, in cells

    def __init__(self, shape: DecoderShape, codes: int) -> None:
        super().__init__()
        self.codes = codes
        self.decoder = Decoder(shape)
        self.code_embedding, self.head = empty(codes, shape.hidden), empty(codes, shape.hidden)
        self.norm = empty(shape.hidden)

    def apply_size(self) -> None:
        width, height = self.size
        patch = self.picture_codec.patch
        self.grid = Grid(height // patch, width // patch)
        y, x = self.grid.coordinates.T
        cells = axial_angles(y, x, self.decoder.shape.head_dim)
        conditions = cells.new_zeros(self.condition_slots, cells.shape[1])
        self.angles = torch.cat((conditions, cells)).to(self.device)


class ClassLlamaGen(LlamaGen):
    """One condition slot: an ImageNet class; the row after the last class means no class."""

    condition_slots = prompt_limit = 1
    kinds, sides = ("c2i", "t2i"), (24, 16)
    takes_negative = takes_any_words = False
    preset = presets.LLAMAGEN_CLASSES

    def __init__(self, shape: DecoderShape, codes: int, classes: int) -> None:
        super().__init__(shape, codes)
        self.classes = classes
        self.class_embedding = empty(classes + 1, shape.hidden)

    def tokenize(self, prompt: str) -> list[int]:
        return [class_of(prompt, self.classes)]

    def fresh_prompt(self, seed: int, chinese: bool = False) -> str:
        """A class, by its English name."""
        return label_of(seed % self.classes)

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return [self.classes]

    def embed_prompt(self, ids: torch.Tensor) -> torch.Tensor:
        return F.embedding(ids, self.class_embedding)


class TextLlamaGen(LlamaGen):
    """flan-T5 features in the last of 120 condition slots; the slots before them are masked.

    The unconditional branch uses learned features instead, in the same number of visible slots.
    """

    condition_slots = prompt_limit = SLOTS
    kinds, sides = ("t2i", "c2i"), (16, 32)
    preset = presets.LLAMAGEN_TEXT
    reader: FlanT5

    def __init__(self, shape: DecoderShape, codes: int, width: int) -> None:
        super().__init__(shape, codes)
        self.no_text = empty(SLOTS, width)
        self.caption_in = empty(shape.hidden, width)
        self.caption_out = empty(shape.hidden, shape.hidden)

    @property
    def word_reader(self) -> Text | None:
        with suppress(SSDError):  # `tokenize` says what is missing
            return self.reader.text
        return None

    def tokenize(self, prompt: str) -> list[int]:
        ids = self.reader.tokenize(prompt, self.name)
        return [HIDDEN] * (SLOTS - len(ids)) + ids

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return [HIDDEN if i == HIDDEN else NO_TEXT for i in prompt_ids]

    def masked_prompt_slots(self, prompt_ids: list[int]) -> int:
        return prompt_ids.count(HIDDEN)

    def cache_prompts(self, folder: Path) -> None:
        self.reader.cache = PromptCache(folder)

    def embed_prompt(self, ids: torch.Tensor) -> torch.Tensor:
        features = torch.stack([self.features(prompt_ids) for prompt_ids in ids.tolist()])
        features = F.gelu(F.linear(features, self.caption_in), approximate="tanh")
        return F.linear(features, self.caption_out)

    def features(self, ids: list[int]) -> torch.Tensor:
        """[SLOTS, width] of one prompt: zeros in masked slots, then text or learned features."""
        if NO_TEXT in ids:
            return self.no_text
        text_ids = tuple(i for i in ids if i != HIDDEN)
        visible = self.reader.features(text_ids, self.dtype).to(self.no_text)
        return F.pad(visible, (0, 0, SLOTS - len(visible), 0))


def matches(checkpoint: Checkpoint) -> bool:
    """Whether these are LlamaGen's tensors, in either layout."""
    return layout_of(checkpoint) is not None


def layout_of(checkpoint: Checkpoint) -> TensorNames | None:
    """Return the names whose head and LlamaGen condition are both present; None for Tar's files.

    If head and embedding are tied, the head is the embedding.
    """
    heads = ((layout, head_key(checkpoint, layout.head, layout.embedding)) for layout in LAYOUTS)
    return next((replace(layout, head=head) for layout, head in heads
                 if head and "abs_pe" not in checkpoint.shapes
                 and any(layout.prefix + name in checkpoint.shapes
                         for name in (CLASSES, NO_CAPTION))), None)


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> LlamaGen:
    """Read a LlamaGen; SSDError names the file and what is wrong with it."""
    layout = require_names(layout_of(checkpoint), checkpoint, FAMILY)
    codes, hidden = two_sizes(checkpoint, layout.head)
    shape = decoder_shape(checkpoint, layout.prefix, HEADS.get(hidden, max(hidden // 64, 1)),
                          layout.layers, checkpoint.config(), "interleaved", EPS)
    backbone, conditions = with_conditions(checkpoint, layout.prefix, shape, codes)
    sources: dict[str, Source] = {
        "code_embedding": layout.embedding, "norm": f"{layout.prefix}norm.weight",
        "head": layout.head, **conditions,
        **decoder_sources(layout.prefix, shape.layers, layout.layers)}
    require_known(checkpoint, sources, (re.escape(layout.prefix + TABLE), r"lm_head\.weight"))
    backbone.sha256 = fill(backbone, sources, checkpoint, device, dtype).hexdigest()
    kind, other = backbone.kinds
    backbone.name = f"llamagen-{kind}{SIZES.get(hidden, '')}"
    backbone.picture_codec = read_codec(
        checkpoint, device, f"put LlamaGen's vq_ds16_{kind}.pt beside these weights",
        lambda candidate: draws(codes)(candidate) and other not in candidate.files[0].stem)
    backbone.sizes = trained_sizes(backbone, checkpoint, layout.prefix)
    backbone.apply_size()
    return backbone.eval()


def with_conditions(checkpoint: Checkpoint, prefix: str, shape: DecoderShape,
                    codes: int) -> tuple[LlamaGen, dict[str, str]]:
    """A backbone on the meta device, and the file keys of its condition parameters."""
    if (classes := prefix + CLASSES) in checkpoint.shapes:
        with torch.device("meta"):
            backbone = ClassLlamaGen(shape, codes, two_sizes(checkpoint, classes)[0] - 1)
        return backbone, {"class_embedding": classes}
    width = two_sizes(checkpoint, prefix + NO_CAPTION)[1]
    with torch.device("meta"):
        text_backbone = TextLlamaGen(shape, codes, width)
    text_backbone.reader = FlanT5(checkpoint.root, width)
    caption_in, caption_out = (prefix + name for name in CAPTION)
    return text_backbone, {"no_text": prefix + NO_CAPTION, "caption_in": caption_in,
                           "caption_out": caption_out}


def trained_sizes(backbone: LlamaGen, checkpoint: Checkpoint,
                  prefix: str) -> tuple[tuple[int, int], ...]:
    """Return the picture sizes that these weights were trained for.

    The size follows from a table of positions in the file, else from the number of pixels in the
    name of the file or its folder (c2i_L_384.pt). Without either, all published sizes are legal.
    """
    table = checkpoint.shapes.get(prefix + TABLE)
    names = " ".join(checkpoint.names())
    candidates = [int(pixels) // 16 for pixels in re.findall(r"(?<!\d)(256|384|512)(?!\d)", names)]
    if table:
        candidates = [round((table[0] - backbone.condition_slots) ** 0.5)]
    sides = [side for side in candidates[:1] if side in backbone.sides] or backbone.sides
    patch = backbone.picture_codec.patch
    return tuple((side * patch, side * patch) for side in sides)
