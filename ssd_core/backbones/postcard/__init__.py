"""`postcard`: the small text-to-image backbone that is trained, tested and bundled here.

A picture has 24 x 24 codes of 16 x 16 pixels, or 32 x 18 or 18 x 32 (columns x rows) if its weights
learned these shapes; of 32 x 32 pixels where its codec has the head for twice the size. The
vocabulary of words is closed; synonyms and Chinese are mapped to it.
Prompts are padded to one length, so that the branches of guidance share their positions, as in
Janus-Pro. Positions are axial rotary angles plus learned embeddings of row and column of the cell
that a slot predicts; each shape has its own.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ...errors import SSDError, first_line
from ...files import read_safetensors, sha256_of, write_safetensors
from ...model.grid import Grid
from ...model.processor import prefers_column_major
from ...model.transformer import Decoder, DecoderShape, axial_angles
from .. import presets, sizes
from ..base import Backbone
from ..codecs.vq import VQTokenizer
from ..prompt_guide import Kind, UnknownObject
from ..prompts.choices import Choices
from ..prompts.expanded import Expanded
from ..reading.checkpoint import Checkpoint
from .scenery import at_frame_size, phrases_seen
from .words.aliases import Said, nearest, said, without_repeats
from .words.canonical import canonical
from .words.captions import MAX_TOKENS, WORDS
from .words.choices import choices
from .words.expansion import expand
from .words.phrases import (
    known_phrases,
    limits,
    lonely,
    phrases_of,
    quoted,
    without_contradictions,
)
from .words.short_prompts import KINDS, short_prompt
from .words.spelling import placed, read
from .words.unknown_objects import names_nothing_known, unknown_objects, without_unknown_objects

FAMILY = "postcard"
FORMAT = "ssd-postcard/1"
CODEC = "picture_codec."
# The postcard of 192 x 192 pixels, whose world was flat: its format and its weights.
GRIDS = sizes.POSTCARD_GRIDS
GRID = GRIDS[0]
PROMPT_LENGTH = 40
CODES = 4096
SPECIALS = ("<pad>", "<start>", "<image>")
PAD, START, IMAGE = range(len(SPECIALS))
SHAPE = DecoderShape(layers=6, hidden=192, heads=3, kv_heads=3, head_dim=64, ffn=512,
                     rotary="interleaved")


class Postcard(Backbone):
    """Weights plus words; `picture_codec` turns tokens into pixels and back.

    grids: the shapes that it draws. A postcard of fewer cells drafts for the whole one in MuLo-SD.
    """

    name = "postcard"
    grid = GRID
    prompt_limit = PROMPT_LENGTH - 2
    preset = presets.POSTCARD

    def __init__(self, words: tuple[str, ...], codes: int = CODES,
                 shape: DecoderShape = SHAPE, grid: Grid = GRID, others: tuple[Grid, ...] = (),
                 codec: VQTokenizer | None = None) -> None:
        super().__init__()
        grids = (grid, *others)
        d, table = shape.hidden, lambda n: nn.Parameter(torch.empty(n, shape.hidden))
        self.words, self.codes = words, codes
        self.word_ids = {word: id_ for id_, word in enumerate(words, len(SPECIALS))}
        self.word_embedding = table(len(SPECIALS) + len(words))
        self.prompt_position = table(PROMPT_LENGTH)
        self.row_position = table(sum(grid.rows for grid in grids))
        self.column_position = table(sum(grid.columns for grid in grids))
        self.code_embedding, self.head = table(codes), table(codes)
        self.norm = nn.Parameter(torch.ones(d))
        self.decoder = Decoder(shape)
        self.picture_codec = codec or VQTokenizer(codes)
        self.set_grids(grids)

    def set_grids(self, grids: tuple[Grid, ...]) -> None:
        """Set the shapes; the first one becomes the current one, at its largest size."""
        self.grids = grids
        self.sizes = tuple(self.grid_and_scale)
        self.grid, self.scale = self.grid_and_scale[self.size]

    @property
    def grid_and_scale(self) -> dict[tuple[int, int], tuple[Grid, int]]:
        """By size, the larger ones first."""
        return {sizes.postcard(grid, scale): (grid, scale) for scale in self.picture_codec.scales
                for grid in self.grids}

    @property
    def sizes_of_grid(self) -> tuple[tuple[int, int], ...]:
        own = (sizes.postcard(self.grid, scale) for scale in self.picture_codec.scales)
        return (self.size, *(size for size in own if size != self.size))

    def apply_size(self) -> None:
        self.grid, self.scale = self.grid_and_scale[self.size]
        self.refresh_tables()

    def initialise(self, generator: torch.Generator) -> None:
        """Draw weights for training: std 0.02, and zero where a layer adds to the stream."""
        for name, weight in self.named_parameters():
            if weight.dim() > 1 and not name.startswith("picture_codec"):
                zero = name.endswith((".out", ".down"))
                nn.init.normal_(weight, std=0.0 if zero else 0.02, generator=generator)

    def refresh_tables(self) -> None:
        """Set `angles` and `positions` from `tables`."""
        self.angles, self.positions = self.tables()

    def tables(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Rotary angles on the weights' device, and the position table from the current weights."""
        y, x = self.grid.coordinates.T
        prompt = torch.arange(PROMPT_LENGTH)  # lies above the picture: row -2, one column a word
        angles = axial_angles(torch.cat((torch.full_like(prompt, -2), y)),
                              torch.cat((prompt, x)), self.decoder.shape.head_dim)
        return angles.to(self.device), self.position_table()

    def position_table(self) -> torch.Tensor:
        """[slots, d]: the prompt's own positions, then row + column of the cell a slot predicts."""
        y, x = self.grid.coordinates.to(self.device).T
        earlier = self.grids[: self.grids.index(self.grid)]
        cells = (self.row_position[y + sum(grid.rows for grid in earlier)]
                 + self.column_position[x + sum(grid.columns for grid in earlier)])
        prompt = self.prompt_position.clone()
        prompt[-1] = prompt[-1] + cells[0]
        return torch.cat((prompt, cells[1:], torch.zeros_like(cells[:1])))

    def freeze(self) -> Postcard:
        """Prepare for decoding: without gradients, with a fixed position table. Returns self."""
        self.requires_grad_(False)
        self.refresh_tables()
        if prefers_column_major(self.device, self.dtype):
            self.decoder.store_column_major()
        return self.eval()

    def pieces_of(self, prompt: str) -> list[Said]:
        """Split a prompt into pieces; `words` is None for pieces that are not in the vocabulary."""
        plain = unicodedata.normalize("NFKC", prompt)  # full-width letters and marks, ligatures
        return [piece if self.knows(piece) else Said(piece.typed, None) for piece in said(plain)]

    def knows(self, piece: Said) -> bool:
        """Whether all words of a piece are in the vocabulary."""
        return piece.words is not None and self.word_ids.keys() >= set(piece.words)

    def unknown_words(self, prompt: str) -> list[str]:
        """Return the pieces that `tokenize` ignores, without repeats, in the prompt's order."""
        return list(dict.fromkeys(piece.typed for piece in self.pieces_of(prompt)
                                  if piece.words is None))

    def unknown_spans(self, prompt: str) -> list[tuple[int, int]]:
        return [(start, end) for piece, start, end in placed(prompt) if not self.knows(piece)]

    def nearest_word(self, word: str) -> str | None:
        return nearest(word)

    def unknown_objects(self, prompt: str) -> list[UnknownObject]:
        return unknown_objects(prompt)

    def without_unknown_objects(self, prompt: str) -> str:
        return without_unknown_objects(prompt)

    def limits(self, prompt: str) -> list[str]:
        return limits(prompt)

    def names_nothing_known(self, prompt: str) -> bool:
        return names_nothing_known(prompt)

    def misplaced_words(self, prompt: str) -> list[str]:
        reading = read(prompt)
        words = [word for word in reading.words if word.word in self.word_ids]
        misplaced = (words[position] for position in lonely([word.word for word in words]))
        return list(dict.fromkeys(
            f"{word.typed} (known only in {quoted(known_phrases(word.word, reading.chinese))})"
            for word in misplaced if word.start not in reading.painted))

    @property
    def word_kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def fresh_prompt(self, seed: int, chinese: bool = False) -> str:
        """Return a short prompt; `expand` fills in the rest."""
        return short_prompt(np.random.default_rng(seed), chinese)

    @property
    def names_objects(self) -> bool:
        return True

    def objects(self, prompt: str) -> list[str]:
        return phrases_of(prompt)

    def choices(self, prompt: str, phrase: str | None = None) -> list[Choices]:
        if not self.word_ids.keys() >= set(WORDS):
            return []
        return choices(prompt, phrase, min(MAX_TOKENS, self.prompt_limit))

    @property
    def reads_pictures(self) -> bool:
        return self.word_ids.keys() >= set(WORDS)

    def seen(self, picture: np.ndarray, prompts: Sequence[str]) -> list[str]:
        return phrases_seen(at_frame_size(picture), prompts)

    def without_contradictions(self, prompt: str, typed: str) -> str:
        return without_contradictions(prompt, typed)

    def expand(self, prompt: str, negative: str | None, seed: int,
               leave_open: tuple[str, ...] = (), fill: bool = True) -> Expanded | None:
        if not self.word_ids.keys() >= set(WORDS):
            return None
        return expand(prompt, negative, seed, leave_open, fill, min(MAX_TOKENS, self.prompt_limit))

    def tokenize(self, prompt: str) -> list[int]:
        words = canonical(prompt)
        if not self.word_ids.keys() >= set(words) or not words:
            words = self.known_words(prompt)
        return self.ids_of(words)

    def known_words(self, prompt: str) -> list[str]:
        """The known words of a prompt in its own order."""
        return without_repeats(word for piece in self.pieces_of(prompt)
                               for word in piece.words or ())

    def ids_of(self, words: Sequence[str]) -> list[int]:
        """Ids [prompt slots] of words of the vocabulary. SSDError if there are too many."""
        if len(words) > self.prompt_limit:
            raise SSDError(f"the prompt has {len(words)} words and marks, {self.name} takes at "
                           f"most {self.prompt_limit}: shorten it")
        ids = [self.word_ids[word] for word in words]
        return [START, *ids, *[PAD] * (self.prompt_limit - len(ids)), IMAGE]

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return [START, *[PAD] * (len(prompt_ids) - 2), IMAGE]


