"""Choices of the race that could go another way if the logits were a little different.

`slack` says how far two logits of a cell may move against each other. The race takes the largest
p / E, whose logarithm is logit / temperature - log E, but for a term that all tokens share. So two
scores move against each other by a factor of at most exp(slack / temperature). At temperature 0 the
largest logit wins, and only its lead over the next one counts. A filter counts too: a token that
would win must be clear of the limit above which tokens pass.
"""

from __future__ import annotations

import math

import torch

from .sampling import COLD, Sampling, likeliest

ROUNDED = 1e-6  # relative error of a score, as computed from the logits
WIDEST = 60.0  # exponents from here on are compared with scores too small for fp32


def sample_with_ties(logits: torch.Tensor, probs: torch.Tensor, noise: torch.Tensor,
                     sampling: Sampling, slack: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens [...] that `sample` takes, and which samples [...] the slack leaves open.

    logits: guided [..., V]; probs: their `probabilities`; noise: exponential variates [..., V].
    """
    if sampling.resolved_temperature < COLD or sampling.min_p == 1:
        sampled = likeliest(probs / noise)
        return sampled, (logits >= logits.amax(-1, keepdim=True) - slack).sum(-1) > 1
    slack = slack / sampling.resolved_temperature + ROUNDED
    scores = probs / noise
    sampled = likeliest(scores)
    factor = math.exp(-slack) if slack < WIDEST else 0.0
    undecided = (scores >= scores.gather(-1, sampled[..., None]) * factor).sum(-1) > 1
    if sampling.min_p or by_rank(sampling, logits.shape[-1]):
        undecided |= ties_with_filtered(logits, noise, sampling, slack, sampled[..., None])
    return sampled, undecided


def ties_with_filtered(logits: torch.Tensor, noise: torch.Tensor, sampling: Sampling, slack: float,
                       sampled: torch.Tensor) -> torch.Tensor:
    """Which samples [...] depend on a token that may or may not pass the filters.

    sampled: [..., 1]; slack: of logits divided by the temperature.
    """
    if sampling.resolved_temperature != 1:
        logits = logits / sampling.resolved_temperature
    lower, upper = limits(logits, sampling, slack)
    lead = (upper - logits.gather(-1, sampled) + slack).exp()  # of any token in doubt, at most
    wins = noise <= noise.gather(-1, sampled) * lead
    return ((logits >= lower) & (logits < upper) & wins).any(-1)


def by_rank(sampling: Sampling, codes: int) -> bool:
    """Whether top-k or top-p leaves out tokens."""
    return sampling.resolved_top_p != 1 or 0 < sampling.resolved_top_k < codes


def limits(logits: torch.Tensor, sampling: Sampling,
           slack: float) -> tuple[torch.Tensor, torch.Tensor]:
    """[..., 1] each: no token below the first passes the filters; all from the second on do.

    logits: guided and divided by the temperature, as slack is.
    """
    log_min_p = math.log(sampling.min_p) if sampling.min_p else -math.inf
    lower = upper = logits.amax(-1, keepdim=True) + log_min_p
    if by_rank(sampling, logits.shape[-1]):
        lowest, left_out = lowest_and_next(logits, sampling, slack)
        lower, upper = torch.maximum(lower, lowest), torch.maximum(upper, left_out)
    return lower - slack, upper + slack


def lowest_and_next(logits: torch.Tensor, sampling: Sampling,
                    slack: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The lowest logit that top-k and top-p keep and the highest that they leave out, [..., 1].

    The mass that top-p keeps may be off by `slack`.
    """
    ordered = logits.sort(-1, descending=True).values
    late = torch.zeros_like(ordered, dtype=torch.bool)
    if sampling.resolved_top_k:
        late[..., sampling.resolved_top_k:] = True
    probs = ordered.masked_fill(late, -math.inf).softmax(-1)
    before = probs.cumsum(-1) - probs
    top_p = sampling.resolved_top_p if sampling.resolved_top_p != 1 else math.inf
    lowest = ordered.masked_fill(late | (before >= top_p + slack), math.inf)
    left_out = ordered.masked_fill(~late & (before < top_p - slack), -math.inf)
    return lowest.amin(-1, keepdim=True), left_out.amax(-1, keepdim=True)
