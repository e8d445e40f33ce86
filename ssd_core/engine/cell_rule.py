"""What a run asks of the rule that samples the tokens of an edit (edits/rule.py)."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from ..model.noise import Slots


class CellRule(Protocol):
    """The rule of an edit, as a run sees it. The `state` of its methods is the run's DecodeState.

    parent: [B, slots + 1] int64, the tokens of the old picture.
    mask: [B, slots + 1] bool, True for cells that the new words redraw.
    branches: prompt ids of the new words without each object.
    fed: the slots before this one were fed to `branches` with the old tokens.
    """

    parent: torch.Tensor
    mask: torch.Tensor
    branches: list[list[int]]
    fed: int

    def sampled(self, state: Any, slots: Slots) -> torch.Tensor:
        """Capturable: the tokens [B, n] of slots."""

    def sampled_with_ties(self, state: Any, slots: Slots) -> tuple[torch.Tensor, torch.Tensor]:
        """Capturable: the tokens [B, n], and which of them rounding may have decided."""

    def drafted(self, state: Any, logits: torch.Tensor, slots: Slots) -> torch.Tensor:
        """Capturable: the tokens [B, n] by guided logits [B, n, V] that are estimates."""

    def wanted(self) -> list[int]:
        """By slot: 1 where the words without an object matter in any picture."""
