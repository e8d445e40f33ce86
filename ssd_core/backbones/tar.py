"""Tar's AR-DTok: turns TA-Tok codes into a picture of 256, 512 or 1024 px.

Its decoder has no rotary positions, only an added table. The condition slots hold TA-Tok's features
of a square of codes; the unconditional branch has zeros. A prompt names a file of codes, or is text
that Tar's language model turns into codes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from ..errors import SSDError, refusing
from ..files import json_of, require_file, small_text, user_path
from ..model.grid import Grid
from ..model.transformer import Decoder, DecoderShape
from . import presets
from .base import Backbone, empty
from .codecs.find import draws, read_codec
from .prompts import tar_language
from .prompts.tar_language import COUNT, TarLanguage
from .prompts.text import Text, require_length
from .prompts.text_model import PromptCache
from .reading.checkpoint import Checkpoint
from .reading.weights import (
    LLAMAGEN,
    decoder_shape,
    decoder_sources,
    fill,
    require_known,
    shape_of,
    two_sizes,
)

FAMILY = "Tar AR-DTok"
SCHEME = "codes:"
HEAD_DIM = 64  # at every size
COUNTS = (COUNT, 169, 81)  # TA-Tok codes of a picture: squares of 27, 13 or 9
SIDES = (64, 32, 16)  # cells
TABLE, CONDITION = "abs_pe", "clip_proj"
ENDED, NO_CODES = 0, -1  # padding of shorter prompts; unconditional branch


class Tar(Backbone):
    """Prompt ids are code + 1; ids of words follow after those of all codes, and then fillers."""

    prompt_limit = max(COUNTS)
    takes_negative = False
    preset = presets.TAR
    read: Callable[[tuple[int, ...]], torch.Tensor]  # codes -> features [n, width]
    ta_tok_codes: int
    language: TarLanguage

    def __init__(self, shape: DecoderShape, codes: int, positions: int, width: int) -> None:
        super().__init__()
        d = shape.hidden
        self.codes = codes
        self.decoder = Decoder(shape)
        self.code_embedding, self.head, self.norm = empty(codes, d), empty(codes, d), empty(d)
        self.condition, self.condition_bias = empty(d, width), empty(d)
        self.slot_embedding = empty(1, positions, d)

    def apply_size(self) -> None:
        """One size per file; the extra row of positions belongs to a slot that is never read."""
        cells = self.size[0] // self.picture_codec.patch
        self.grid = Grid(cells, cells)
        self.positions = F.pad(self.slot_embedding[0], (0, 0, 0, 1))

    @property
    def filler(self) -> int:
        """The id after all codes; the id of word 0 comes next."""
        return self.ta_tok_codes + 1

    @property
    def word_reader(self) -> Text | None:
        return self.language.text if self.language.folder else None

    def tokenize(self, prompt: str) -> list[int]:
        if prompt.strip().startswith(SCHEME):
            return self.tokenize_codes(prompt.strip())
        if self.language.folder is None:
            raise SSDError(f"{self.name} draws from TA-Tok codes: write {SCHEME}FILE, a .npy or "
                           f".json with {', '.join(map(str, COUNTS))} numbers; or put "
                           f"csuhan/Tar-1.5B into {self.language.root / 'Tar-1.5B'} for prompts "
                           "in words")
        words = self.language.tokenize(prompt)
        require_length(self.name, words, COUNT)
        ids = [self.filler + 1 + word for word in words]
        return ids + [self.filler] * (COUNT - len(ids))

    def tokenize_codes(self, prompt: str) -> list[int]:
        codes = read_codes(user_path(prompt.removeprefix(SCHEME)))
        limit = self.slot_embedding.shape[1] + 1 - self.grid.cells
        if len(codes) not in COUNTS or len(codes) > limit:
            legal = ", ".join(str(count) for count in COUNTS if count <= limit)
            raise SSDError(f"{prompt}: {len(codes)} codes, expected {legal}")
        if min(codes) < 0 or max(codes) >= self.ta_tok_codes:
            raise SSDError(f"{prompt}: codes must lie in 0 .. {self.ta_tok_codes - 1}")
        return [code + 1 for code in codes]

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return [NO_CODES] * len(prompt_ids)

    def cache_prompts(self, folder: Path) -> None:
        self.language.cache = PromptCache(folder)

    def embed_prompt(self, ids: torch.Tensor) -> torch.Tensor:
        features = torch.stack([self.features(prompt_ids) for prompt_ids in ids.tolist()])
        return F.linear(features, self.condition, self.condition_bias)

    def features(self, ids: list[int]) -> torch.Tensor:
        """[slots, width] of one prompt: TA-Tok's features, or zeros."""
        features = torch.zeros(len(ids), self.condition.shape[1]).to(self.condition)
        codes = tuple(i - 1 for i in ids if i > ENDED)
        if ids[0] >= self.filler:
            words = tuple(i - self.filler - 1 for i in ids if i > self.filler)
            dtype = torch.float32 if self.dtype == torch.float32 else torch.bfloat16
            codes = self.language.draw(words, self.device, dtype)
        if codes:
            features[: len(codes)] = self.read(codes)
        return features


