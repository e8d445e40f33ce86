"""Backbones of the catalogue with random weights, made on their device: no file, no second copy.

The classes are the families' own; only tokenizers and text encoders are replaced, because there
are no files for them. `scaled` makes a row small enough for a CPU and keeps its grid and schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import nn

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.chameleon import Anole, Lumina
from ssd_core.backbones.codecs.colours import CodeColours
from ssd_core.backbones.codecs.cosmos import Cosmos, CosmosShape
from ssd_core.backbones.codecs.movq import MoVQ, MoVQGAN, MoVQShape
from ssd_core.backbones.codecs.vqgan import IBQ, VQGAN, VQGANShape
from ssd_core.backbones.emu3 import Emu3
from ssd_core.backbones.emu3_5 import Emu35
from ssd_core.backbones.glm_image import SECTIONS, STEP, GlmImage, Rotation
from ssd_core.backbones.janus import Janus
from ssd_core.backbones.llamagen import ClassLlamaGen, TextLlamaGen
from ssd_core.backbones.lumina2 import Lumina2
from ssd_core.backbones.prompts.text import Text
from ssd_core.backbones.shared_vocabulary import Vocabulary
from ssd_core.backbones.simplear import SimpleAR
from ssd_core.backbones.tar import Tar
from ssd_core.engine.heads import DraftHeads
from ssd_core.model.transformer import DecoderShape, sequence_angles
from ssd_core.weights.catalogue import KnownBackbone

CLASSES, T5_WIDTH, TA_TOK_WIDTH, TA_TOK_CODES = 1000, 2048, 1152, 65536
SEED = 0
SHARPNESS = 3.0  # standard deviation of logits: distributions differ from cell to cell
SCALED_BY, SCALED_HEAD_DIM, SCALED_LAYERS, SCALED_CODES, NARROW = 8, 64, 2, 2048, 32


class Words(Text):
    """Replaces a tokenizer: one id per word, whatever the word."""

    def __init__(self) -> None:
        self.control = []

    def id(self, token: str) -> int:
        return 1

    def encode(self, text: str) -> list[int]:
        return [2] * len(text.split())


@dataclass(frozen=True)
class Features:
    """Replaces a text encoder: the same feature for every id."""

    width: int

    def tokenize(self, prompt: str, name: str) -> list[int]:
        return [2] * len(prompt.split())

    def features(self, ids: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.ones(len(ids), self.width, dtype=dtype)


def narrowed(s: DecoderShape, layers: int, heads: int, head_dim: int) -> DecoderShape:
    """The shape with so many layers and heads; all other widths follow in proportion."""
    hidden = heads * head_dim
    return replace(s, layers=layers, heads=heads, kv_heads=max(1, s.kv_heads * heads // s.heads),
                   head_dim=head_dim, hidden=hidden, ffn=s.ffn * hidden // s.hidden)


def scaled(row: KnownBackbone) -> KnownBackbone:
    """The row with fewer and narrower layers and fewer codes; grid, heads and schedule stay."""
    shape = narrowed(row.shape, SCALED_LAYERS, max(1, row.shape.heads // SCALED_BY),
                     SCALED_HEAD_DIM)
    return replace(row, name=f"{row.name}, scaled down", shape=shape, codes=SCALED_CODES,
                   vocabulary=min(row.vocabulary, 2 * SCALED_CODES), codec_channels=NARROW)


def codec_of(row: KnownBackbone, device: torch.device) -> nn.Module:
    """The picture codec of a row's family with its initial weights."""
    if row.family == "GLM-Image":
        width = NARROW if "scaled" in row.name else 2048
        return CodeColours(torch.randn(row.codes, width, device=device), STEP).eval()
    narrow = NARROW if row.codec_channels == NARROW else None
    if row.family == "SimpleAR":
        shape, make = CosmosShape(NARROW // 4 if "scaled" in row.name else 128), Cosmos
    elif row.family == "Emu3":
        shape = MoVQShape(narrow or 256, (1, 2, 2, 4), 2, 4, row.codes, 4, attention_levels=(3,))
        make = MoVQ
    elif row.family == "Emu3.5":
        shape = VQGANShape(narrow or 256, res_blocks=4, codes=row.codes, code_dim=256,
                           attention_levels=(4,))
        make = IBQ
    elif row.family == "Lumina-mGPT 2.0":
        shape = VQGANShape(narrow or 256, (1, 2, 2, 4), 2, 4, row.codes, 4, attention_levels=(3,))
        make = MoVQGAN
    elif row.family in ("Lumina-mGPT", "Anole"):
        shape, make = VQGANShape(narrow or 128, codes=row.codes, code_dim=256), VQGAN
    else:
        shape = VQGANShape(narrow or 128, codes=row.codes, normalised=True, attention_levels=(4,))
        make = VQGAN
    with torch.device(device):
        return make(shape).requires_grad_(False).eval()


def bare(row: KnownBackbone) -> Backbone:
    """The family's class on the meta device, with replaced prompt readers."""
    shape, codes = row.shape, row.codes
    if row.family == "Janus-Pro":
        backbone = Janus(shape, row.vocabulary, codes, shape.hidden)
        backbone.code_embedding = nn.Parameter(torch.empty(codes, shape.hidden))
        backbone.read_with(Words())
    elif row.family == "Tar":
        backbone = Tar(shape, codes, row.prompt_slots + row.grid.cells - 1, TA_TOK_WIDTH)
        reader = Features(TA_TOK_WIDTH)
        backbone.read = lambda ids: reader.features(ids, torch.float32)
        backbone.ta_tok_codes = TA_TOK_CODES
        backbone.tokenize = lambda prompt: [1] * row.prompt_slots
    elif row.family == "GLM-Image":
        backbone = GlmImage(shape, row.vocabulary + codes, codes, Words(), Rotation(1e4, SECTIONS))
    elif row.family == "LlamaGen" and row.prompt_slots == 1:
        backbone = ClassLlamaGen(shape, codes, CLASSES)
        backbone.tokenize = lambda prompt: [0]
    elif row.family == "LlamaGen":
        backbone = TextLlamaGen(shape, codes, T5_WIDTH)
        backbone.reader = Features(T5_WIDTH)
    else:
        backbone = of_one_vocabulary(row)
    return backbone


def of_one_vocabulary(row: KnownBackbone) -> Backbone:
    """For Lumina-mGPT 1 and 2.0, Anole, Emu3, Emu3.5 and SimpleAR."""
    make, theta = {"Lumina-mGPT": (Lumina, 1e4), "Lumina-mGPT 2.0": (Lumina2, 1e4),
                   "Anole": (Anole, 1e4), "Emu3": (Emu3, 1e6), "Emu3.5": (Emu35, 1e6),
                   "SimpleAR": (SimpleAR, 1e6)}[row.family]
    words = row.vocabulary - row.codes * (make is Emu3)  # the codes follow the words there
    backbone = make(row.shape, Vocabulary(Words(), words, 4, row.codes, 3 if row.grid.row_end
                                          else None), theta)
    if row.tied:
        backbone.head = backbone.code_embedding
    return backbone


@torch.no_grad()
def randomise(module: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    """Give a module on the meta device its weights on `device`, one tensor at a time.

    Every product keeps the scale of its input, so that each token influences the next ones.
    """
    draws = torch.Generator(device).manual_seed(SEED)
    for name, weight in list(module.named_parameters()):
        value = torch.empty(weight.shape, device=device, dtype=dtype)
        value = value.fill_(1.0) if value.dim() == 1 else value.normal_(
            std=value.shape[-1] ** -0.5, generator=draws)
        parent, _, leaf = name.rpartition(".")
        setattr(module.get_submodule(parent), leaf, nn.Parameter(value, requires_grad=False))


def random_backbone(row: KnownBackbone, device: torch.device, dtype: torch.dtype) -> Backbone:
    """A backbone of the row's sizes that draws noise.

    Its head is sharp and its tokens differ enough that every round changes something. With flat or
    constant distributions all drafts would be accepted, and rounds would be skipped.
    """
    with torch.device("meta"):
        backbone = bare(row)
    randomise(backbone, device, dtype)
    if row.tied:  # apart again: their scales below differ
        backbone.head = nn.Parameter(backbone.code_embedding.clone(), requires_grad=False)
    backbone.head.mul_(SHARPNESS)
    backbone.code_embedding.mul_(row.shape.hidden ** 0.5)
    backbone.name, backbone.sha256, backbone.preset = row.name, "random", row.preset
    backbone.picture_codec = codec_of(row, device)
    backbone.sizes = (row.size,)
    if isinstance(backbone, Janus):
        slots = backbone.prompt_limit + row.grid.slots
        backbone.angles = sequence_angles(slots, row.shape.head_dim).to(device)
    else:
        backbone.apply_size()
    if backbone.grid != row.grid:
        raise SystemExit(f"{row.name}: {backbone.grid} instead of {row.grid}")
    return backbone.eval()


def random_heads(backbone: Backbone, k_h: int, k_v: int) -> DraftHeads:
    """Draft heads of the right size with random weights."""
    with torch.device("meta"):
        heads = DraftHeads(backbone.hidden_size, k_h, k_v)
    randomise(heads, backbone.device, backbone.dtype)
    return heads.eval()
