"""How draft heads learn: smooth L1 to the backbone's own hidden states (SSD Eq. 3), or variants.

All heads learn from the same teacher pass but are independent of one another. States are computed
from tokens batch by batch and never stored. The row drafter's counterpart is row.py.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from ..backbones.base import Backbone
from ..engine.heads import HORIZONTAL, VERTICAL, DraftHeads
from ..model.grid import Grid
from .picture_files import Pictures
from .processes import ALONE, Team
from .teacher import branch, teach

CELLS_AT_ONCE = 16 * 576  # of all pictures in a teacher pass; larger batches go in parts
Measure = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def offsets(heads: DraftHeads, columns: int):
    """Yield (name, head, distance in raster cells) of every head; row ends do not count."""
    for d, head in enumerate(heads.horizontal, 1):
        yield f"{HORIZONTAL}+{d}", head, d
    for d, head in enumerate(heads.vertical, 1):
        yield f"{VERTICAL}+{d}", head, d * columns


def distance(estimate: torch.Tensor, goal: torch.Tensor, loss: str, scale: float, heads: DraftHeads,
             backbone: Backbone) -> torch.Tensor:
    """One head's loss for estimate and goal [B, n, d]; `loss` names the terms of the sum.

    smooth_l1 alone is the summand of SSD Eq. 3.
    """
    total = estimate.new_zeros(())
    for part in loss.split("+"):
        if part == "kl":
            target_probs = code_logits(heads, backbone, goal).softmax(-1)
            draft = code_logits(heads, backbone, estimate).log_softmax(-1)
            total = total + F.kl_div(draft, target_probs, reduction="none").sum(-1).mean()
        else:
            unit = scale if part == "scaled" else 1.0
            total = total + F.smooth_l1_loss(estimate / unit, goal / unit)
    return total


def code_logits(heads: DraftHeads, backbone: Backbone, estimate: torch.Tensor) -> torch.Tensor:
    """float32 [..., codes] from states of any dtype."""
    return heads.space.logits(backbone, estimate.to(backbone.dtype))


def learn(heads: DraftHeads, backbone: Backbone, batch: Pictures, drop: list[bool],
          measure: Measure, team: Team = ALONE) -> float:
    """Add the gradients of this process's share of a batch; return its part of the loss.

    The sum over processes is Eq. 3 summed over heads. drop: which pictures of the batch get no
    text. A batch is processed in parts that fit into memory; every head frees its activations
    before the next.
    """
    total, mine = 0.0, team.share(len(batch))
    without_text = iter(drop[mine.start : mine.stop])
    for part in batch.pick(mine).parts(most_at_once(backbone.grid)):
        prompts = [branch(backbone, ids.tolist(), next(without_text)) for ids in part.prompts]
        hidden, embedding = teach(backbone, prompts, part.tokens, team)
        goal = heads.space.goal(hidden, embedding)
        for _, head, step in offsets(heads, backbone.grid.columns):
            with team.autocast(backbone.device):
                estimate = head(hidden[:, :-step], embedding[:, :-step]).float()
                loss = measure(estimate, goal[:, step:]) * (len(part) / len(batch))
            loss.backward()
            total += loss.item()
    return total


def most_at_once(grid: Grid) -> int:
    """Pictures in one teacher pass."""
    return max(1, CELLS_AT_ONCE // grid.cells)
