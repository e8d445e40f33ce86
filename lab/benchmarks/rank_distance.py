"""How far drawn tokens are from a model's own samples: at least so many nats a token, by ranks.

A token's rank is the probability of all likelier tokens, and a random part of its own. Ranks of
AR's tokens are uniform, whatever the distributions. How far other ranks are from uniform bounds the
distance in nats (KL divergence) from AR's distribution from below. Unlike NLL it cannot be bought
by likely tokens.
"""

from __future__ import annotations

import torch

BINS = 20


def ranks(log: torch.Tensor, tokens: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """[n] within 0 and 1. log: [n, V] log-probabilities; tokens: [n]."""
    share = log.double().softmax(-1)
    own = share.gather(1, tokens[:, None])
    likelier = torch.where(share > own, share, 0).sum(-1)
    return likelier + own[:, 0] * torch.rand(len(tokens), generator=draw, dtype=torch.double)


def rank_distance(ranks: torch.Tensor) -> float:
    """Nats a token that these ranks are from uniform at least, less what chance alone brings."""
    share = torch.histc(ranks.float(), BINS, 0, 1) / ranks.numel()
    found = share[share > 0]
    return float((found * (BINS * found).log()).sum()) - (BINS - 1) / (2 * ranks.numel())
