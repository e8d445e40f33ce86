"""The draft heads of a loaded model: which of them a choice means."""

from __future__ import annotations

from pathlib import Path

from ..ssd_core.output.choices import FAITHFUL
from ..ssd_core.weights.registry import named
from . import folders, weights
from .types import LoadedModel


def with_heads(backbone: weights.LoadedBackbone, selection: str
               ) -> tuple[LoadedModel, str]:
    """The model with the selected heads, and a sentence on which these are."""
    path = folders.heads_path(selection, backbone.path, backbone.module.hashes)
    loaded = LoadedModel(backbone, weights.heads(path, backbone) if path else None)
    return loaded, heads_line(path, selection, backbone)


def heads_line(path: Path | None, selection: str, backbone: weights.LoadedBackbone) -> str:
    """A sentence on the draft heads, or on why 'auto' found none."""
    name = backbone.module.name
    if path is not None:
        return f"Draft heads: {named(path)}, made for {name}."
    if selection == folders.NONE:
        return "Draft heads: none."
    misfit = folders.registry().heads_mismatch(backbone.path, backbone.module.hashes)
    return (f"There are no draft heads for {name}{f' ({misfit})' if misfit else ''}. It draws "
            f"without: method {FAITHFUL} of SSD Sampler needs none.")
