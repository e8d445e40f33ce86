"""What a run asks of the rule that chooses the tokens of an edit (edits/rule.py)."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from ..model.noise import Slots


class CellRule(Protocol):
    """parent [B, slots + 1]: the old tokens; moved, bool of the same shape: the cells that
    the words free. branches: prompt ids of the new words without each thing. fed: slots before this
    were fed to these with the old tokens. state: the run's `DecodeState`.
    """

    parent: torch.Tensor
    moved: torch.Tensor
    branches: list[list[int]]
    fed: int

    def chosen(self, state: Any, slots: Slots) -> torch.Tensor:
        """Capturable: the tokens [B, n] of slots."""

    def chosen_closely(self, state: Any, slots: Slots) -> tuple[torch.Tensor, torch.Tensor]:
        """Capturable: the tokens [B, n], and which of them rounding may have decided."""

    def drafted(self, state: Any, logits: torch.Tensor, slots: Slots) -> torch.Tensor:
        """Capturable: the tokens [B, n] by guided logits [B, n, V] that are estimates."""

    def wanted(self) -> list[int]:
        """By slot: 1 where the words without a thing matter in any picture."""
