"""Load Backbone."""

from __future__ import annotations

from comfy_api.latest import io

from . import folders, weights
from .errors import noted
from .telling import tell
from .types import CATEGORY, BackboneType

NO_CARD = ("Offload is not used: it frees the memory of a graphics card, and ComfyUI runs on the "
           "CPU.")
DTYPES = ["auto", "bf16", "fp16", "fp32", "int8", "int4"]


class LoadBackbone(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_LoadBackbone", display_name="Load Backbone (SSD)", category=CATEGORY,
            description="Loads the model that draws a picture token by token: Janus-Pro, LlamaGen, "
                        "Lumina-mGPT, Anole, Emu3 and Tar from your own files, or 'postcard', "
                        "which is bundled and needs no download.",
            inputs=[
                io.Combo.Input("backbone", options=folders.shelf().choices(), default="postcard",
                               tooltip="Bundled backbones, those found in the model folder "
                                       "ssd_backbones, and known ones: choose one that is not "
                                       "here yet, and the node says how to get it."),
                io.Combo.Input("dtype", options=DTYPES, default="auto",
                               tooltip="Precision of the weights. auto = fp32 for small "
                                       "backbones, else bf16 (without units for it: fp16 on a "
                                       "card, fp32 on a CPU). int8 and int4 make layers smaller "
                                       "still, and need torchao."),
                io.Boolean.Input("offload", default=False, optional=True,  # came later
                                 tooltip="For cards with little memory: the model and its picture "
                                         "decoder need not be on the card at the same time."),
            ],
            outputs=[BackboneType.Output(display_name="backbone",
                                         tooltip="For the sampler, the schedules and the other "
                                                 "nodes of this pack.")],
            hidden=[io.Hidden.unique_id])

    @classmethod
    def validate_inputs(cls, backbone: str | None = None) -> bool | str:
        return folders.complaint_about_backbone(backbone) or True

    @classmethod
    def fingerprint_inputs(cls, backbone: str | None = None, **_) -> str:
        return folders.backbone_fingerprint(backbone)

    @classmethod
    @noted
    def execute(cls, backbone: str, dtype: str, offload: bool = False) -> io.NodeOutput:
        if offload and not weights.may_offload():
            tell(cls.hidden.unique_id, NO_CARD)
        return io.NodeOutput(weights.backbone(folders.backbone_path(backbone), dtype, offload))
