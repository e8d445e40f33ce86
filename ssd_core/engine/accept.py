"""Acceptance rules: pure functions from drafts and probabilities to a verdict.

They see no model, cache or configuration. Shapes everywhere: tokens [B, n] int64, draft_probs (q of
the paper) and target_probs (p) [B, n, V] float32, uniforms [B, n] in [0, 1), exponential noise [B,
n, V].
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from ..model.sampling import choose


class Verdict(NamedTuple):
    """tokens [B, n] after acceptance or repair; accepted [B, n] bool."""

    tokens: torch.Tensor
    accepted: torch.Tensor


def residual(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
             uniforms: torch.Tensor, noise: torch.Tensor) -> Verdict:
    """Accept or repair each position independently (SSD Eq. 4, 5); keeps its marginal exact."""
    accepted = _speculative(tokens, draft_probs, target_probs, uniforms)
    repaired = choose(residual_weights(draft_probs, target_probs), noise)
    return Verdict(torch.where(accepted, tokens, repaired), accepted)


def prefix(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
           uniforms: torch.Tensor, noise: torch.Tensor) -> Verdict:
    """Accept drafts up to the first rejection and repair that one; drafts behind it are not judged.

    Lossless as far as it comes (Leviathan et al.). Only judged and accepted drafts count.
    """
    accepted = _speculative(tokens, draft_probs, target_probs, uniforms).long().cumprod(-1).bool()
    repaired = choose(residual_weights(draft_probs, target_probs), noise)
    first = F.pad(accepted, (1, -1), value=True) & ~accepted
    return Verdict(torch.where(first, repaired, tokens), accepted)


def grouped(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
            uniforms: torch.Tensor, noise: torch.Tensor, group: torch.Tensor,
            inside: torch.Tensor) -> Verdict:
    """Accept with probability min(1, p(G) / q(G)), G a group of similar tokens (GSD, 2508.07747).

    group: [B, n, g] tokens, each token itself among them; inside: bool [B, n, g], which of them
    count. Not lossless. With groups of one token it is `residual`.
    """
    target = (target_probs.gather(-1, group) * inside).sum(-1)
    draft = (draft_probs.gather(-1, group) * inside).sum(-1)
    accepted = uniforms * draft < target
    repaired = choose(residual_weights(draft_probs, target_probs), noise)
    return Verdict(torch.where(accepted, tokens, repaired), accepted)


def pooled(target_probs: torch.Tensor, similar: torch.Tensor, delta: float) -> torch.Tensor:
    """The probability [B, n] of tokens, each pooled with tokens similar to it (LANTERN).

    similar: [B, n, k] the token itself, then others by growing distance. Others are added for as
    long as their sum, the total variation between the pooled distribution and p, is below delta
    (MuLo-SD Eq. 3, 4).
    """
    probs = target_probs.gather(-1, similar)
    moved = F.pad(probs[..., 1:].cumsum(-1), (1, 0))
    return probs[..., 0] + moved.masked_fill(moved >= delta, 0).amax(-1)


def relaxed(target_probs: torch.Tensor, similar: torch.Tensor, delta: float) -> torch.Tensor:
    """The pooled distribution [..., V]: p of the others is moved to the token, as in `pooled`."""
    others = target_probs.gather(-1, similar[..., 1:])
    left = others.masked_fill(others.cumsum(-1) < delta, 0)
    sum_ = pooled(target_probs, similar, delta)[..., None]
    return target_probs.scatter(-1, similar, torch.cat((sum_, left), dim=-1))


def coupled(tokens: torch.Tensor, target_probs: torch.Tensor, noise: torch.Tensor) -> Verdict:
    """Sample again with the slot's fixed noise; a token counts as accepted if it did not change.
    """
    chosen = choose(target_probs, noise)
    return Verdict(chosen, chosen == tokens)


def strict(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
           uniforms: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Accept drafts up to the first rejection and repair that one (Leviathan et al.); lossless.

    tokens and draft_probs cover n drafts. target_probs and noise cover n + 1 positions; the last
    one is for the bonus token after n acceptances. Returns tokens [B, n + 1] and the accepted count
    [B]; tokens after position `count` are undefined.
    """
    accepted = _speculative(tokens, draft_probs, target_probs[:, :-1], uniforms)
    count = accepted.long().cumprod(-1).sum(-1)
    padded = F.pad(draft_probs, (0, 0, 0, 1))  # q = 0: its residual is p
    repaired = choose(residual_weights(padded, target_probs), noise)
    tokens = F.pad(tokens, (0, 1))
    ahead = torch.arange(tokens.shape[1], device=tokens.device) < count[:, None]
    return torch.where(ahead, tokens, repaired), count


def siblings(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
             uniforms: torch.Tensor, noise: torch.Tensor, present: torch.Tensor,
             similar: torch.Tensor | None = None,
             delta: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Accept the first fitting one of n drafts for the same position, or repair (Hawk Eq. 6).

    Lossless if each draft was sampled from its own q, which may depend on the drafts before it.
    After a rejection p becomes the normalised residual max(0, p - q). present [B, n] bool: False
    where there is no draft. target_probs and noise [B, V] are those of the one position. With
    similar [B, n, k] each draft is judged by its `relaxed` p instead (LANTERN). Returns the token
    [B] and the number of the accepted draft [B], n if none was.
    """
    count = tokens.shape[1]
    chosen = torch.full_like(tokens[:, 0], count)
    weights = target_probs
    for i in range(count):
        draft, index = draft_probs[:, i], tokens[:, i : i + 1]
        p = weights if similar is None else relaxed(weights, similar[:, i], delta)
        accepted = uniforms[:, i : i + 1] * draft.gather(1, index) < p.gather(1, index)
        here = present[:, i] & (chosen == count)
        chosen = torch.where(here & accepted[:, 0], i, chosen)
        rest = residual_weights(draft, p)
        weights = torch.where(here[:, None], rest / rest.sum(-1, keepdim=True), weights)
    repaired = choose(weights, noise)
    held = tokens.gather(1, chosen.clamp(max=count - 1)[:, None])[:, 0]
    return torch.where(chosen < count, held, repaired), chosen


def rejection_probs(draft_probs: torch.Tensor, target_probs: torch.Tensor) -> torch.Tensor:
    """The probability [B, n] that a draft sampled from q is rejected: q's total variation from p.
    """
    return (target_probs - draft_probs).clamp_(min=0).sum(-1)


def residual_weights(draft_probs: torch.Tensor, target_probs: torch.Tensor) -> torch.Tensor:
    """max(0, p - q) of Eq. 5, not normalised; p itself where rounding leaves no mass."""
    weights = (target_probs - draft_probs).clamp_(min=0)
    return torch.where(weights.amax(-1, keepdim=True) > 0, weights, target_probs)


def _speculative(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
                 uniforms: torch.Tensor) -> torch.Tensor:
    """Accept a draft with probability min(1, p / q) (Eq. 4)."""
    index = tokens[..., None]
    target = target_probs.gather(-1, index)[..., 0]
    return uniforms * draft_probs.gather(-1, index)[..., 0] < target
