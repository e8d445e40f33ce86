"""LANTERN (Jang et al., 2410.03355): drafts are accepted by the probability of codes like them.

Many codes look alike, so no single code is likely. The p of a draft is pooled over its nearest
codes in the codec's codebook, while the pooled distribution stays within a total variation of
`delta` from p. A rejected draft is repaired from the residual of the pooled distribution. Drafts
are a chain from the horizontal heads, as in `strict`, or Hawk's tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ....backbones.base import Backbone
from ....model.grid import Grid
from ..base import codes_pooled, require_codebook, variation_bound
from .hawk import Hawk, width
from .tree import Descent, Fed, descend


@dataclass(frozen=True)
class Lantern(Hawk):
    """Hawk's drafts under a relaxed rule; with delta 0 or similar 1 it equals `hawk`."""

    vertical_width: int = width(0, "from each cell above")
    similar: int = codes_pooled(100)
    delta: float = variation_bound(0.1)
    name: ClassVar[str] = "lantern"
    guarantee: ClassVar[str] = "relaxed"

    def guarantee_on(self, grid: Grid) -> str:
        return self.guarantee if self.delta and self.similar > 1 else "same distribution"

    def check_backbone(self, backbone: Backbone) -> None:
        require_codebook(self, backbone)

    def sample_path(self, fed: Fed, candidates: torch.Tensor, draft_probs: torch.Tensor) -> Descent:
        similar = fed.state.codebook.similar(candidates, self.similar)
        return descend(fed, candidates, draft_probs, similar, self.delta)
