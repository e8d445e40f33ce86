"""Measures draft heads and the row drafter on held-out pictures: how often drafts are accepted.

Knows nothing about learning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import mean, stdev

import torch
import torch.nn.functional as F

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads
from ..model.sampling import guide
from . import row
from .draft_heads import code_logits, most_at_once, offsets
from .picture_files import Pictures
from .processes import ALONE, Team
from .teacher import branch, teach

NUMBERS_AT_ONCE = 1 << 27  # of a distribution over codes in one chunk


def teacher_parts(backbone: Backbone, drawn: Pictures,
                  team: Team = ALONE) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield h_pre, e [2B, R*C, d] of held-out pictures: B with their text, then B without."""
    for part in drawn.parts(max(1, most_at_once(backbone.grid) // 2)):
        prompts = [branch(backbone, ids.tolist(), without_text)
                   for without_text in (False, True) for ids in part.prompts]
        yield teach(backbone, prompts, part.tokens.repeat(2, 1, 1), team)


@torch.no_grad()
def mean_size(backbone: Backbone, drawn: Pictures, team: Team = ALONE) -> float:
    """Mean |h_pre| over a few pictures; the `scale` in the heads' files."""
    return mean(hidden.abs().mean().item() for hidden, _ in teacher_parts(backbone, drawn, team))


@torch.no_grad()
def variance(heads: DraftHeads, backbone: Backbone, drawn: Pictures,
             team: Team = ALONE) -> float:
    """Mean squared error of the last head on held-out pictures."""
    *_, (_, head, step) = offsets(heads, backbone.grid.columns)
    errors = []
    for hidden, embedding in teacher_parts(backbone, drawn, team):
        goal = heads.space.goal(hidden, embedding)[:, step:]
        errors.append(F.mse_loss(head(hidden[:, :-step], embedding[:, :-step]), goal).item())
    return mean(errors)


@torch.no_grad()
def acceptance(heads: DraftHeads, backbone: Backbone, drawn: Pictures,
               team: Team = ALONE) -> dict[str, dict[str, float]]:
    """Mean over cells of sum(min(p, q)), the probability that a draft token is accepted, by offset.

    `acceptance_se`: standard errors over pictures. Every process measures its share of them.
    """
    by_process = team.gathered(overlaps_by_offset(heads, backbone, drawn, team))
    names = dict.fromkeys(name for measured in by_process for name in measured)
    each = {name: [value for measured in by_process for value in measured.get(name, ())]
            for name in names}
    return {"acceptance": {name: mean(values) for name, values in each.items()},
            "acceptance_se": {name: stdev(values) / len(values)**0.5 if len(values) > 1 else 0.0
                              for name, values in each.items()}}


def overlaps_by_offset(heads: DraftHeads, backbone: Backbone, drawn: Pictures,
                       team: Team) -> dict[str, list[float]]:
    """Return `overlaps` of this process's pictures by offset of each head, and of the row drafter.
    """
    each: dict[str, list[float]] = {}
    for hidden, embedding in teacher_parts(backbone, drawn.pick(team.share(len(drawn))), team):
        for name, head, step in offsets(heads, backbone.grid.columns):
            estimate = head(hidden[:, :-step], embedding[:, :-step])
            overlap = overlaps(backbone, partial(code_logits, heads, backbone), estimate,
                               hidden[:, step:])
            each[name] = each.get(name, []) + overlap.tolist()
        if heads.row is not None:
            estimate = row.last_estimate(heads, backbone.grid, hidden, embedding)
            each["row"] = each.get("row", []) + overlaps(
                backbone, backbone.logits, estimate.to(backbone.dtype), hidden).tolist()
    return each


def overlaps(backbone: Backbone, logits_of: Callable[[torch.Tensor], torch.Tensor],
             estimate: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """Mean over cells of sum(min(p, q)) [B], from estimates and exact states [2B, n, d].

    logits_of: converts estimates to the draft's logits.
    """
    cells = max(1, NUMBERS_AT_ONCE // (len(hidden) * backbone.codes))
    shared = []
    for draft, exact in zip(estimate.split(cells, 1), hidden.split(cells, 1), strict=True):
        draft_probs = guided_probs(backbone, logits_of(draft))
        target_probs = guided_probs(backbone, backbone.logits(exact.to(backbone.dtype)))
        shared.append(torch.minimum(draft_probs, target_probs).sum(-1))
    return torch.cat(shared, 1).mean(-1)


def guided_probs(backbone: Backbone, logits: torch.Tensor) -> torch.Tensor:
    """Logits [2B, n, V] of both branches -> probabilities [B, n, V] at the preset's guidance."""
    return guide(logits, backbone.preset.cfg).softmax(-1)
