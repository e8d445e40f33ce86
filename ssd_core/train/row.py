"""Trains the row drafter by smooth L1 to the frozen backbone's states, plus a small divergence.

Every step unrolls the sweeps of decoding. The first sweep sees only the cells above; later sweeps
also see the previous sweep's estimates at the left, with the picture's own tokens. A share of cells
shows its exact state instead, as behind the frontier of a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import torch
import torch.nn.functional as F

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads
from ..engine.row_drafter import NEIGHBOURS, SWEEPS, RowDrafter, neighbours
from ..model.grid import Grid
from .picture_files import Pictures
from .processes import ALONE, Team
from .teacher import branch, teach

DIVERGENCE = 0.5  # weight of KL(p, q) beside smooth L1
EXACT = 0.2  # share of cells whose exact state their neighbours see
NUMBERS_AT_ONCE = 1 << 27  # of all neighbours' h and e in one part of a batch
AT_LEFT = torch.tensor([row == 0 for row, _ in NEIGHBOURS])


def fresh_drafter(hidden: int, generator: torch.Generator) -> RowDrafter:
    drafter = RowDrafter(hidden)
    drafter.initialise(generator)
    return drafter


def sweeps(drafter: RowDrafter, grid: Grid, hidden: torch.Tensor, embedding: torch.Tensor,
           exact: torch.Tensor) -> Iterator[torch.Tensor]:
    """Estimates [B, R*C, d] after every sweep, from h and e [B, R*C, d] of finished pictures.

    exact: [B, R*C] bool, the cells whose neighbours see their true h.
    """
    cells = torch.arange(grid.cells, device=hidden.device)
    around, inside = neighbours(Grid(grid.rows, grid.columns), cells)
    at_left = AT_LEFT.to(hidden.device)
    seen_embedding, seen = embedding[:, around], hidden[:, around]
    unknown = at_left & ~exact[:, around]
    yield (estimate := drafter(seen, seen_embedding, inside & ~unknown))
    for _ in range(1, SWEEPS):
        earlier = estimate.detach().to(hidden.dtype)[:, around]
        yield (estimate := drafter(torch.where(unknown[..., None], earlier, seen), seen_embedding,
                                   inside.expand_as(unknown)))


def learn(heads: DraftHeads, backbone: Backbone, batch: Pictures, drop: list[bool],
          generator: torch.Generator, team: Team = ALONE) -> float:
    """Add the gradients of this process's share of a batch; return its part of the loss.

    The loss is a mean over sweeps. Exact cells are drawn for the whole batch, so that they do not
    depend on the number of processes.
    """
    assert heads.row is not None
    total, mine, grid = 0.0, team.share(len(batch)), backbone.grid
    exact = torch.rand(len(batch), grid.cells, generator=generator) < EXACT
    choices = iter(zip(drop[mine.start : mine.stop], exact[mine.start : mine.stop], strict=True))
    for part in batch.pick(mine).parts(most_at_once(backbone)):
        without_text, shown = zip(*islice(choices, len(part)), strict=True)
        prompts = [branch(backbone, ids.tolist(), without)
                   for ids, without in zip(part.prompts, without_text, strict=True)]
        hidden, embedding = teach(backbone, prompts, part.tokens, team)
        with team.autocast(backbone.device):
            estimates = list(sweeps(heads.row, grid, hidden, embedding,
                                    torch.stack(shown).to(hidden.device)))
        losses = [F.smooth_l1_loss(estimate.float(), hidden) for estimate in estimates]
        loss = torch.stack(losses).mean() + DIVERGENCE * divergence(backbone, estimates[-1], hidden)
        loss = loss * (len(part) / len(batch))
        loss.backward()
        total += loss.item()
    return total


def divergence(backbone: Backbone, estimate: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """KL(p, q) in nats per token, of states [B, n, d]."""
    draft = backbone.logits(estimate.to(backbone.dtype)).float().log_softmax(-1)
    target = backbone.logits(hidden.to(backbone.dtype)).float().softmax(-1)
    return F.kl_div(draft, target, reduction="none").sum(-1).mean()


def most_at_once(backbone: Backbone) -> int:
    """Pictures in one part of a batch."""
    numbers = backbone.grid.cells * len(NEIGHBOURS) * 2 * backbone.hidden_size
    return max(1, min(NUMBERS_AT_ONCE // numbers, 16))


def last_estimate(heads: DraftHeads, grid: Grid, hidden: torch.Tensor,
                  embedding: torch.Tensor) -> torch.Tensor:
    """Estimates [B, R*C, d] after all sweeps, without exact cells at the left."""
    assert heads.row is not None
    exact = torch.zeros(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    *_, estimate = sweeps(heads.row, grid, hidden, embedding, exact)
    return estimate
