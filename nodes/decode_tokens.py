"""Decode Tokens."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from . import inputs, running, weights
from .errors import readable_errors
from .newer import search_aliases
from .types import CATEGORY, TokenPictures, TokensType


class DecodeTokens(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_DecodeTokens", display_name="Decode Tokens (SSD)", category=CATEGORY,
            description="Turns tokens into pixels with the backbone that made them. Use it when "
                        "the sampler ran out of memory in its last step.",
            inputs=[inputs.backbone(tooltip="The backbone that made the tokens."),
                    TokensType.Input("tokens", tooltip="From SSD Sampler or Encode Image.")],
            outputs=[io.Image.Output(display_name="images",
                                     tooltip="One picture for each entry of the batch.")],
            **search_aliases("vae decode"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, tokens: TokenPictures) -> io.NodeOutput:
        codes = tokens.for_backbone(backbone.module)
        with weights.codec_resident(backbone, running.pixel_room(backbone.module, codes)):
            return io.NodeOutput(running.images_of(backbone.module, codes))