def matches(checkpoint: Checkpoint) -> bool:
    """Whether these are AR-DTok's tensors, of the kind conditioned on TA-Tok's features."""
    return TABLE in checkpoint.shapes and f"{CONDITION}.weight" in checkpoint.shapes


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Tar:
    """Read an AR-DTok; SSDError names the file and what is wrong or missing."""
    codes, hidden = two_sizes(checkpoint, "output.weight")
    shape = decoder_shape(checkpoint, "", max(hidden // HEAD_DIM, 1), LLAMAGEN, rotary="none",
                          eps=1e-5)
    positions = (*shape_of(checkpoint, TABLE), 0, 0)[1]
    side = next((side for side in SIDES if side**2 < positions), None)
    if side is None:
        raise SSDError(f"{checkpoint.file_of(TABLE)}: {TABLE} has {positions} positions, too few "
                       f"for {SIDES[-1]}x{SIDES[-1]} cells: not an AR-DTok")
    with torch.device("meta"):
        backbone = Tar(shape, codes, positions, two_sizes(checkpoint, f"{CONDITION}.weight")[1])
    backbone.name = f"tar-ar-dtok-{16 * side}"
    sources = {"code_embedding": "tok_embeddings.weight", "norm": "norm.weight",
               "head": "output.weight", "condition": f"{CONDITION}.weight",
               "condition_bias": f"{CONDITION}.bias", "slot_embedding": TABLE,
               **decoder_sources("", shape.layers, LLAMAGEN)}
    require_known(checkpoint, sources, (r"freqs_cis",))
    backbone.sha256 = fill(backbone, sources, checkpoint, device, dtype).hexdigest()
    reader = read_reader(checkpoint, backbone)
    backbone.read, backbone.ta_tok_codes = reader.features, reader.codes
    backbone.language = TarLanguage(checkpoint.root, reader.codes)
    backbone.picture_codec = read_codec(
        checkpoint, device, "put LlamaGen's vq_ds16_t2i.pt beside these weights",
        lambda candidate: draws(codes)(candidate) and "c2i" not in candidate.files[0].stem)
    backbone.sizes = ((side * backbone.picture_codec.patch,) * 2,)
    backbone.apply_size()
    return backbone.eval()


def read_reader(checkpoint: Checkpoint, backbone: Tar) -> tar_language.TaTok:
    """Read the TA-Tok stored beside the weights."""
    companion = checkpoint.companion(tar_language.matches)
    if companion is None:
        raise SSDError(f"{checkpoint.root}: TA-Tok is missing, which {backbone.name} "
                       "needs: put csuhan/TA-Tok's ta_tok.pth beside these weights")
    reader = tar_language.read_ta_tok(companion)
    if (width := reader.width) != (expected := backbone.condition.shape[1]):
        raise SSDError(f"{companion.files[0]}: its features have {width} numbers, {backbone.name} "
                       f"reads {expected}: files of two models")
    return reader


def read_codes(path: Path) -> list[int]:
    """Integers in raster order from a .npy or .json file; SSDError for anything else."""
    if path.suffix not in (".npy", ".json"):
        raise SSDError(f"{path}: codes come from a .npy or .json file")
    require_file(path)
    with refusing(path):
        if path.suffix == ".npy":
            codes = np.load(path, allow_pickle=False)
        else:
            codes = np.asarray(json_of(small_text(path)))
    if codes.dtype.kind not in "iu" or not codes.size:
        raise SSDError(f"{path}: expected whole numbers, found {codes.dtype}")
    return codes.flatten().tolist()
