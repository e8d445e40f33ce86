"""Encode Image."""

from __future__ import annotations

import torch
from comfy_api.latest import io

from ..ssd_core.errors import SSDError
from ..ssd_core.weights.figures import figures_of
from ..ssd_core.weights.memory import pixel_bytes
from . import inputs, weights
from .errors import noted
from .types import CATEGORY, TokenPictures, TokensType

REFUSE, CROP, EXTEND = "refuse", "crop", "extend below"


class EncodeImage(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_EncodeImage", display_name="Encode Image (SSD)", category=CATEGORY,
            description="Turns a picture into tokens, so that the sampler can keep its top rows "
                        "and draw new ones below. It never resizes: put a scale node before it.",
            inputs=[
                inputs.backbone(tooltip="The backbone that will use the tokens."),
                io.Image.Input("image", tooltip="One or more pictures."),
                io.Combo.Input("fit", options=[REFUSE, CROP, EXTEND], default=REFUSE,
                               tooltip="refuse: accept only sizes that the backbone draws. crop: "
                                       "cut out the middle of a larger picture. extend below: "
                                       "accept a picture of the right width and less height; the "
                                       "sampler draws the rest."),
            ],
            outputs=[TokensType.Output(display_name="tokens", tooltip="For 'keep' and Decode "
                                                                      "Tokens."),
                     io.Int.Output(display_name="rows", tooltip="How many rows of tokens the "
                                                                "picture fills; connect it to "
                                                                "keep_rows."),
                     io.String.Output(display_name="report", tooltip="What was done.")])

    @classmethod
    @noted
    def execute(cls, backbone: weights.LoadedBackbone, image: torch.Tensor,
                fit: str) -> io.NodeOutput:
        there = image.shape[2], image.shape[1]
        module = backbone.module.resized(there if there in backbone.module.sizes else None)
        fitted, rows, report = fitted_to(image[..., :3], module.size, module.grid.rows, fit)
        with weights.codec_resident(backbone, pixel_bytes(figures_of(module))):
            tokens = torch.cat([module.encode(one[None]).cpu() for one in fitted])
        return io.NodeOutput(TokenPictures.of(module, tokens), rows, f"{report}; {rows} of "
                             f"{module.grid.rows} rows of tokens are the picture's")


def fitted_to(image: torch.Tensor, size: tuple[int, int], rows: int,
              fit: str) -> tuple[torch.Tensor, int, str]:
    """Pictures [B, H, W, 3] of `size` (width, height), the rows they fill, and what was done."""
    (width, height), (there_height, there_width) = size, image.shape[1:3]
    there = f"{there_width}x{there_height}"
    if (there_width, there_height) == size:
        return image, rows, f"encoded {there} as it is"
    if fit == CROP and there_width >= width and there_height >= height:
        left, top = (there_width - width) // 2, (there_height - height) // 2
        return (image[:, top : top + height, left : left + width], rows,
                f"cut the middle {width}x{height} out of {there}")
    if fit == EXTEND and there_width == width and there_height < height:
        below = image[:, -1:].expand(-1, height - there_height, -1, -1)
        return (torch.cat((image, below), 1), there_height * rows // height,
                f"encoded {there}, the last line repeated below it")
    raise SSDError(f"the picture is {there}, the backbone takes {width}x{height}: scale it first, "
                   f"or choose fit '{CROP}' for a larger picture, '{EXTEND}' for one of width "
                   f"{width} and less height")
