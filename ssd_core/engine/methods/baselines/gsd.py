"""Grouped speculative decoding (GSD; So et al., 2508.07747): SJD that tests groups of tokens.

Many codes look alike, so no single code is likely. A draft is accepted by the probability of its
group: tokens of nearly the same probability whose codes are close in the codec's codebook. This
accepts more drafts, but the distribution is no longer AR's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ....backbones.base import Backbone
from ....model.grid import Grid
from ... import accept
from ...state import DecodeState
from ..base import knob, require_codebook
from .resampling import Resampling


@dataclass(frozen=True)
class GSD(Resampling):
    """Verifies a draft together with tokens like it."""

    group: int = knob(7, "How many tokens on either side of a draft, in order of probability, may "
                         "belong to its group; 0 makes it sjd.", low=0, high=1000,
                      visibility="basic")
    probability_distance: float = knob(
        0.15, "Largest difference in probability within a group.", low=0, high=1, step=0.01)
    code_distance: float = knob(
        0.5, "Largest distance between codes within a group, as a share of the mean distance from "
             "the draft to all codes.", low=0, high=10, step=0.05)
    name: ClassVar[str] = "gsd"
    guarantee: ClassVar[str] = "relaxed"

    def guarantee_on(self, grid: Grid) -> str:
        return self.guarantee if self.group else "same distribution"

    def check_backbone(self, backbone: Backbone) -> None:
        require_codebook(self, backbone)

    def acceptance_rule(self, state: DecodeState, tokens: torch.Tensor, draft_probs: torch.Tensor,
                        target_probs: torch.Tensor, uniforms: torch.Tensor,
                        noise: torch.Tensor) -> accept.AcceptResult:
        group, near = neighbours(tokens, target_probs, self.group)
        distance = state.codebook.distances(tokens)
        alike = distance.gather(-1, group) <= self.code_distance * distance.mean(-1, keepdim=True)
        difference = target_probs.gather(-1, group) - target_probs.gather(-1, tokens[..., None])
        inside = near & alike & (difference.abs() <= self.probability_distance)
        inside |= group == tokens[..., None]
        return accept.grouped(tokens, draft_probs, target_probs, uniforms, noise, group, inside)


def neighbours(tokens: torch.Tensor, probs: torch.Tensor,
               reach: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens [B, n, 2 * reach + 1] nearest to each token in the order of probs [B, n, V].

    Also returns which of them exist, bool of the same shape: no token precedes the likeliest.
    """
    order = probs.argsort(dim=-1, descending=True, stable=True)
    rank = (order == tokens[..., None]).long().argmax(-1, keepdim=True)
    ranks = rank + torch.arange(-reach, reach + 1, device=tokens.device)
    exists = (ranks >= 0) & (ranks < probs.shape[-1])
    return order.gather(-1, ranks.clamp(0, probs.shape[-1] - 1)), exists
