"""A stand-in for a large model: tokens that are as hard to guess as a real model's, on any grid.

Nobody here has run the real weights. What is published of them is how many passes methods take that
guess tokens, at several windows; stand_in_table.py measures these on the stand-in, and then every
method.

Construction. There are 1,024 codes of 16 materials, 64 each. The logits of a cell are sums of
- a term of its material: the cell continues the material of its left neighbour or of the cell four
  to the right of the upper one (FROM), all codes of other materials have BONUS less, and within the
  material some codes are always likelier;
- random terms for the tokens of the nearest cells on its left, for the token above, and for the
  token four to the right of that, which stands for all context that no state of one cell holds.
So a picture falls into areas, each with codes of its own. Half of the materials are smooth: one or
two codes are much likelier, and neighbours hardly matter. The others are rough. So easy cells lie
together, as in pictures, and a pass accepts many tokens there and one elsewhere.

What a `World` sets:
- `shares` of all cells on the left are what makes guessing several cells of a row at once hard;
  dividing them among several cells slows down methods that keep guesses from pass to pass (`exact`,
  `sjd` with continuation), because a cell settles only after all of them, while `sjd` as first
  published hardly changes. The last one is what heads do not know, but `sjd` does;
- `left`, how much the left neighbour decides about the material, is what keeps `sjd` from guessing
  areas before their beginning is known;
- `alike`: eight codes a group have so much in common, as what they say to neighbours and as where
  they are likely. A wrong token of the right group does little harm.

STRUCTURES other than the fitted one have the same difficulty and other neighbours: ten in two rows,
or four on the left that weigh alike. What they find beside the fitted one is the range in which
real models may lie.

Not modelled: text and guidance (the distributions are those that guidance leaves), and context
further away than two rows. One attention layer with weights made by hand finds the tokens, so what
runs is the engine's own decoder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.presets import JANUS, LUMINA, PAPER, Preset
from ssd_core.model.grid import Grid
from ssd_core.model.transformer import Decoder, DecoderShape, frequencies, sequence_angles

MATERIALS, CODES_EACH, ALIKE_CODES, BONUS = 16, 64, 8, 6.2
CODES = MATERIALS * CODES_EACH
MATERIAL = torch.arange(CODES) % MATERIALS  # of every code
GROUP = MATERIAL * (CODES_EACH // ALIKE_CODES) + torch.arange(CODES) // (MATERIALS * ALIKE_CODES)
TERM, HEAD_DIM, THETA = 32, 64, 1000.0
SHARP = 150.0  # of attention: a neighbour gets nearly all of it
OWN = slice(1, 1 + MATERIALS + TERM)  # of a state: the left token's material and its own vector
ABOVE, AHEAD = (-1, 0), (-1, 4)  # (row, column) relative to the cell
FROM = AHEAD  # beside the left cell; from above, areas would reach too far down

Shares = Mapping[tuple[int, int], float]  # of the logits' variance; the left one first


@dataclass(frozen=True)
class World:
    """What decides how hard tokens are to guess.

    entropy: of a token, in nats, the mean of smooth and rough materials. uneven: how much less
    smooth ones have, and how much more rough ones, as a share. shares: of the variance of a rough
    material's logits; what they leave is the material's. Neighbours weigh as much in smooth ones.
    alike: the share of a code's vectors that its group has in common. left: of the material, what
    the left neighbour decides; `FROM` decides the rest.
    """

    entropy: float
    uneven: float
    shares: Shares
    alike: float
    left: float


JANUS_WORLD = World(1.25, 0.4, {(0, -1): 0.08, (0, -2): 0.04, ABOVE: 0.01, AHEAD: 0.48}, 0.5, 0.57)
LUMINA_WORLD = replace(JANUS_WORLD, left=0.56, shares={
    (0, -1): 0.16, (0, -2): 0.10, (0, -3): 0.05, (0, -4): 0.02, ABOVE: 0.01, AHEAD: 0.34})
# The same variance of other neighbours
STRUCTURES: Mapping[str, Shares] = {
    "ten neighbours": {(0, -1): 0.15, (0, -2): 0.06, (0, -3): 0.03, ABOVE: 0.05, (-1, -1): 0.03,
                       (-1, 1): 0.06, (-1, 2): 0.05, AHEAD: 0.09, (-2, 0): 0.05, (-2, 2): 0.04},
    "four on the left": {(0, -1): 0.07, (0, -2): 0.07, (0, -3): 0.07, (0, -4): 0.07,
                         ABOVE: 0.01, AHEAD: 0.32}}


@cache
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


def in_groups(alike: float, *count: int, draw: torch.Generator) -> torch.Tensor:
    """[CODES, *count] normal numbers; so much of their variance is common to a group of codes."""
    own = torch.randn(CODES, *count, generator=draw)
    common = torch.randn(CODES // ALIKE_CODES, *count, generator=draw)
    return math.sqrt(alike) * common[GROUP] + math.sqrt(1 - alike) * own


def logits_of_materials(world: World, draw: torch.Generator) -> tuple[torch.Tensor, float]:
    """The logits of all codes by material [CODES, MATERIALS], and the spread of rough ones.

    Where two materials meet, either is as likely, however sharp it is.
    """
    spreads = [spread_of(world.entropy * (1 + sign * world.uneven)) for sign in (-1, 1)]
    shared = sum(world.shares.values()) * spreads[1] ** 2
    rest = torch.tensor([math.sqrt(spread ** 2 - shared) for spread in spreads])
    likely = torch.special.ndtri((torch.arange(CODES_EACH) + 0.5) / CODES_EACH)
    own = rest[:, None] * likely
    noise = math.sqrt(shared) * torch.randn(256, 1, CODES_EACH, generator=draw)
    own -= 2 * ((own / 2 + noise).logsumexp(-1) - noise.logsumexp(-1)).mean(0)[:, None]
    own = own.repeat(MATERIALS // 2, 1).T.flatten()  # codes of one rank after the other
    return torch.where(F.one_hot(MATERIAL, MATERIALS) == 1, own[:, None], -BONUS), spreads[1]


class StandIn(Backbone):
    name, sha256, prompt_limit, takes_guidance = "stand-in", "57a4d1" * 10, 2, True

    def __init__(self, grid: Grid, world: World, preset: Preset = Preset(),  # noqa: B008
                 seed: int = 0) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.grid, self.codes, self.preset, self.world = grid, CODES, preset, world
        self.sizes = ((grid.columns, grid.rows),)
        count = len(world.shares)
        width, tokens = OWN.stop + TERM * (count - 1), CODES + grid.row_end + 1
        embedding = torch.zeros(tokens, width)  # the last token begins every prompt
        embedding[:, 0] = 1
        embedding[:CODES, 1 : 1 + MATERIALS] = world.left * F.one_hot(MATERIAL, MATERIALS)
        codes = in_groups(world.alike, TERM, draw=draw)
        others = torch.randn(tokens - CODES, TERM, generator=draw)
        vectors = F.normalize(torch.cat((codes, others)), dim=-1)
        vectors[CODES:] *= math.sqrt(1 + world.left ** 2)  # as long as a code's
        embedding[:, 1 + MATERIALS : OWN.stop] = vectors
        self.word_embedding = nn.Parameter(embedding[-1:])
        self.code_embedding = nn.Parameter(embedding[:-1])
        within, spread = logits_of_materials(world, draw)
        terms = in_groups(world.alike, count, TERM, draw=draw)
        terms *= spread * torch.tensor([*world.shares.values()]).sqrt()[:, None]
        length = math.sqrt(width / (2 + count))  # all parts of a state have length 1
        self.head = nn.Parameter(F.pad(torch.cat((within, terms.flatten(1)), 1), (1, 0)) / length)
        self.norm = nn.Parameter(torch.ones(width))
        before = [*world.shares][1:]
        self.decoder = looking_at([-row * grid.width - column - 1 for row, column in before],
                                  before.index(FROM), world.left)
        self.angles = sequence_angles(self.prompt_limit + grid.slots, HEAD_DIM, THETA)
        self.requires_grad_(False).eval()

    def tokenize(self, prompt: str) -> list[int]:
        return [0, 0]

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return prompt_ids


@torch.no_grad()
def looking_at(back: Sequence[int], upper: int, left: float) -> Decoder:
    """A decoder that adds the tokens of so many slots before to a state, each to its own place.

    The material of number `upper` is added to the left token's, whose share is `left`. The
    constant makes all keys alike, and the rotation alone tells slots apart.
    """
    width = OWN.stop + TERM * len(back)
    decoder = Decoder(DecoderShape(1, width, len(back), 1, HEAD_DIM, 1, "interleaved"))
    layer = decoder.layers[0]
    for weight in (layer.qkv, layer.out, layer.gate_up, layer.down):
        weight.zero_()
    incoming = math.sqrt(width / (2 + left ** 2))  # the layer's norm: lengths 1, left and 1
    turn = torch.outer(torch.tensor(back, dtype=torch.float64), frequencies(HEAD_DIM // 2, THETA))
    queries = torch.stack((turn.cos(), -turn.sin()), -1).flatten(1)  # turned back by as many slots
    keys = torch.tensor([1.0, 0.0]).repeat(HEAD_DIM // 2)
    scale = math.sqrt(SHARP) / incoming
    layer.qkv[: queries.numel(), 0] = scale * queries.flatten().float()
    layer.qkv[queries.numel() :, 0][:HEAD_DIM] = scale * keys
    size = OWN.stop - OWN.start
    layer.qkv[-HEAD_DIM:][:size, OWN] = torch.eye(size) / incoming
    layer.out[1 : 1 + MATERIALS, upper * HEAD_DIM :][:, :MATERIALS] = (
        torch.eye(MATERIALS) * (1 - left) / left)
    for head in range(len(back)):
        place, seen = OWN.stop + head * TERM, head * HEAD_DIM + MATERIALS
        layer.out[place : place + TERM, seen : seen + TERM] = torch.eye(TERM)
    return decoder


def janus_like(seed: int = 0, structure: str = "") -> StandIn:
    """As hard as Janus-Pro-7B: 24 x 24 cells, its paper's schedule, no guidance.

    structure: of `STRUCTURES`, instead of the fitted one.
    """
    world = replace(JANUS_WORLD, shares=STRUCTURES.get(structure, JANUS_WORLD.shares))
    return StandIn(PAPER["Janus-Pro"].grid, world, replace(JANUS, cfg=1.0), seed)


def lumina_like(seed: int = 0) -> StandIn:
    """As hard as Lumina-mGPT-7B-768: 48 x 48 cells and row ends."""
    return StandIn(PAPER["Lumina-mGPT"].grid, LUMINA_WORLD, replace(LUMINA, cfg=1.0), seed)
