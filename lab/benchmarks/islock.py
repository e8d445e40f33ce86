"""Edits by ISLock's rule (Anchor Token Matching, arXiv 2504.10434), written from its description.

Of K samples of a cell under the new words the one is taken whose code is nearest to the old
picture's token. Fewer of the K are looked at the further decoding has come. One pass a token.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.presets import resolve_sampling
from ssd_core.engine.decode import alone, prompt_branches
from ssd_core.engine.methods import AR
from ssd_core.engine.region import by_slot
from ssd_core.engine.state import DecodeState
from ssd_core.engine.threads import using_threads
from ssd_core.model.noise import NoiseField, Slots
from ssd_core.model.sampling import Sampling, sample

SAMPLES = 8  # K
OTHER_SEEDS = 1 << 32  # the samples of a cell draw from the fields of seeds so far apart


class NearestSample:
    """Asked by a run as `Rule` is (engine/edits/rule.py); parent: tokens [1, R, C]."""

    def __init__(self, backbone: Backbone, parent: torch.Tensor, sampling: Sampling) -> None:
        self.parent = by_slot(backbone.grid, parent)
        self.branches: list[list[int]] = []
        seeds = [sampling.seed + n * OTHER_SEEDS for n in range(SAMPLES)]
        self.noise = NoiseField(seeds, backbone.grid.slots + 1, backbone.codes, backbone.device)

    def sampled(self, state: DecodeState, slots: Slots) -> torch.Tensor:
        """The tokens [1, 1] of a slice of one slot."""
        assert isinstance(slots, slice)
        probs = state.probs(state.backbone.logits(state.hidden_at(slots)), slots)
        seen = max(int(SAMPLES * (1 - slots.start / state.slots)), 1)
        samples = sample(probs.expand(SAMPLES, -1, -1), self.noise.fixed_at(slots))[:seen]
        away = state.codebook.distances(self.parent[:, slots])[0, 0, samples[:, 0]]
        return samples[away.argmin()][None]


@dataclass(frozen=True)
class Matched:
    """The edited tokens [1, R, C], and what they took."""

    tokens: torch.Tensor
    passes: int
    seconds: float


def islock(backbone: Backbone, prompt: str, parent: torch.Tensor, seed: int,
           threads: int) -> Matched:
    """Edit one picture by the rule. parent: its tokens [1, R, C]."""
    sampling = resolve_sampling(Sampling(seed=seed), backbone.preset)
    with alone(backbone.device), using_threads(threads):
        begun = time.perf_counter()
        rule = NearestSample(backbone, parent, sampling)
        branches = prompt_branches(backbone, [prompt], None, sampling.cfg)
        state = DecodeState(backbone, branches, 1, sampling, None, rule=rule)
        state.prefill()
        for _ in AR().steps(state):
            pass
        seconds = time.perf_counter() - begun
        return Matched(state.picture().clone(), state.passes, seconds)
