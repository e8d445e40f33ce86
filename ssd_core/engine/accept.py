"""Acceptance rules: pure functions from drafts and probabilities to a verdict.

No model, cache or configuration in sight. Everywhere: tokens [B, n] int64, draft_probs (q of the
paper) and target_probs (p) [B, n, V] float32, uniforms [B, n] in [0, 1), noise [B, n, V]
exponential noise.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from ..model.sampling import choose


class Verdict(NamedTuple):
    """tokens [B, n]: accepted or repaired; accepted [B, n] bool."""

    tokens: torch.Tensor
    accepted: torch.Tensor


def residual(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
             uniforms: torch.Tensor, noise: torch.Tensor) -> Verdict:
    """SSD Eq. 4 and 5 at every position by itself: keeps each position's marginal."""
    accepted = _speculative(tokens, draft_probs, target_probs, uniforms)
    repaired = choose(residual_weights(draft_probs, target_probs), noise)
    return Verdict(torch.where(accepted, tokens, repaired), accepted)


def coupled(tokens: torch.Tensor, target_probs: torch.Tensor, noise: torch.Tensor) -> Verdict:
    """Choose again with the slot's fixed noise; accepted means that nothing changed."""
    chosen = choose(target_probs, noise)
    return Verdict(chosen, chosen == tokens)


def strict(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
           uniforms: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Leviathan et al.: accept up to the first rejection, repair that one; lossless.

    tokens and draft_probs hold n drafts, target_probs and noise n + 1 positions (the last for the
    free token after n acceptances). Returns tokens [B, n + 1] and the accepted count [B]; tokens
    beyond position `count` mean nothing.
    """
    accepted = _speculative(tokens, draft_probs, target_probs[:, :-1], uniforms)
    count = accepted.long().cumprod(-1).sum(-1)
    padded = torch.nn.functional.pad(draft_probs, (0, 0, 0, 1))  # nothing drafted: residual is p
    repaired = choose(residual_weights(padded, target_probs), noise)
    tokens = torch.nn.functional.pad(tokens, (0, 1))
    ahead = torch.arange(tokens.shape[1], device=tokens.device) < count[:, None]
    return torch.where(ahead, tokens, repaired), count


def residual_weights(draft_probs: torch.Tensor, target_probs: torch.Tensor) -> torch.Tensor:
    """Eq. 5 up to its normaliser; p itself where rounding left nothing of max(0, p - q)."""
    weights = (target_probs - draft_probs).clamp_(min=0)
    return torch.where(weights.amax(-1, keepdim=True) > 0, weights, target_probs)


def _speculative(tokens: torch.Tensor, draft_probs: torch.Tensor, target_probs: torch.Tensor,
                 uniforms: torch.Tensor) -> torch.Tensor:
    """Eq. 4: accept with probability min(1, p / q)."""
    index = tokens[..., None]
    target = target_probs.gather(-1, index)[..., 0]
    return uniforms * draft_probs.gather(-1, index)[..., 0] < target
