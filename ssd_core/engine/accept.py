"""Acceptance rules: pure functions that accept or repair draft tokens.

They use no model, cache or configuration. `residual` is SSD's rule (section 3.3); others name their
paper, and `coupled`, for AR's own tokens, is ours. Shapes everywhere: tokens [B, n] int64,
draft_probs (q of the paper, from Eq. 2) and target_probs (p, Eq. 1) [B, n, V] float32, uniforms
[B, n] in [0, 1), noise [B, n, V] or [B, n, 1] as `sample` takes it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from ..model.sampling import sample


class AcceptResult(NamedTuple):
    """tokens [B, n] after acceptance or repair; accepted [B, n] bool."""

    tokens: torch.Tensor
    accepted: torch.Tensor


def residual(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
             uniforms: torch.Tensor, noise: torch.Tensor) -> AcceptResult:
    """One round of "verification as auto correction": accept (SSD Eq. 4) or repair (Eq. 5).

    Each position by itself, so that its marginal stays exact; later drafts are not discarded.
    """
    accepted = accept_mask(tokens, draft_probs, target_probs, uniforms)
    repaired = sample(residual_weights(draft_probs, target_probs), noise)
    return AcceptResult(torch.where(accepted, tokens, repaired), accepted)


def accept_mask(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
                 uniforms: torch.Tensor) -> torch.Tensor:
    """[B, n] bool: accept a draft with probability min(1, p / q), its alpha in SSD Eq. 4."""
    index = tokens[..., None]
    target = target_probs.gather(-1, index)[..., 0]
    return uniforms * draft_probs.gather(-1, index)[..., 0] < target


def residual_weights(draft_probs: torch.Tensor, target_probs: torch.Tensor) -> torch.Tensor:
    """max(0, p - q) [B, n, V], the numerator of SSD Eq. 5; p itself where rounding leaves no mass.

    Sampling needs no denominator.
    """
    weights = (target_probs - draft_probs).clamp_(min=0)
    return torch.where(weights.amax(-1, keepdim=True) > 0, weights, target_probs)


def grouped(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
            uniforms: torch.Tensor, noise: torch.Tensor, group: torch.Tensor,
            inside: torch.Tensor) -> AcceptResult:
    """Accept with probability min(1, p(G) / q(G)), G a group of similar tokens (GSD, 2508.07747).

    group: [B, n, g] tokens, including the token itself; inside: [B, n, g] bool, which of them
    belong to the group. Not lossless. With groups of one token this is `residual`.
    """
    target = (target_probs.gather(-1, group) * inside).sum(-1)
    draft = (draft_probs.gather(-1, group) * inside).sum(-1)
    accepted = uniforms * draft < target
    repaired = sample(residual_weights(draft_probs, target_probs), noise)
    return AcceptResult(torch.where(accepted, tokens, repaired), accepted)


def pooled(target_probs: torch.Tensor, similar: torch.Tensor, delta: float) -> torch.Tensor:
    """The probability [B, n] of tokens, each pooled with tokens similar to it (LANTERN).

    similar: [B, n, k] the token itself, then others by increasing distance. Others are added while
    their sum, the total variation between the pooled distribution and p, is below delta (MuLo-SD
    Eq. 3, 4).
    """
    probs = target_probs.gather(-1, similar)
    moved = F.pad(probs[..., 1:].cumsum(-1), (1, 0))
    return probs[..., 0] + moved.masked_fill(moved >= delta, 0).amax(-1)


def relaxed(target_probs: torch.Tensor, similar: torch.Tensor, delta: float) -> torch.Tensor:
    """The distribution [..., V] that moves p of similar tokens to the token, as in `pooled`."""
    others = target_probs.gather(-1, similar[..., 1:])
    remaining = others.masked_fill(others.cumsum(-1) < delta, 0)
    sum_ = pooled(target_probs, similar, delta)[..., None]
    return target_probs.scatter(-1, similar, torch.cat((sum_, remaining), dim=-1))


def coupled(tokens: torch.Tensor, target_probs: torch.Tensor, noise: torch.Tensor) -> AcceptResult:
    """Sample again with the slots' fixed noise; a token is accepted if it does not change."""
    sampled = sample(target_probs, noise)
    return AcceptResult(sampled, sampled == tokens)


def strict(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
           uniforms: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Accept drafts up to the first rejection and repair that draft (Leviathan et al.); lossless.

    tokens and draft_probs cover n drafts. target_probs and noise cover n + 1 positions; the last is
    for the bonus token after n acceptances. Returns tokens [B, n + 1] and the accepted count [B];
    tokens after position `count` are undefined.
    """
    accepted = accept_mask(tokens, draft_probs, target_probs[:, :-1], uniforms)
    count = accepted.long().cumprod(-1).sum(-1)
    padded = F.pad(draft_probs, (0, 0, 0, 1))  # q = 0: its residual is p
    repaired = sample(residual_weights(padded, target_probs), noise)
    tokens = F.pad(tokens, (0, 1))
    before_repair = torch.arange(tokens.shape[1], device=tokens.device) < count[:, None]
    return torch.where(before_repair, tokens, repaired), count


def siblings(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
             uniforms: torch.Tensor, noise: torch.Tensor, present: torch.Tensor,
             similar: torch.Tensor | None = None,
             delta: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Accept one of n drafts for the same position, tried in order, or repair (Hawk Eq. 6).

    Lossless if each draft was sampled from its own q, which may depend on the drafts before it.
    After a rejection p becomes the normalised residual max(0, p - q). present [B, n] bool: False
    where there is no draft. target_probs and noise [B, V] belong to the position. With similar
    [B, n, k] each draft is tested against its `relaxed` p instead (LANTERN). Returns the token [B]
    and the index of the accepted draft [B], n if all were rejected.
    """
    count = tokens.shape[1]
    accepted_index = torch.full_like(tokens[:, 0], count)
    weights = target_probs
    for i in range(count):
        draft, index = draft_probs[:, i], tokens[:, i : i + 1]
        p = weights if similar is None else relaxed(weights, similar[:, i], delta)
        accepted = uniforms[:, i : i + 1] * draft.gather(1, index) < p.gather(1, index)
        tested = present[:, i] & (accepted_index == count)
        accepted_index = torch.where(tested & accepted[:, 0], i, accepted_index)
        rest = residual_weights(draft, p)
        weights = torch.where(tested[:, None], rest / rest.sum(-1, keepdim=True), weights)
    repaired = sample(weights, noise)
    drafted = tokens.gather(1, accepted_index.clamp(max=count - 1)[:, None])[:, 0]
    return torch.where(accepted_index < count, drafted, repaired), accepted_index
