"""Load Backbone."""

from __future__ import annotations

from comfy_api.latest import io

from . import folders, weights
from .errors import noted
from .types import CATEGORY, BackboneType

DTYPES = ["auto", "bf16", "fp16", "fp32"]


class LoadBackbone(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_LoadBackbone", display_name="Load Backbone (SSD)", category=CATEGORY,
            description="Loads the model that draws a picture token by token. 'postcard' is "
                        "bundled and needs no download.",
            inputs=[
                io.Combo.Input("backbone", options=folders.backbone_choices(), default="postcard",
                               tooltip="Bundled backbones, those found in the model folder "
                                       "ssd_backbones, and well-known ones that belong there."),
                io.Combo.Input("dtype", options=DTYPES, default="auto",
                               tooltip="Precision of the weights. auto = fp32 for small "
                                       "backbones; bf16 and fp16 halve their memory."),
            ],
            outputs=[BackboneType.Output(display_name="backbone",
                                         tooltip="For the sampler, the schedules and the other "
                                                 "nodes of this pack.")])

    @classmethod
    def validate_inputs(cls, backbone: str | None = None) -> bool | str:
        return folders.complaint_about_backbone(backbone) or True

    @classmethod
    def fingerprint_inputs(cls, backbone: str | None = None, **_) -> str:
        return folders.fingerprint(folders.backbones().get(backbone))

    @classmethod
    @noted
    def execute(cls, backbone: str, dtype: str) -> io.NodeOutput:
        return io.NodeOutput(weights.backbone(folders.backbone_path(backbone), dtype))
