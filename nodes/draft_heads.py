"""The draft heads of a loaded model: their list, and which of them a choice means."""

from __future__ import annotations

from pathlib import Path

from comfy_api.v0_0_2 import io

from ..ssd_core.output.choices import FAITHFUL
from ..ssd_core.weights.registry import named
from . import folders, weights


def heads() -> io.Input:
    return io.Combo.Input("heads", options=folders.heads_choices(), default=folders.AUTO,
                          optional=True,
                          tooltip="Draft heads, small networks that draft rows for the model to "
                                  "check. auto = this model's own if there are any; the node says "
                                  "which. none = no heads: Faithful, Balanced and Fast need none, "
                                  "and SSD drafts rows without them. The other entries are files "
                                  "in the model folder ssd_heads, with their model in brackets; "
                                  "heads of another model are refused when the node runs.")


def with_heads(backbone: weights.LoadedBackbone, selection: str
               ) -> tuple[weights.LoadedModel, str]:
    """The model with the selected heads, and a sentence on which these are."""
    path = folders.heads_path(selection, backbone.path, backbone.module.hashes)
    loaded = weights.LoadedModel(backbone, weights.heads(path, backbone) if path else None)
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
