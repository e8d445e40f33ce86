"""How visible the tokenizer's grid is in a picture."""

from __future__ import annotations

import numpy as np

from ssd_core.backbones.postcard.words.world import CELL


def grid_ratio(picture: np.ndarray) -> float:
    """The mean step between neighbouring px on borders of cells, divided by that within cells.

    picture: uint8 [H, W, 3]. 1 where no grid shows; 0/0, as in one even colour, counts as 1.
    """
    borders = within = 0.0
    for axis in (0, 1):
        steps = np.abs(np.diff(picture.astype(np.float32), axis=axis)).mean((1 - axis, 2))
        border = np.arange(1, len(steps) + 1) % CELL == 0
        borders += float(steps[border].mean())
        within += float(steps[~border].mean())
    return borders / within if within else 1.0
