"""Modelled seconds of a pass on a graphics card that is not here.

A pass lasts as long as its launches, as reading weights and half of the cache at a realistic
share of the card's bandwidth, or as its products at a realistic share of its data sheet's,
whichever takes longest.
"""

from __future__ import annotations

from dataclasses import dataclass

from ssd_core.model.grid import Grid
from ssd_core.weights.memory import WEIGHT_BYTES
from ssd_core.weights.model_size import ModelSize

LAUNCH = 5e-6  # seconds
LAUNCHES = 45  # of a pass with graphs: results/launches.md
# Shares of the stated bandwidth (what gpt-fast reaches with 7B on an A100) and products.
REACHED, COMPUTED = 0.69, 0.4


@dataclass(frozen=True)
class Card:
    """bandwidth: bytes a second; products: of bf16, a second. Both as the maker states them."""

    name: str
    bandwidth: float
    products: float


def roofline(launches: int, *seconds: float) -> float:
    """Modelled seconds of a pass: the longest of its launches, its reads and its products."""
    return max(launches * LAUNCH, *seconds)


def pass_seconds(model: ModelSize, grid: Grid, card: Card, cells: int,
                 dtype: str = "bf16") -> float:
    """Seconds of a pass over so many cells of each branch, in the middle of a picture."""
    shape, branches = model.shape, 1 + (model.preset.cfg != 1)
    weights = model.matrices + model.image_head
    cached = shape.layers * shape.kv_heads * shape.head_dim * (model.prompt_slots + grid.slots)
    # Half of the keys and of the values, two bytes each
    reads = WEIGHT_BYTES[dtype] * weights + 2 * branches * cached
    return roofline(LAUNCHES, reads / (REACHED * card.bandwidth),
                    2 * weights * cells * branches / (COMPUTED * card.products))
