"""Kept cells in a preview: they stand from the start, and the free ones appear between them."""

from __future__ import annotations

import numpy as np
import torch


class Standing:
    """own: the pixels uint8 [B, H, W, 3] of the kept picture. known: bool [B or 1, R, C]."""

    def __init__(self, own: np.ndarray, known: torch.Tensor) -> None:
        pictures, height, width = own.shape[:3]
        tall, wide = height // known.shape[1], width // known.shape[2]
        whole = known.expand(pictures, -1, -1).cpu().numpy()
        self.own, self.known = own, whole.repeat(tall, 1).repeat(wide, 2)

    def strips(self, top: int) -> np.ndarray:
        """The lines from `top` on, [B, h, W, 4]; free cells are transparent."""
        alpha = np.where(self.known, 255, 0).astype(np.uint8)[..., None]
        return np.concatenate((self.own, alpha), -1)[:, top:]

    def over(self, strips: np.ndarray, top: int) -> np.ndarray:
        """Strips [B, h, W, 3] whose first line is `top`, with the kept cells as they are."""
        lines = slice(top, top + strips.shape[1])
        return np.where(self.known[:, lines, :, None], self.own[:, lines], strips)