def save(backbone: Postcard, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write everything except the draft heads as one safetensors file: integers, and fp16."""
    tensors = {k: (v.detach().half() if v.is_floating_point() else v).contiguous().cpu()
               for k, v in backbone.state_dict().items()}
    write_safetensors(tensors, path, {
        "format": FORMAT, "shape": json.dumps(asdict(backbone.decoder.shape)),
        "words": json.dumps(backbone.words), **(metadata or {})})


def matches(checkpoint: Checkpoint) -> bool:
    """Whether `save` wrote these tensors."""
    return {"word_embedding", "prompt_position", "row_position"} <= set(checkpoint.shapes)


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Postcard:
    """Read a file that `save` wrote; sizes are checked against the tensors."""
    path = checkpoint.files[0]
    tensors, metadata = read_safetensors(path, FORMAT)
    try:
        backbone = empty_postcard(tensors, metadata)
        backbone.sha256 = sha256_of(tensors)
        backbone.load_state_dict({k: v.float() if v.is_floating_point() else v
                                  for k, v in tensors.items()}, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise SSDError(f"{path}: not a postcard backbone this version can read "
                       f"({first_line(error)}): reinstall the bundle") from error
    return move_to(backbone, device, dtype).freeze()


def empty_postcard(tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> Postcard:
    """Return a postcard on the meta device with the sizes of a file."""
    shape = DecoderShape(**json.loads(metadata["shape"]))
    grid, *others = grids_of(len(tensors["row_position"]), len(tensors["column_position"]))
    codec = {name.removeprefix(CODEC): tensor for name, tensor in tensors.items()
             if name.startswith(CODEC)}
    with torch.device("meta"):  # no initial weights: saves time, leaves torch's RNG as it is
        return Postcard(tuple(json.loads(metadata["words"])), len(tensors["code_embedding"]),
                        shape, grid, tuple(others), VQTokenizer.sized_like(codec))


def grids_of(rows: int, columns: int) -> tuple[Grid, ...]:
    """The shapes of a backbone whose position tables have so many rows: all of GRIDS, or one."""
    if (rows, columns) == (sum(grid.rows for grid in GRIDS), sum(grid.columns for grid in GRIDS)):
        return GRIDS
    return (Grid(rows, columns),)


def learn_all_shapes(backbone: Postcard) -> None:
    """Let a postcard of 24 x 24 cells draw all of GRIDS, by position tables stretched to fit."""
    if backbone.grids == GRIDS:
        return
    if backbone.grids != (GRID,):
        raise SSDError(f"{backbone.name} has {backbone.grid} cells: only one of {GRID} can learn "
                       "the other shapes")
    for name, sides in (("row_position", [grid.rows for grid in GRIDS]),
                        ("column_position", [grid.columns for grid in GRIDS])):
        table = getattr(backbone, name).detach()
        grown = torch.cat([stretched(table, side) for side in sides])
        setattr(backbone, name, nn.Parameter(grown))
    backbone.set_grids(GRIDS)


def stretched(table: torch.Tensor, side: int) -> torch.Tensor:
    """A table [n, d] with `side` rows, interpolated; unchanged if it has as many."""
    if len(table) == side:
        return table
    return F.interpolate(table.T[None], size=side, mode="linear")[0].T


def move_to(backbone: Postcard, device: torch.device, dtype: torch.dtype) -> Postcard:
    """Move everything to the device; pixels stay in fp32 whatever the decoder's dtype."""
    codec = backbone.picture_codec.to(device)
    del backbone.picture_codec
    backbone.to(device, dtype)
    backbone.picture_codec = codec
    return backbone
