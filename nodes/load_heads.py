"""Load Draft Heads."""

from __future__ import annotations

from comfy_api.latest import io

from . import folders, inputs, weights
from .errors import noted
from .types import CATEGORY, HeadsType


class LoadHeads(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_LoadHeads", display_name="Load Draft Heads (SSD)", category=CATEGORY,
            description="Loads the small networks that draft cells and rows ahead of the "
                        "backbone. Heads fit exactly one backbone.",
            inputs=[
                inputs.backbone(tooltip="The backbone that these heads were made for."),
                io.Combo.Input("heads", options=folders.heads_choices(), default=folders.BUNDLED,
                               tooltip="'bundled' = those that come with the backbone, 'none' = "
                                       "no heads, else a file of the model folder ssd_heads with "
                                       "its backbone in brackets. Heads of another backbone are "
                                       "refused when the node runs."),
            ],
            outputs=[HeadsType.Output(display_name="heads",
                                      tooltip="For SSD Sampler and Race.")])

    @classmethod
    def validate_inputs(cls, heads: str | None = None) -> bool | str:
        return folders.complaint_about_heads(heads) or True

    @classmethod
    def fingerprint_inputs(cls, heads: str | None = None, **_) -> str:
        return folders.fingerprint(folders.heads_files().get(heads))

    @classmethod
    @noted
    def execute(cls, backbone: weights.LoadedBackbone, heads: str) -> io.NodeOutput:
        path = folders.heads_path(heads, backbone.path)
        return io.NodeOutput(path and weights.heads(path, backbone))
