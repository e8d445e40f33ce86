"""A stand-in for real weights: tokens of a stated entropy on any grid, for counting passes.

Its logits are sums of random terms, one for each of four neighbours: left, above, and either side
of that. One attention layer with hand-made weights finds those above. Two numbers are matched to
real models: the entropy of a token, and how much the left neighbour decides, which is what makes
guessing several cells of a row at once hard.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.presets import Preset
from ssd_core.model.grid import Grid
from ssd_core.model.transformer import Decoder, DecoderShape, frequencies, sequence_angles

CODES, TERM, HEAD_DIM, ABOVE, THETA = 1024, 32, 64, 3, 1000.0
SHARP = 150.0  # of attention: a neighbour gets nearly all of it
WIDTH = 1 + TERM * (1 + ABOVE)  # a constant, the token, and the three above
NORM = math.sqrt(WIDTH / (2 + ABOVE))  # 1 / rms of a hidden state: all of its parts have length 1


def spread_of(entropy: float) -> float:
    """The standard deviation of normal logits whose softmax has this entropy, in nats."""
    logits = torch.randn(256, CODES, generator=torch.Generator().manual_seed(0))
    low, high = 0.0, 32.0
    for _ in range(30):
        spread = (low + high) / 2
        log = (spread * logits).log_softmax(-1)
        above = float(-(log.exp() * log).sum(-1).mean()) > entropy
        low, high = (spread, high) if above else (low, spread)
    return spread


def unit(count: int, generator: torch.Generator) -> torch.Tensor:
    """[count, TERM] random vectors of length 1."""
    return F.normalize(torch.randn(count, TERM, generator=generator), dim=-1)


class StandIn(Backbone):
    """entropy: of a token, in nats. left: the left neighbour's share of the logits' variance."""

    name, sha256, prompt_limit, takes_guidance = "stand-in", "57a4d1" * 10, 2, True

    def __init__(self, grid: Grid, entropy: float, left: float, seed: int = 0) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.grid, self.codes, self.preset = grid, CODES, Preset()
        self.sizes = ((grid.columns, grid.rows),)
        tokens = CODES + grid.row_end + 1  # the last one begins every prompt
        embedding = torch.zeros(tokens, WIDTH)
        embedding[:, 0], embedding[:, 1 : 1 + TERM] = 1, unit(tokens, draw)
        self.word_embedding = nn.Parameter(embedding[-1:])
        self.code_embedding = nn.Parameter(embedding[:-1])
        slots = self.prompt_limit + grid.slots
        shares = torch.tensor([left, *[(1 - left) / ABOVE] * ABOVE])
        terms = torch.randn(CODES, len(shares), TERM, generator=draw)
        terms *= (spread_of(entropy) * shares.sqrt() / NORM)[:, None]
        self.head = nn.Parameter(F.pad(terms.flatten(1), (1, 0)))
        self.norm = nn.Parameter(torch.ones(WIDTH))
        self.decoder = looking_at(grid.width - 1, grid.width, grid.width - 2)
        self.angles = sequence_angles(slots, HEAD_DIM, THETA)
        self.requires_grad_(False).eval()

    def tokenize(self, prompt: str) -> list[int]:
        return [0, 0]

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return prompt_ids


@torch.no_grad()
def looking_at(*back: int) -> Decoder:
    """A decoder that adds the tokens of so many slots before to a hidden state, each to a place of
    its own. The constant makes all keys alike, and the rotation alone tells slots apart.
    """
    shape = DecoderShape(1, WIDTH, len(back), 1, HEAD_DIM, 1, "interleaved")
    decoder = Decoder(shape)
    layer = decoder.layers[0]
    for weight in (layer.qkv, layer.out, layer.gate_up, layer.down):
        weight.zero_()
    incoming = math.sqrt(WIDTH / 2)  # the layer's norm: constant and token have length 1
    turn = torch.outer(torch.tensor(back, dtype=torch.float64), frequencies(HEAD_DIM // 2, THETA))
    queries = torch.stack((turn.cos(), -turn.sin()), -1).flatten(1)  # turned back by as many slots
    keys = torch.tensor([1.0, 0.0]).repeat(HEAD_DIM // 2)
    scale = math.sqrt(SHARP) / incoming
    layer.qkv[: queries.numel(), 0] = scale * queries.flatten().float()
    layer.qkv[queries.numel() :, 0][:HEAD_DIM] = scale * keys
    for i in range(TERM):
        layer.qkv[-HEAD_DIM + i, 1 + i] = 1 / incoming
        for head in range(len(back)):
            layer.out[1 + (1 + head) * TERM + i, head * HEAD_DIM + i] = 1
    return decoder
