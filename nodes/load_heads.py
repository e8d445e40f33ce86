"""Load Draft Heads."""

from __future__ import annotations

from pathlib import Path

from comfy_api.v0_0_2 import io

from ..ssd_core.weights.registry import named
from . import folders, inputs, weights
from .errors import readable_errors
from .language import localized_for_all, show_text
from .newer import search_aliases
from .schedules import FAITHFUL
from .types import CATEGORY, HeadsType


class LoadHeads(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_LoadHeads", display_name="Load Draft Heads (SSD)", category=CATEGORY,
            description="Loads draft heads: small networks that draft cells and rows, which the "
                        "backbone then checks. Heads fit exactly one backbone.",
            inputs=[
                inputs.backbone(tooltip="The backbone that these heads were made for."),
                io.Combo.Input("heads", options=folders.heads_choices(), default=folders.AUTO,
                               tooltip="'auto' = this backbone's own heads if there are any; the "
                                       "node says which. 'bundled' = the heads beside the "
                                       "backbone. 'none' = no heads. The other entries are files "
                                       "in the model folder ssd_heads, with their backbone in "
                                       "brackets. Heads of another backbone are refused when the "
                                       "node runs."),
            ],
            outputs=[HeadsType.Output(display_name="heads",
                                      tooltip="For SSD Sampler and Race.")],
            hidden=[io.Hidden.unique_id],
            **search_aliases("draft model", "speculative"))

    @classmethod
    def validate_inputs(cls, heads: str | None = None) -> bool | str:
        return localized_for_all(folders.complaint_about_heads(heads) or "") or True

    @classmethod
    def fingerprint_inputs(cls, heads: str | None = None, **_) -> str:
        return folders.heads_fingerprint(heads)

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, heads: str) -> io.NodeOutput:
        path = folders.heads_path(heads, backbone.path, backbone.module.sha256)
        if heads == folders.AUTO:
            show_text(cls.hidden.unique_id, auto_choice(path, backbone))
        return io.NodeOutput(path and weights.heads(path, backbone))


def auto_choice(path: Path | None, backbone: weights.LoadedBackbone) -> str:
    """A sentence on which heads 'auto' chose, or on why it chose none."""
    name = backbone.module.name
    if path is not None:
        return f"Draft heads: {named(path)}, made for {name}."
    misfit = folders.shelf().heads_mismatch(backbone.path, backbone.module.sha256)
    return (f"There are no draft heads for {name}{f' ({misfit})' if misfit else ''}. It draws "
            f"without: quality {FAITHFUL} of SSD Sampler needs none.")
