"""How many threads a run computes with: set for the run, restored after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Compute with so many threads inside; None leaves the number as it is."""
    before = torch.get_num_threads()
    if count is not None and count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
