"""Image to Tokens."""

from __future__ import annotations

from typing import Any

import torch
from comfy_api.v0_0_2 import io

from . import inputs, requests, weights
from .errors import readable_errors
from .fitting import CROP, EXTEND, FILL, FIT_WIDTH, REFUSE, encoded, fitted_mask, size_of
from .language import localized, show_text
from .newer import search_aliases
from .pictures import rgb
from .types import EDIT, TokensType


class ImageToTokens(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_ImageToTokens", display_name="Image to Tokens (SSD)", category=EDIT,
            description="Turns a picture into tokens, so that the sampler can keep a part of it: "
                        "what a mask leaves black, or its top rows. That part keeps its own "
                        "pixels. A picture of another size is scaled and cropped; 'fit' has "
                        "other ways.",
            inputs=[
                inputs.model(tooltip="The model that will use the tokens."),
                io.Image.Input("image", tooltip="One or more pictures."),
                io.Combo.Input("fit", options=[FILL, CROP, EXTEND, FIT_WIDTH, REFUSE],
                               default=FILL,
                               tooltip="scale and crop: scale it until it fills the size, then "
                                       "cut out the middle. crop: cut out the middle of a larger "
                                       "picture. extend below: accept a picture of the right "
                                       "width and less height; the sampler draws the rest. scale "
                                       "to width: scale it to the right width; the sampler draws "
                                       "missing rows, and rows too many are cut off at the "
                                       "bottom. refuse: accept only sizes that the model "
                                       "draws. The node says what it did."),
                *inputs.size("the picture's own if the model draws it, else the model's"),
                io.Mask.Input("mask", optional=True,
                              tooltip="A mask painted on the picture, for example by Load Image: "
                                      "it comes out scaled and cut as the picture is."),
            ],
            outputs=[TokensType.Output(display_name="tokens", tooltip="For 'picture' of SSD "
                                                                      "Sampler, and for Tokens to "
                                                                      "Image."),
                     io.Int.Output(display_name="rows", tooltip="How many rows of tokens the "
                                                                "picture fills; connect it to "
                                                                "keep_rows."),
                     io.String.Output(display_name="report", tooltip="What was done."),
                     io.Mask.Output(display_name="mask",
                                    tooltip="The mask of the fitted picture, for 'mask' of SSD "
                                            "Sampler; rows below the picture are white.")],
            hidden=[io.Hidden.unique_id],
            **search_aliases("encode", "img2img", "vae encode", "outpaint"))

    @classmethod
    @readable_errors
    def execute(cls, model: weights.LoadedModel, image: torch.Tensor, fit: str,
                mask: torch.Tensor | None = None, **size: Any) -> io.NodeOutput:
        tokens, rows, report = encoded(model, image, fit, requests.asked_size(size))
        assert tokens.pixels is not None
        all_rows, (height, width) = tokens.tokens.shape[1], tokens.pixels.shape[1:3]
        said = f"{report}; {rows} of {all_rows} rows of tokens are the picture's"
        white = torch.zeros(1, height, width) if mask is None else fitted_mask(
            mask, size_of(rgb(image)), (width, height), all_rows, fit)
        show_text(cls.hidden.unique_id, said)
        return io.NodeOutput(tokens, rows, localized(said), white)
