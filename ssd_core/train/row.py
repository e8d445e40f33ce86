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
from ..weights.model_size import ModelSize
from .picture_files import Pictures
from .processes import ALONE, Team
from .teacher import branch, teach

DIVERGENCE = 0.5  # weight of KL(p, q) beside smooth L1
EXACT = 0.2  # share of cells whose exact state their neighbours see
NUMBERS_AT_ONCE = 1 << 25  # of all neighbours' h and e in one piece of a sweep
CODES_AT_ONCE = 1 << 25  # numbers of the distributions whose divergence is computed
# float32 numbers of a cell alive at once, in units of its hidden state: of all cells of a part, and
# of those of a piece; and in units of its codes. Measured.
WHOLE, STATES, DISTRIBUTIONS = 4, 120, 6
AT_LEFT = torch.tensor([row == 0 for row, _ in NEIGHBOURS])


def fresh_drafter(hidden: int, generator: torch.Generator) -> RowDrafter:
    drafter = RowDrafter(hidden)
    drafter.initialise(generator)
    return drafter


def sweep(drafter: RowDrafter, grid: Grid, hidden: torch.Tensor, embedding: torch.Tensor,
          exact: torch.Tensor, earlier: torch.Tensor | None, cells: torch.Tensor) -> torch.Tensor:
    """Estimates [B, n, d] of the cells [n], from h and e [B, R*C, d] of finished pictures.

    exact: [B, R*C] bool, the cells whose neighbours see their true h. earlier: the estimates
    [B, R*C, d] of the sweep before; None in the first one, which sees nothing at the left.
    """
    around, inside = neighbours(Grid(grid.rows, grid.columns), cells)
    unknown = AT_LEFT.to(hidden.device) & ~exact[:, around]
    seen = hidden[:, around]
    if earlier is None:
        return drafter(seen, embedding[:, around], inside & ~unknown)
    return drafter(torch.where(unknown[..., None], earlier[:, around], seen), embedding[:, around],
                   inside.expand_as(unknown))


def sweeps(drafter: RowDrafter, grid: Grid, hidden: torch.Tensor, embedding: torch.Tensor,
           exact: torch.Tensor) -> Iterator[torch.Tensor]:
    """Estimates [B, R*C, d] of all cells after every sweep."""
    cells, estimate = torch.arange(grid.cells, device=hidden.device), None
    for _ in range(SWEEPS):
        estimate = sweep(drafter, grid, hidden, embedding, exact, estimate, cells)
        yield estimate


def learn(heads: DraftHeads, backbone: Backbone, batch: Pictures, drop: list[bool], cells: int,
          generator: torch.Generator, team: Team = ALONE) -> float:
    """Add the gradients of this process's share of a batch; return its part of the loss.

    Exact cells are drawn for the whole batch, so that they do not depend on the number of
    processes.
    """
    assert heads.row is not None
    backbone = backbone.resized(batch.size)
    total, mine, grid = 0.0, team.share(len(batch)), backbone.grid
    exact = torch.rand(len(batch), grid.cells, generator=generator) < EXACT
    choices = iter(zip(drop[mine.start : mine.stop], exact[mine.start : mine.stop], strict=True))
    for part in batch.pick(mine).parts(max(1, cells // grid.cells)):
        without_text, shown = zip(*islice(choices, len(part)), strict=True)
        prompts = [branch(backbone, ids.tolist(), without)
                   for ids, without in zip(part.prompts, without_text, strict=True)]
        hidden, embedding = teach(backbone, prompts, part.tokens, team)
        total += learn_part(heads.row, backbone, hidden, embedding,
                            torch.stack(shown).to(hidden.device), len(part) / len(batch), team)
    return total


def learn_part(drafter: RowDrafter, backbone: Backbone, hidden: torch.Tensor,
               embedding: torch.Tensor, exact: torch.Tensor, share: float, team: Team) -> float:
    """Add the gradients of `share` times a mean over sweeps; return that loss.

    A sweep sees the estimates of the one before without their gradients, so every sweep, and every
    piece of one, frees its activations before the next.
    """
    total, grid, earlier = 0.0, backbone.grid, None
    pieces = torch.arange(grid.cells, device=hidden.device).split(
        max(1, cells_at_once(backbone.hidden_size) // len(hidden)))
    for number in range(1, SWEEPS + 1):
        estimates = []
        for cells in pieces:
            with team.autocast(backbone.device):
                estimate = sweep(drafter, grid, hidden, embedding, exact, earlier, cells)
            loss = F.smooth_l1_loss(estimate.float(), hidden[:, cells]) / SWEEPS
            if number == SWEEPS:
                loss = loss + DIVERGENCE * divergence(backbone, estimate, hidden[:, cells])
            loss = loss * (share * len(cells) / grid.cells)
            loss.backward()
            total += loss.item()
            estimates.append(estimate.detach().to(hidden.dtype))
        earlier = torch.cat(estimates, 1)
    return total


def divergence(backbone: Backbone, estimate: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """KL(p, q) in nats per token, of states [B, n, d]; with many codes of every k-th cell."""
    every = -(-hidden.shape[0] * hidden.shape[1] * backbone.codes // CODES_AT_ONCE)
    draft = backbone.logits(estimate[:, ::every].to(backbone.dtype)).float().log_softmax(-1)
    target = backbone.logits(hidden[:, ::every].to(backbone.dtype)).float().softmax(-1)
    return F.kl_div(draft, target, reduction="none").sum(-1).mean()


def cells_at_once(hidden: int) -> int:
    """Cells in one piece of a sweep."""
    return NUMBERS_AT_ONCE // (len(NEIGHBOURS) * 2 * hidden)


def working_bytes(model: ModelSize, pictures: int) -> int:
    """Of a sweep over so many pictures: their states, and a piece with its gradients."""
    cells, hidden = pictures * model.grid.cells, model.shape.hidden
    piece = min(cells, cells_at_once(hidden))
    codes = min(piece * model.codes, CODES_AT_ONCE)
    return 4 * (WHOLE * cells * hidden + STATES * piece * hidden + DISTRIBUTIONS * codes)


def last_estimate(heads: DraftHeads, grid: Grid, hidden: torch.Tensor,
                  embedding: torch.Tensor) -> torch.Tensor:
    """Estimates [B, R*C, d] after all sweeps, without exact cells at the left."""
    assert heads.row is not None
    exact = torch.zeros(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    *_, estimate = sweeps(heads.row, grid, hidden, embedding, exact)
    return estimate
