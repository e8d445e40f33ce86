"""A layer's products in the dtype of a backbone and in 8 bits: which is the fastest here."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import torch

from ..backbones.base import Backbone
from ..errors import SSDError
from ..measure.tables import table
from ..weights.eight_bits import EIGHT_BITS, Times, numbers, timed
from ..weights.model_size import SHORT_NAMES
from ..weights.quantize import quantiser

ROWS = (1, 4)  # of the picture, in a pass; beside a single cell


def times_by_dtype(backbone: Backbone, branches: int) -> dict[str, Times]:
    """Milliseconds of one layer's feed-forward products, by dtype and by cells of a pass.

    The matrices have a layer's shapes. Leaves out what the device or the installation lacks.
    """
    row = backbone.grid.width
    widths = (1, *(row * count for count in ROWS))
    plain = backbone.dtype if backbone.dtype in SHORT_NAMES else torch.float32
    found = {SHORT_NAMES[plain]: timed(matrices(backbone, plain), widths, branches, plain)}
    for kind in EIGHT_BITS:
        inputs = torch.bfloat16 if kind == "fp8" else plain
        with suppress(SSDError, RuntimeError):  # not offered here
            become = quantiser(kind, backbone.device)
            quantised = [become(weight) for weight in matrices(backbone, inputs)]
            found[kind] = timed(quantised, widths, branches, inputs)
    return found


def matrices(backbone: Backbone, dtype: torch.dtype) -> list[torch.Tensor]:
    """Matrices with the shapes of a layer's feed-forward network."""
    s = backbone.decoder.shape
    return [numbers(*shape, backbone.device, dtype)
            for shape in ((2 * s.ffn, s.hidden), (s.hidden, s.ffn))]


def fastest_eight_bits(found: Mapping[str, Times]) -> str | None:
    """The 8-bit dtype whose passes of a row and more take the least time; None if there is none."""
    offered = [kind for kind in EIGHT_BITS if kind in found]
    return min(offered, key=lambda kind: sum(list(found[kind].values())[1:]), default=None)


def dtypes_line(found: Mapping[str, Times]) -> str:
    best = fastest_eight_bits(found)
    chosen = f" Of the 8-bit dtypes {best} is the fastest here for rows." if best else ""
    return ("The products of one layer's feed-forward network, with guidance if the backbone uses "
            f"it; int8 includes any rounding of activations.{chosen}")


def dtypes_table(found: Mapping[str, Times]) -> str:
    widths = next(iter(found.values()))
    rows = [[str(cells), *(f"{each[cells]:.3f}" for each in found.values())] for cells in widths]
    return table(["cells", *(f"{name}, ms" for name in found)], rows)
