"""How many processes were started together, by `accelerate launch` or torchrun. Without torch."""

from __future__ import annotations

import os

RANK, SIZE = "RANK", "WORLD_SIZE"


def launched() -> int:
    """Return how many processes were started together."""
    size = os.environ.get(SIZE, "1")
    return int(size) if size.isdecimal() else 1


def is_first() -> bool:
    """Whether this process writes files and prints; known before the team is joined."""
    return launched() == 1 or os.environ.get(RANK, "0") == "0"
