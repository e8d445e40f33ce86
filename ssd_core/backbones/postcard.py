"""`postcard`: the small text-to-image backbone that is trained, tested and bundled here.

24 x 24 codes of 8 x 8 pixels, a closed vocabulary of words, prompts padded to one length (so that
the branches of guidance share their positions, as in Janus-Pro), axial rotary angles plus learned
row and column embeddings of the cell that a slot predicts.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from torch import nn

from ..errors import SSDError
from ..files import read_safetensors, sha256_of, write_safetensors
from ..model.grid import Grid
from ..model.processor import likes_columns
from ..model.transformer import Decoder, DecoderShape, axial_angles
from ..postcards.wording import lonely, quoted
from . import presets
from .base import Backbone
from .codecs.vq import PATCH, VQTokenizer
from .reading.checkpoint import Checkpoint

FAMILY = "postcard"
FORMAT = "ssd-postcard/1"
GRID = Grid(24, 24)
PROMPT_LENGTH = 40
SPECIALS = ("<pad>", "<unknown>", "<start>", "<image>")
PAD, UNKNOWN, START, IMAGE = range(len(SPECIALS))
SHAPE = DecoderShape(layers=6, hidden=192, heads=3, kv_heads=3, head_dim=64, ffn=512,
                     rotary="interleaved")


def word_tokenizer(words: tuple[str, ...]) -> Tokenizer:
    """A closed vocabulary of lower-case words and punctuation marks."""
    vocabulary = {word: i for i, word in enumerate((*SPECIALS, *words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    word = Regex(r"\w+(?:[-']\w+)*|[^\w\s]")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(word, "removed", invert=True)
    return tokenizer


class Postcard(Backbone):
    """Weights plus words; `picture_codec` turns tokens into pixels and back."""

    name = "postcard"
    grid = GRID
    sizes = ((GRID.columns * PATCH, GRID.rows * PATCH),)
    prompt_limit = PROMPT_LENGTH - 2
    preset = presets.POSTCARD

    def __init__(self, words: tuple[str, ...], codes: int = 512,
                 shape: DecoderShape = SHAPE) -> None:
        super().__init__()
        d, table = shape.hidden, lambda n: nn.Parameter(torch.empty(n, shape.hidden))
        self.words, self.codes = words, codes
        self.tokenizer = word_tokenizer(words)
        self.word_embedding = table(len(SPECIALS) + len(words))
        self.prompt_position = table(PROMPT_LENGTH)
        self.row_position, self.column_position = table(GRID.rows), table(GRID.columns)
        self.code_embedding, self.head = table(codes), table(codes)
        self.norm = nn.Parameter(torch.ones(d))
        self.decoder = Decoder(shape)
        self.picture_codec = VQTokenizer(codes)

    def initialise(self, generator: torch.Generator) -> None:
        """Fresh weights for training: 0.02 everywhere, zero where a layer adds to the stream."""
        for name, weight in self.named_parameters():
            if weight.dim() > 1 and not name.startswith("picture_codec"):
                zero = name.endswith((".out", ".down"))
                nn.init.normal_(weight, std=0.0 if zero else 0.02, generator=generator)

    def refresh_tables(self) -> None:
        """Set what `tables` makes."""
        self.angles, self.positions = self.tables()

    def tables(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Rotary angles on the weights' device, and the position table from today's weights."""
        y, x = GRID.coordinates.T
        prompt = torch.arange(PROMPT_LENGTH)  # lies above the picture: row -2, one column a word
        angles = axial_angles(torch.cat((torch.full_like(prompt, -2), y)),
                              torch.cat((prompt, x)), self.decoder.shape.head_dim)
        return angles.to(self.device), self.position_table()

    def position_table(self) -> torch.Tensor:
        """[slots, d]: the prompt's own positions, then row + column of the cell a slot predicts."""
        y, x = GRID.coordinates.to(self.device).T
        cells = self.row_position[y] + self.column_position[x]
        prompt = self.prompt_position.clone()
        prompt[-1] = prompt[-1] + cells[0]
        return torch.cat((prompt, cells[1:], torch.zeros_like(cells[:1])))

    def freeze(self) -> Postcard:
        """Ready for decoding: no gradients, the position table built once."""
        self.requires_grad_(False)
        self.refresh_tables()
        if likes_columns(self.device, self.dtype):
            self.decoder.store_by_column()
        return self.eval()

    def unknown_words(self, prompt: str) -> list[str]:
        """Words outside the vocabulary, and words known only beside others with the phrases they
        are known in: each once, in the prompt's order."""
        encoding = self.tokenizer.encode(prompt)
        said = [prompt[a:b] for a, b in encoding.offsets]
        told = {n: said[n] for n, id_ in enumerate(encoding.ids) if id_ == UNKNOWN}
        known = [n for n in range(len(said)) if n not in told]
        for position, phrases in lonely([said[n].lower() for n in known]):
            n = known[position]
            told[n] = f"{said[n]} (known only in {quoted(phrases)})"
        return list(dict.fromkeys(told[n] for n in sorted(told)))

    def tokenize(self, prompt: str) -> list[int]:
        ids = self.tokenizer.encode(prompt).ids
        if len(ids) > self.prompt_limit:
            raise SSDError(f"the prompt has {len(ids)} words and marks, {self.name} takes at most "
                           f"{self.prompt_limit}: shorten it")
        return [START, *ids, *[PAD] * (self.prompt_limit - len(ids)), IMAGE]

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return [START, *[PAD] * (len(prompt_ids) - 2), IMAGE]

    def embed_prompt(self, ids: torch.Tensor) -> torch.Tensor:
        return F.embedding(ids, self.word_embedding)


def save(backbone: Postcard, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write everything but the draft heads as one fp16 safetensors file."""
    tensors = {k: v.detach().half().contiguous().cpu() for k, v in backbone.state_dict().items()}
    write_safetensors(tensors, path, {
        "format": FORMAT, "shape": json.dumps(asdict(backbone.decoder.shape)),
        "words": json.dumps(backbone.words), **(metadata or {})})


def claims(checkpoint: Checkpoint) -> bool:
    """Whether these are the tensors that `save` wrote."""
    return {"word_embedding", "prompt_position", "row_position"} <= set(checkpoint.shapes)


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Postcard:
    """Read a file that `save` wrote; sizes are checked against the tensors themselves."""
    path = checkpoint.files[0]
    tensors, metadata = read_safetensors(path, FORMAT)
    try:
        shape = DecoderShape(**json.loads(metadata["shape"]))
        with torch.device("meta"):  # no initial weights: no time, no draw from torch's own RNG
            backbone = Postcard(tuple(json.loads(metadata["words"])), len(tensors["head"]), shape)
        backbone.load_state_dict({k: v.float() for k, v in tensors.items()}, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise SSDError(f"{path}: not a postcard backbone this version can read "
                       f"({str(error).splitlines()[0]}): reinstall the bundle") from error
    backbone.sha256 = sha256_of(tensors)
    codec = backbone.picture_codec.to(device)
    del backbone.picture_codec  # pixels stay in fp32 whatever the decoder's dtype
    backbone.to(device, dtype)
    backbone.picture_codec = codec
    return backbone.freeze()
