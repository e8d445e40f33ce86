"""Encode Image."""

from __future__ import annotations

import torch
from comfy_api.v0_0_2 import io

from . import inputs, weights
from .errors import readable_errors
from .fitting import CROP, EXTEND, FILL, FIT_WIDTH, REFUSE, encoded, fitted_mask, size_of
from .language import localized, show_text
from .newer import search_aliases
from .pictures import rgb
from .types import CATEGORY, TokensType


class EncodeImage(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_EncodeImage", display_name="Encode Image (SSD)", category=CATEGORY,
            description="Turns a picture into tokens, so that the sampler can keep a part of it: "
                        "what a mask leaves black, or its top rows. That part keeps its own "
                        "pixels. A picture of another size is scaled and cropped; 'fit' has "
                        "other ways.",
            inputs=[
                inputs.backbone(tooltip="The backbone that will use the tokens."),
                io.Image.Input("image", tooltip="One or more pictures."),
                io.Combo.Input("fit", options=[FILL, CROP, EXTEND, FIT_WIDTH, REFUSE],
                               default=FILL,
                               tooltip="scale and crop: scale it until it fills the size, then "
                                       "cut out the middle. crop: cut out the middle of a larger "
                                       "picture. extend below: accept a picture of the right "
                                       "width and less height; the sampler draws the rest. scale "
                                       "to width: scale it to the right width; the sampler draws "
                                       "missing rows, and rows too many are cut off at the "
                                       "bottom. refuse: accept only sizes that the backbone "
                                       "draws. The node says what it did."),
                inputs.size("the picture's own if the backbone draws it, else the backbone's",
                            optional=True),  # older workflows lack it
                io.Mask.Input("mask", optional=True,
                              tooltip="A mask painted on the picture, for example by Load Image: "
                                      "it comes out scaled and cut as the picture is."),
            ],
            outputs=[TokensType.Output(display_name="tokens", tooltip="For 'keep' and Decode "
                                                                      "Tokens."),
                     io.Int.Output(display_name="rows", tooltip="How many rows of tokens the "
                                                                "picture fills; connect it to "
                                                                "keep_rows."),
                     io.String.Output(display_name="report", tooltip="What was done."),
                     io.Mask.Output(display_name="mask",
                                    tooltip="The mask of the fitted picture, for 'mask' of SSD "
                                            "Sampler; rows below the picture are white.")],
            hidden=[io.Hidden.unique_id],
            **search_aliases("img2img", "vae encode", "outpaint"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, image: torch.Tensor,
                fit: str, size: str = inputs.AUTO_SIZE,
                mask: torch.Tensor | None = None) -> io.NodeOutput:
        tokens, rows, report = encoded(backbone, image, fit, size)
        assert tokens.pixels is not None
        all_rows, (height, width) = tokens.tokens.shape[1], tokens.pixels.shape[1:3]
        said = f"{report}; {rows} of {all_rows} rows of tokens are the picture's"
        white = torch.zeros(1, height, width) if mask is None else fitted_mask(
            mask, size_of(rgb(image)), (width, height), all_rows, fit)
        show_text(cls.hidden.unique_id, said)
        return io.NodeOutput(tokens, rows, localized(said), white)
