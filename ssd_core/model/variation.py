"""Variations: a share of a picture's cells draws from the noise of another seed.

Which cells does not depend on any noise that draws, so every variation is a fair sample. A cell
that changes lets all after it change, in raster order; so the new ones are rare at the top, and the
rarer the smaller the share is. What a smaller share changes, a larger one with the same seed does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .grid import Grid
from .sampling import Sampling

STRENGTHS = {"subtle": 0.03, "medium": 0.15, "strong": 0.5}  # shares of the cells
CHANCES = 1 << 24  # a chance is a multiple of 1 / CHANCES


@dataclass(frozen=True)
class Variation:
    """seeds: of the other noise, one per picture. chances: of every slot, out of CHANCES."""

    seeds: Sequence[int]
    chances: Sequence[int]

    @classmethod
    def of(cls, sampling: Sampling, grid: Grid, pictures: int) -> Variation | None:
        """None for no variation."""
        if not sampling.variation:
            return None
        return cls(sampling.variation_seeds(pictures), chances(grid, sampling.variation))


def chances(grid: Grid, share: float) -> list[int]:
    """The chance of each slot to draw from the other noise; `share` on average, all of 1."""
    return [round(share * (share + (1 - share) * (2 * (slot // grid.width) + 1) / grid.rows)
                  * CHANCES) for slot in range(grid.slots)]
