"""Requests with the fields of their drawing in one call."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ssd_core.engine.methods import Method
from ssd_core.model.sampling import Sampling
from ssd_core.output.drawing import Drawing
from ssd_core.runs.request import Request

OF_DRAWING = {f.name for f in fields(Drawing)}


def requested(backbone: Any, heads: Any = None, method: Method = Drawing.method,
              sampling: Sampling = Drawing.sampling, prompt: str = "", negative: str | None = None,
              **options: Any) -> Request:
    """options: further fields of the drawing, or of the request."""
    own = {name: options.pop(name) for name in OF_DRAWING & options.keys()}
    return Request(backbone, heads, Drawing(prompt, negative, method, sampling, **own), **options)
