"""Backbones of random weights for the tests, over the real decoder, and short ways to run them."""

from __future__ import annotations

import torch
from torch import nn

from ssd_core import SSDError, generate
from ssd_core.backbones.base import Backbone, Preset
from ssd_core.backbones.codecs.codec import PictureCodec
from ssd_core.backbones.codecs.vq import VQTokenizer
from ssd_core.backbones.drafter import Downsampler, Drafter, Upsampler
from ssd_core.backbones.postcard import GRID, Postcard
from ssd_core.engine.heads import DraftHeads
from ssd_core.model.grid import Grid
from ssd_core.model.transformer import Decoder, DecoderShape, sequence_angles


class MockCodec(PictureCodec):
    """A codebook of random vectors; it draws no pictures."""

    patch = 1

    def __init__(self, codes: int, dim: int = 4) -> None:
        super().__init__()
        self.codebook = nn.Parameter(torch.empty(codes, dim))


class MockBackbone(Backbone):
    """Any grid and any number of codes; a prompt has one id for each of its characters."""

    name = "mock"
    sha256 = "5eed" * 16
    rounding = 0.0  # as if measured

    def __init__(self, grid: Grid = Grid(4, 5), codes: int = 8, seed: int = 0,  # noqa: B008
                 hidden: int = 16, preset: Preset = Preset(k_h=3),  # noqa: B008
                 prompt_limit: int = 16) -> None:
        super().__init__()
        self.prompt_limit = prompt_limit
        self.grid, self.codes, self.preset = grid, codes, preset
        self.sizes = ((grid.columns, grid.rows),)
        self.letters, self.head = (nn.Parameter(torch.empty(n, hidden)) for n in (128, codes))
        self.code_embedding = nn.Parameter(torch.empty(codes + grid.row_end, hidden))
        self.norm = nn.Parameter(torch.ones(hidden))
        self.decoder = Decoder(DecoderShape(2, hidden, 2, 1, hidden // 2, 2 * hidden))
        randomise(self, seed, 0.25)
        for layer in self.decoder.layers:  # as weights of Hugging Face's layout are
            layer.qkv.data = layer.to_runtime_layout("qkv", layer.qkv.data)
        self.angles = sequence_angles(self.prompt_limit + grid.slots, hidden // 2)
        self.picture_codec = MockCodec(codes)
        randomise(self.picture_codec, seed, 1.0)
        self.find_drafter = mock_drafter
        self.requires_grad_(False).eval()

    def tokenize(self, prompt: str) -> list[int]:
        if len(prompt) > self.prompt_limit:
            raise SSDError(f"the prompt has {len(prompt)} letters, at most {self.prompt_limit}")
        return [ord(letter) % 128 for letter in prompt]

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return prompt_ids[:1]

    def embed_prompt(self, ids: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding(ids, self.letters)


def randomise(module: nn.Module, seed: int, std: float) -> None:
    """Normal weights; norms keep their ones."""
    generator = torch.Generator().manual_seed(seed)
    for weight in module.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=std, generator=generator)


def mock_drafter(target: Backbone) -> Drafter:
    """Half as many rows and columns where both are even, else as many; random samplers."""
    ratio = 1 if target.grid.rows % 2 or target.grid.columns % 2 else 2
    small = MockBackbone(Grid(target.grid.rows // ratio, target.grid.columns // ratio),
                         target.codes, seed=9, prompt_limit=max(target.prompt_limit + 2, 16))
    dim = target.picture_codec.codebook.shape[1]
    small.picture_codec = MockCodec(small.codes, dim)
    with torch.random.fork_rng():
        torch.manual_seed(0)  # for the biases
        up, down = Upsampler(dim, ratio, 8, 1), Downsampler(dim, ratio, 8, 1)
    for i, module in enumerate((small.picture_codec, up, down)):
        randomise(module, i, 0.3)
    small.angles = small.angles.to(target.device)
    return Drafter(small, target, up, down).to(target.device).requires_grad_(False)


def random_heads(backbone: Backbone, k_h: int = 5, k_v: int = 3, seed: int = 1,
                 row: bool = False) -> DraftHeads:
    """Heads that start from the identity and are a little off, each in its own way."""
    heads = DraftHeads(backbone.hidden_size, k_h, k_v, row=row)
    generator = torch.Generator().manual_seed(seed)
    for head in (*heads.horizontal, *heads.vertical):
        head.initialise(generator)
        nn.init.normal_(head.w2, std=0.1, generator=generator)
    if heads.row is not None:
        heads.row.initialise(generator)
        nn.init.normal_(heads.row.out, std=0.1, generator=generator)
    return heads.requires_grad_(False)


def tiny_postcard(seed: int = 0, grid: Grid = GRID,
                  words: tuple[str, ...] = ("a", "red", "house", "sun"),
                  twice: bool = False) -> Postcard:
    """The bundled backbone's class with one small random layer and 32 codes, of any size.

    twice: its codec has the head for twice the size.
    """
    shape = DecoderShape(1, 16, 2, 2, 8, 32, rotary="interleaved")
    backbone = Postcard(words, 32, shape, grid, codec=VQTokenizer(32, upsample=4 * twice))
    randomise(backbone, seed, 0.25)
    backbone.find_drafter, backbone.rounding = mock_drafter, 0.0
    return backbone.freeze()


def events(backbone: Backbone, method, prompts=("a sun",), **options) -> list:
    return list(generate(backbone, prompts, method, **options))


def tokens(backbone: Backbone, method, prompts=("a sun",), **options) -> torch.Tensor:
    return events(backbone, method, prompts, **options)[-1].tokens
