"""Draft heads for the stand-in (stand_in.py), learned from pictures that it drew."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from stand_in import StandIn

from ssd_core import Sampling, generate
from ssd_core.engine.events import finished
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR
from ssd_core.train import row
from ssd_core.train.common import cosine, remember_rates, set_rate, take_step
from ssd_core.train.heads import (
    CELLS_AT_ONCE,
    acceptance,
    distance,
    learn_heads,
    offsets,
)
from ssd_core.train.picture_files import Pictures

CELLS, STEPS = 64 * 576, 120  # that heads learn from in all, a picture of 24 x 24 cells four a step
HELD_OUT = 24 * 576  # cells that only measure acceptance
FIRST_SEED = 1_000_000  # of these pictures; tables draw with smaller seeds


def drawn(backbone: StandIn, pictures: int, seed: int = FIRST_SEED) -> Pictures:
    """So many of AR's pictures."""
    run = generate(backbone, ["a"] * pictures, AR(), sampling=Sampling(seed=seed, cfg=1.0))
    prompts = tuple(torch.tensor(backbone.tokenize("")) for _ in range(pictures))
    return Pictures(finished(run).tokens, prompts, backbone.size)


def learned_heads(backbone: StandIn, pictures: int = 0, steps: int = STEPS,
                  with_row: bool = False) -> tuple[DraftHeads, dict[str, float]]:
    """Heads as the paper has them (5 horizontal, 3 vertical), and the acceptance of each.

    They learn as by `train heads`, at a higher rate from fewer pictures. pictures: 0: as many as
    have CELLS. with_row: a row drafter learns as many steps, too.
    """
    cells = backbone.grid.cells
    shown, held_out = (drawn(backbone, count, seed) for count, seed in (
        (pictures or CELLS // cells, FIRST_SEED), (HELD_OUT // cells, 2 * FIRST_SEED)))
    heads, generator = DraftHeads(backbone.hidden_size, 5, 3), torch.Generator().manual_seed(0)
    for _, head, _ in offsets(heads, backbone.grid.columns):
        head.initialise(generator)
    descend(list(heads.parameters()), 3e-3, steps, shown, generator, partial(
        learn_heads, heads, backbone, measure=partial(
            distance, loss="smooth_l1", scale=1.0, heads=heads, backbone=backbone)))
    if with_row:
        heads.row = row.fresh_drafter(backbone.hidden_size, generator)
        descend(list(heads.row.parameters()), 1e-3, steps, shown, generator, partial(
            row.learn, heads, backbone, generator=generator))
    heads.requires_grad_(False).eval()
    return heads, acceptance(heads, backbone, [held_out])["acceptance"]


def descend(weights: list[torch.nn.Parameter], rate: float, steps: int, shown: Pictures,
            generator: torch.Generator, learn: Callable[..., float]) -> None:
    """Let weights learn in so many steps of as many cells as four pictures of 24 x 24."""
    batch = max(1, 4 * 576 // shown.tokens[0].numel())
    optimizers = remember_rates([torch.optim.AdamW(weights, rate, betas=(0.9, 0.95),
                                                   weight_decay=0.01)])
    for step in range(steps):
        set_rate(optimizers, cosine(step, steps, warmup=20, floor=0.1))
        pick = torch.randint(len(shown), (batch,), generator=generator)
        learn(shown.pick(pick.tolist()), [False] * batch, CELLS_AT_ONCE)
        take_step(optimizers, weights)
