"""From logits to the distribution that a token is drawn from.

Order, in fp32 and in this one place: guidance, temperature, top-k, top-p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..errors import SSDError
from .knobs import check_types
from .noise import NEWEST, VERSIONS

COLD = 1e-5  # logits divided by less may overflow; nothing but the likeliest is drawn long before


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; image i of a batch uses seed + i (mod 2^64).

    cfg None takes the backbone's own, 1 runs one branch; temperature 0, or one below 1e-5, where
    numbers would overflow, takes the likeliest token; top_k 0 and top_p 1 switch the filters off.
    noise_version is no knob: it is there to draw the picture of an old recipe again.
    """

    seed: int = 0
    cfg: float | None = None
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    noise_version: int = NEWEST

    def __post_init__(self) -> None:
        check_types(self)
        wrong = next((f"{name} {getattr(self, name)}: {rule}" for name, rule, ok in (
            ("seed", "must lie in 0 .. 2^64 - 1", 0 <= self.seed < 1 << 64),
            ("cfg", "must lie in 1 .. 100", self.cfg is None or 1 <= self.cfg <= 100),
            ("temperature", "must lie in 0 .. 100", 0 <= self.temperature <= 100),
            ("top_k", "must be 0 (off) or more", self.top_k >= 0),
            ("top_p", "must lie above 0, at most 1 (off)", 0 < self.top_p <= 1),
            ("noise_version", f"must lie in 1 .. {NEWEST}", self.noise_version in VERSIONS))
            if not ok), None)
        if wrong:
            raise SSDError(wrong)

    def seeds(self, count: int) -> list[int]:
        return [(self.seed + i) % (1 << 64) for i in range(count)]


def guide(logits: torch.Tensor, cfg: float) -> torch.Tensor:
    """Rows [cond; uncond] float32 [2B, n, V] -> uncond + cfg * (cond - uncond) [B, n, V]."""
    if cfg == 1:
        return logits
    cond, uncond = logits.chunk(2)
    return torch.lerp(uncond, cond, cfg)


def probabilities(logits: torch.Tensor, sampling: Sampling, sharpen: float = 1.0) -> torch.Tensor:
    """Guided logits [..., V] -> probabilities; `sharpen` multiplies the temperature."""
    temperature = sampling.temperature * sharpen
    if temperature < COLD:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    if temperature != 1:
        logits = logits / temperature
    if 0 < sampling.top_k < logits.shape[-1]:
        least = logits.topk(sampling.top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < least, -math.inf)
    probs = logits.softmax(-1)
    return probs if sampling.top_p == 1 else nucleus(probs, sampling.top_p)


def nucleus(probs: torch.Tensor, top_p: float) -> torch.Tensor:
    """Keep the fewest likeliest tokens whose mass reaches top_p, and rescale them to one."""
    ordered, index = probs.sort(dim=-1, descending=True)
    ordered = ordered.masked_fill(ordered.cumsum(-1) - ordered >= top_p, 0.0)
    return torch.zeros_like(probs).scatter_(-1, index, ordered / ordered.sum(-1, keepdim=True))


def choose(probs: torch.Tensor, race: torch.Tensor) -> torch.Tensor:
    """Sample tokens [...] from probs [..., V] with exponential noise of the same shape."""
    return (probs / race).argmax(-1)
