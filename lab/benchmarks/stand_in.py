"""A stand-in for a large model: tokens that are as hard to guess as a real model's, on any grid.

Nobody here has run the real weights. What is published of them is how often guesses are right: how
many times fewer passes speculative Jacobi decoding takes (1.8 on Janus-Pro, 2.2 on Lumina-mGPT, 4.5
there in SJD-PAC's form) and how often the drafts of trained heads are accepted (Figure 1 of the SSD
paper). The stand-in is built so that it has these figures; stand_in_table.py measures them, and
then every method.

Construction. There are 1,024 codes of 16 materials, 64 each. The logits of a cell are sums of
- a term of its material: the cell continues the material of its left or its upper neighbour, all
  codes of other materials have BONUS less, and within the material some codes are always likelier;
- random terms for the tokens of the nearest cells on its left, for the token above, and for the
  token four to the right of that, which stands for all context that no state of one cell holds.
So a picture falls into areas, each with codes of its own. `shares` divide the variance of the
logits within a material, `entropy` sets its size. What each does:
- the material's share is what any head knows, far away too (0.25 of the drafts at a distance of 3);
- the share of all cells on the left is what makes guessing several cells of a row at once hard;
- dividing it among several cells is what slows down methods that keep guesses from pass to pass
  (`exact`, `sjd` with continuation): a cell settles only after all of them. With one cell on the
  left `exact` takes 4.7 times fewer passes, with four of equal shares 2.1, while `sjd` as first
  published stays at 1.8 and 2.0. So `sjd` alone does not tell what `exact` does;
- the share of the token above is what a vertical head knows beside the material;
- the last one is what heads do not know, but `sjd` does: it keeps heads from being too good.

The one like Lumina-mGPT was set by trials of three pictures. `sjd` takes 2.2 times fewer passes
there, as published, but by SJD-PAC's settings 5.4 times fewer, where 4.5 is published.

Not modelled: text and guidance (the distributions are those that guidance leaves), codes that look
alike, and context further away than a row. One attention layer with weights made by hand finds the
tokens, so what runs is the engine's own decoder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.presets import JANUS, LUMINA, PAPER, Preset
from ssd_core.model.grid import Grid
from ssd_core.model.transformer import Decoder, DecoderShape, frequencies, sequence_angles

MATERIALS, CODES_EACH, BONUS = 16, 64, 10.0
CODES = MATERIALS * CODES_EACH
TERM, HEAD_DIM, THETA = 32, 64, 1000.0
SHARP = 150.0  # of attention: a neighbour gets nearly all of it
OWN = slice(1, 1 + MATERIALS + TERM)  # of a state: the left token's material and its own vector
ABOVE, AHEAD = (-1, 0), (-1, 4)  # (row, column) relative to the cell

Shares = Mapping[tuple[int, int], float]  # of the logits' variance; the left one first
JANUS_SHARES: Shares = {(0, -1): 0.19, (0, -2): 0.05, ABOVE: 0.01, AHEAD: 0.33}
LUMINA_SHARES: Shares = {(0, -1): 0.09, (0, -2): 0.05, (0, -3): 0.03, (0, -4): 0.01,
                         ABOVE: 0.01, AHEAD: 0.32}
ENTROPY = 1.7  # nats of a token, in the middle of what is known of real models (1.4 to 2)


def spread_of(entropy: float) -> float:
    """The standard deviation of a material's normal logits whose softmax has this entropy in nats.
    """
    logits = torch.randn(512, CODES_EACH, generator=torch.Generator().manual_seed(0))
    low, high = 0.0, 32.0
    for _ in range(30):
        spread = (low + high) / 2
        log = (spread * logits).log_softmax(-1)
        above = float(-(log.exp() * log).sum(-1).mean()) > entropy
        low, high = (spread, high) if above else (low, spread)
    return spread


class StandIn(Backbone):
    """entropy: of a token, in nats. shares: see `Shares`; what they leave is the material's."""

    name, sha256, prompt_limit, takes_guidance = "stand-in", "57a4d1" * 10, 2, True

    def __init__(self, grid: Grid, entropy: float = ENTROPY, shares: Shares = JANUS_SHARES,
                 preset: Preset = Preset(), seed: int = 0) -> None:  # noqa: B008
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.grid, self.codes, self.preset, self.shares = grid, CODES, preset, dict(shares)
        self.sizes = ((grid.columns, grid.rows),)
        count = len(shares)
        width, tokens = OWN.stop + TERM * (count - 1), CODES + grid.row_end + 1
        material = F.one_hot(torch.arange(CODES) % MATERIALS, MATERIALS)
        embedding = torch.zeros(tokens, width)  # the last token begins every prompt
        embedding[:, 0] = 1
        embedding[:CODES, 1 : 1 + MATERIALS] = material / 2  # the upper neighbour adds as much
        embedding[:, 1 + MATERIALS : OWN.stop] = F.normalize(
            torch.randn(tokens, TERM, generator=draw), dim=-1)
        embedding[CODES:, 1 + MATERIALS : OWN.stop] *= math.sqrt(1.25)  # as long as a code's
        self.word_embedding = nn.Parameter(embedding[-1:])
        self.code_embedding = nn.Parameter(embedding[:-1])
        likely = torch.special.ndtri((torch.arange(CODES) // MATERIALS + 0.5) / CODES_EACH)
        spread, rest = spread_of(entropy), math.sqrt(1 - sum(shares.values()))
        within = torch.where(material == 1, spread * rest * likely[:, None], -BONUS)
        terms = torch.randn(CODES, count, TERM, generator=draw)
        terms *= spread * torch.tensor([*shares.values()]).sqrt()[:, None]
        length = math.sqrt(width / (2 + count))  # all parts of a state have length 1
        self.head = nn.Parameter(F.pad(torch.cat((within, terms.flatten(1)), 1), (1, 0)) / length)
        self.norm = nn.Parameter(torch.ones(width))
        others = [*shares][1:]
        self.decoder = looking_at([-row * grid.width - column - 1 for row, column in others],
                                  others.index(ABOVE))
        self.angles = sequence_angles(self.prompt_limit + grid.slots, HEAD_DIM, THETA)
        self.requires_grad_(False).eval()

    def tokenize(self, prompt: str) -> list[int]:
        return [0, 0]

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return prompt_ids


@torch.no_grad()
def looking_at(back: Sequence[int], upper: int) -> Decoder:
    """A decoder that adds the tokens of so many slots before to a state, each to its own place.

    The material of number `upper` is added to the left token's. The constant makes all keys alike,
    and the rotation alone tells slots apart.
    """
    width = OWN.stop + TERM * len(back)
    decoder = Decoder(DecoderShape(1, width, len(back), 1, HEAD_DIM, 1, "interleaved"))
    layer = decoder.layers[0]
    for weight in (layer.qkv, layer.out, layer.gate_up, layer.down):
        weight.zero_()
    incoming = math.sqrt(width / 2.25)  # the layer's norm: squared lengths 1, 1/4 and 1
    turn = torch.outer(torch.tensor(back, dtype=torch.float64), frequencies(HEAD_DIM // 2, THETA))
    queries = torch.stack((turn.cos(), -turn.sin()), -1).flatten(1)  # turned back by as many slots
    keys = torch.tensor([1.0, 0.0]).repeat(HEAD_DIM // 2)
    scale = math.sqrt(SHARP) / incoming
    layer.qkv[: queries.numel(), 0] = scale * queries.flatten().float()
    layer.qkv[queries.numel() :, 0][:HEAD_DIM] = scale * keys
    size = OWN.stop - OWN.start
    layer.qkv[-HEAD_DIM:][:size, OWN] = torch.eye(size) / incoming
    layer.out[1 : 1 + MATERIALS, upper * HEAD_DIM :][:, :MATERIALS] = torch.eye(MATERIALS)
    for head in range(len(back)):
        place, seen = OWN.stop + head * TERM, head * HEAD_DIM + MATERIALS
        layer.out[place : place + TERM, seen : seen + TERM] = torch.eye(TERM)
    return decoder


def janus_like(seed: int = 0) -> StandIn:
    """As hard as Janus-Pro-7B: 24 x 24 cells, its paper's schedule, no guidance."""
    return StandIn(PAPER["Janus-Pro"].grid, ENTROPY, JANUS_SHARES, replace(JANUS, cfg=1.0), seed)


def lumina_like(seed: int = 0) -> StandIn:
    """As hard as Lumina-mGPT-7B-768: 48 x 48 cells and row ends."""
    return StandIn(PAPER["Lumina-mGPT"].grid, ENTROPY, LUMINA_SHARES, replace(LUMINA, cfg=1.0),
                   seed)
