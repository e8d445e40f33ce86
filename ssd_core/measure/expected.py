"""About how long a picture would take by a model that was never run here: what its passes read."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cache

import torch

from ..weights.catalogue import KnownBackbone
from ..weights.memory import WEIGHT_BYTES
from ..weights.model_size import ModelSize
from .machine import copy_bandwidth

REPEATS = 3
UNITS = {"hours": 3600.0, "minutes": 60.0, "seconds": 0.0}  # s from which on a unit is used


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


def in_units(seconds: float) -> tuple[str, str]:
    """(number with one significant figure, unit) of a time, such as ("40", "seconds")."""
    unit = next(unit for unit, least in UNITS.items() if seconds >= least)
    number = seconds / (UNITS[unit] or 1)
    size = 10 ** math.floor(math.log10(max(number, 1)))
    return f"{max(1, round(number / size) * size)}", unit
