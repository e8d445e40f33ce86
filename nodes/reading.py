"""How far a file is read."""

from __future__ import annotations

import comfy.model_management as mm
from comfy.utils import ProgressBar


class Reading:
    """ComfyUI's progress bar while a file is read; it also checks for interrupts."""

    def __init__(self, total: int) -> None:
        """total: bytes of the file."""
        self.bar, self.read, self.total = ProgressBar(total), 0, total

    def __call__(self, count: int) -> None:
        mm.throw_exception_if_processing_interrupted()
        self.read = min(self.total, self.read + count)
        self.bar.update_absolute(self.read, self.total)
