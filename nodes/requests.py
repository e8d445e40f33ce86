"""Turn a sampling node's widgets and links into a Request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import comfy.model_management as mm

from ..ssd_core.errors import SSDError
from ..ssd_core.model.grid import size_of
from ..ssd_core.model.sampling import Sampling
from ..ssd_core.output.drawing import Drawing
from ..ssd_core.output.knobs import sampling_knobs
from ..ssd_core.output.words import Words
from ..ssd_core.runs.request import Request
from .inputs import SIDES
from .types import LoadedModel
from .widgets import AUTO, values_of


def request_of(model: LoadedModel, drawing: Drawing, **options: Any) -> Request:
    """The request for a node's inputs; options: further fields of Request."""
    return Request(model.module, model.heads.module if model.heads else None, drawing,
                   device=mm.get_torch_device(), **options)


def typed_words(prompt: str, negative: str) -> Words:
    return Words(prompt, negative.strip() or None)


def sampling_of(widgets: Mapping[str, Any]) -> Sampling:
    """Sampling from the widgets."""
    return Sampling(**values_of(sampling_knobs(), widgets))


def asked_size(widgets: Mapping[str, Any]) -> tuple[int, int] | None:
    """(width, height) of the widgets; None for the model's own size.

    width and height, which links may bring, take the place of the list's "384x384".
    """
    sides = {side: widgets[side] for side in SIDES if widgets.get(side)}
    if not sides:
        size = widgets.get("size", AUTO)
        return None if size == AUTO else size_of(size)
    if len(sides) == 1:
        [(side, value)] = sides.items()
        other = next(other for other in SIDES if other != side)
        raise SSDError(f"{side} {value}: set {other}, too, or set {side} to 0")
    width, height = sides.values()
    return width, height
