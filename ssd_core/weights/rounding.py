"""Measures at loading how much rounding depends on the width of a pass, on the device that draws.

This takes about 50 ms for a small model, on a CPU or a CUDA card. A host that moves the weights to
the card only later measures then; unmeasured, nothing is guaranteed.
"""

from __future__ import annotations

from contextlib import suppress

import torch

from ..backbones.base import Backbone
from ..backbones.invariance import Widths, rounding
from ..engine.graphs import KEYS, rounded
from ..engine.threads import using_threads
from ..model.attention_kernel import one_attention_kernel

DEVICES = ("cpu", "cuda")
CELLS = 96  # about as many as the widest pass of a run on a card


def measure_rounding(backbone: Backbone, draws: torch.device) -> None:
    """Set `rounding` and `batch_invariant`, if the weights lie on the device that draws.

    A card without memory for it leaves them as they are.
    """
    if draws.type not in DEVICES or backbone.device.type != draws.type:
        return
    # On one thread, because a second may wait for a busy core; with the kernel that runs use.
    with using_threads(1), one_attention_kernel(draws), suppress(torch.OutOfMemoryError):
        backbone.rounding = max(rounding(backbone, widths) for widths in passes_on(backbone))
        backbone.batch_invariant = backbone.rounding == 0


def passes_on(backbone: Backbone, cells: int = CELLS) -> list[Widths]:
    """The passes to compare, over up to `cells` cells.

    On a card their sizes are rounded as in runs, and they read few keys or those of a whole
    picture, because kernels divide long sums otherwise.
    """
    if backbone.device.type == "cpu":
        return [Widths()]
    row, slots = backbone.grid.width, backbone.grid.slots
    return [Widths(row * max(2, cells // row), (1, 8, row, 2 * row), keys)
            for keys in (KEYS, rounded(slots + KEYS, KEYS))]
