"""From logits to the distribution that a token is sampled from.

This is the only place that applies guidance, temperature, top-k, top-p and min-p, in this order, in
fp32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .knobs import KnobRecord, derived, knob

BLOCK = 64  # numbers, see `likeliest`
COLD = 1e-5  # below this, logits could overflow; sampling is greedy long before


@dataclass(frozen=True)
class Sampling(KnobRecord):
    """How tokens are sampled; image i of a batch uses seed + i (mod 2^64). Seed -1: a new one.

    A variation has the seed of the picture that it varies; image i uses variation_seed + i.

    cfg 1 runs only the conditional branch. A temperature below 1e-5 counts as 0, because dividing
    by it could overflow.
    """

    seed: int = knob(0, "Random seed. Picture n of a batch uses seed + n.",
                     low=0, high=(1 << 64) - 1, visibility="basic", fresh=True)
    cfg: float = knob(None, "Guidance scale: higher values follow the prompt more closely; 1 "
                            "switches guidance off and halves the work.",
                      low=1, high=100, step=0.5, visibility="basic",
                      none_means="the model's own")
    temperature: float = knob(None, "Randomness of sampling: 0 always takes the likeliest token, 1 "
                                    "samples as the model was trained.",
                              low=0, high=100, step=0.05, none_means="the model's own")
    top_k: int = knob(None, "Sample from the k likeliest tokens only; 0 keeps all.",
                      low=0, none_means="the model's own")
    top_p: float = knob(None, "Sample from the likeliest tokens that make up this share of the "
                              "probability; 1 keeps all.",
                        above=0, high=1, step=0.01, none_means="the model's own")
    min_p: float = knob(None, "Leave out tokens less likely than this share of the likeliest one; "
                              "0 keeps all.",
                        low=0, high=1, step=0.01, none_means="the model's own")
    variation: float = knob(0.0, "Share of the cells that draw by the variation seed instead of "
                                 "the seed: 0.03 is subtle, 0.15 medium, 0.5 strong; 0 varies "
                                 "nothing.", low=0, high=1, step=0.01)
    variation_seed: int = knob(0, "Which variation: picture n of a batch uses this number + n, and "
                                  "all have the same seed. No effect if variation is 0.",
                               low=0, high=(1 << 64) - 1)

    @property
    def resolved_temperature(self) -> float:
        """The temperature; 1 if no backbone has given its own yet."""
        return 1.0 if self.temperature is None else self.temperature

    @property
    def resolved_top_k(self) -> int:
        """top_k; 0 if no backbone has given its own yet."""
        return self.top_k or 0

    @property
    def resolved_top_p(self) -> float:
        """top_p; 1 if no backbone has given its own yet."""
        return 1.0 if self.top_p is None else self.top_p

    def seeds(self, count: int) -> list[int]:
        """The seed of each picture."""
        return [self.offset_seed(i).seed for i in range(count)]

    def variation_seeds(self, count: int) -> list[int]:
        """The variation seed of each picture."""
        return [self.offset_seed(i).variation_seed for i in range(count)]

    def offset_seed(self, pictures: int) -> Sampling:
        """A copy whose seed lies `pictures` further on, for a batch within a longer run."""
        moved = "variation_seed" if self.variation else "seed"
        return derived(self, **{moved: (getattr(self, moved) + pictures) % (1 << 64)})


def guide(logits: torch.Tensor, cfg: float) -> torch.Tensor:
    """Combine [cond; uncond] float32 [2B, n, V] into uncond + cfg * (cond - uncond) [B, n, V]."""
    if cfg == 1:
        return logits
    cond, uncond = logits.chunk(2)
    return torch.lerp(uncond, cond, cfg)


def probabilities(logits: torch.Tensor, sampling: Sampling,
                  temperature_scale: float = 1.0) -> torch.Tensor:
    """Guided logits [..., V] -> probabilities; `temperature_scale` multiplies the temperature."""
    temperature = sampling.resolved_temperature * temperature_scale
    if temperature < COLD:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    if temperature != 1:
        logits = logits / temperature
    if 0 < sampling.resolved_top_k < logits.shape[-1]:
        least = logits.topk(sampling.resolved_top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < least, -math.inf)
    if sampling.resolved_top_p != 1:
        probs = top_p_filter(logits.softmax(-1), sampling.resolved_top_p)
        return min_p_filter(probs, sampling.min_p) if sampling.min_p else probs
    if sampling.min_p:  # before the softmax, which then normalises the rest
        limit = math.log(sampling.min_p) - 1e-6  # the likeliest token passes where min_p is 1
        logits = logits - logits.amax(-1, keepdim=True)
        logits = torch.threshold_(logits, limit, -math.inf)
    return logits.softmax(-1)


def top_p_filter(probs: torch.Tensor, top_p: float) -> torch.Tensor:
    """Keep the fewest tokens whose probabilities reach top_p, likeliest first, and renormalise."""
    ordered, index = probs.sort(dim=-1, descending=True)
    beyond = ordered.cumsum(-1) - ordered >= top_p
    beyond[..., 0] = False  # float32 rounds the smallest top_p to 0
    ordered = ordered.masked_fill(beyond, 0.0)
    return torch.zeros_like(probs).scatter_(-1, index, ordered / ordered.sum(-1, keepdim=True))


def min_p_filter(probs: torch.Tensor, min_p: float) -> torch.Tensor:
    """Drop tokens below min_p times the likeliest one's probability, and renormalise."""
    likely = probs.masked_fill(probs < min_p * probs.amax(-1, keepdim=True), 0.0)
    return likely / likely.sum(-1, keepdim=True)


def sample(weights: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """Sample tokens [...] with probabilities proportional to weights [..., V].

    noise: exponential variates [..., V] (the race), or one uniform variate [..., 1] (inverse CDF).
    """
    if noise.shape[-1] == weights.shape[-1]:
        return likeliest(weights / noise)
    cdf = weights.cumsum(-1)
    return torch.searchsorted(cdf, noise * cdf[..., -1:], right=True)[..., 0].clamp_(
        max=weights.shape[-1] - 1)


def likeliest(scores: torch.Tensor) -> torch.Tensor:
    """argmax [...] of scores [..., V]: finds the block, then the index within it.

    On a CPU argmax takes ten times as long as finding the largest value.
    """
    if scores.device.type != "cpu" or scores.shape[-1] % BLOCK:
        return scores.argmax(-1)
    blocks = scores.unflatten(-1, (-1, BLOCK))
    block = blocks.amax(-1).argmax(-1)[..., None]
    inside = blocks.gather(-2, block[..., None].expand(*block.shape, BLOCK))[..., 0, :]
    return block[..., 0] * BLOCK + inside.argmax(-1)
