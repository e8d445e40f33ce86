"""Sizes of passes, rounded so that a run has few different sizes.

A graph is captured for each size, and some libraries plan for each new size.
"""

from __future__ import annotations

CELLS = (1, 2, 8)  # besides these, whole rows
KEYS = 256  # a pass reads a multiple of this many cache slots
SLOTS = 64  # the cache has a multiple of this many, so prompts of any length make few sizes


def rounded(count: int, step: int) -> int:
    """The smallest multiple of `step` that is at least `count`."""
    return -(-count // step) * step


def rounded_cells(count: int, row: int) -> int:
    """The smallest size that holds `count` cells; row: slots of a row of the picture."""
    return min(size for size in (*CELLS, rounded(count, row)) if size >= count)


def rounded_keys(stop: int, slots: int) -> int:
    """The number of cache slots that a pass reads if it needs those before `stop`."""
    return min(rounded(stop, KEYS), slots)
