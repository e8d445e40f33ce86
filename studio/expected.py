"""About how long a picture would take by a model that was never run here: what its passes read."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cache

import torch

from ssd_core.measure.machine import copy_bandwidth
from ssd_core.weights.catalogue import KnownBackbone
from ssd_core.weights.memory import WEIGHT_BYTES
from ssd_core.weights.model_size import ModelSize

from .words import say

REPEATS = 3
MINUTE, HOUR = 60.0, 3600.0  # s


def picture_seconds(row: KnownBackbone, dtype: str, device: torch.device) -> float | None:
    """Seconds of a pass for each cell; fewer passes are quicker. None if the device does not tell.

    A model that leaves its pixels to another one takes longer, which nobody knows.
    """
    model, speed = ModelSize.of(row), bandwidth(device)
    if speed is None or row.family == "GLM-Image":
        return None
    each = WEIGHT_BYTES[dtype if dtype in WEIGHT_BYTES else model.dtype]
    return model.grid.cells * (model.matrices + model.image_head) * each / speed


@cache
def bandwidth(device: torch.device) -> float | None:
    """Bytes a second that this device reads; None if there is no room to measure it."""
    with suppress(RuntimeError):  # out of memory
        return copy_bandwidth(device, REPEATS)
    return None


def time_text(seconds: float | None, language: str) -> str:
    """A time with one significant figure; empty if it is unknown."""
    if seconds is None:
        return ""
    unit, length = (("hours", HOUR) if seconds >= HOUR else ("minutes", MINUTE)
                    if seconds >= MINUTE else ("seconds", 1.0))
    return say(language, f"expected_{unit}", count=one_figure(seconds / length))


def one_figure(number: float) -> str:
    size = 10 ** math.floor(math.log10(max(number, 1)))
    return f"{max(1, round(number / size) * size)}"
