"""Load Draft Heads."""

from __future__ import annotations

from pathlib import Path

from comfy_api.v0_0_2 import io

from ..ssd_core.front.shelf import named
from . import folders, inputs, weights
from .errors import noted
from .language import said_to_all
from .newer import found_by
from .schedules import FAITHFUL
from .telling import tell
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
            **found_by("draft model", "speculative"))

    @classmethod
    def validate_inputs(cls, heads: str | None = None) -> bool | str:
        return said_to_all(folders.complaint_about_heads(heads) or "") or True

    @classmethod
    def fingerprint_inputs(cls, heads: str | None = None, **_) -> str:
        return folders.heads_fingerprint(heads)

    @classmethod
    @noted
    def execute(cls, backbone: weights.LoadedBackbone, heads: str) -> io.NodeOutput:
        path = folders.heads_path(heads, backbone.path, backbone.module.sha256)
        if heads == folders.AUTO:
            tell(cls.hidden.unique_id, told(path, backbone))
        return io.NodeOutput(path and weights.heads(path, backbone))


def told(path: Path | None, backbone: weights.LoadedBackbone) -> str:
    """What 'auto' chose, or why it chose nothing."""
    name = backbone.module.name
    if path is not None:
        return f"Draft heads: {named(path)}, made for {name}."
    misfit = folders.shelf().misfit(backbone.path, backbone.module.sha256)
    return (f"There are no draft heads for {name}{f' ({misfit})' if misfit else ''}. It draws "
            f"without: quality {FAITHFUL} of SSD Sampler needs none.")
