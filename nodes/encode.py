"""Encode: an image as tokens, of which the sampler keeps a part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.backbones.prompts.two_panels import MAPS, SUBJECT
from ..ssd_core.backbones.sizes import TWO_PANELS
from . import inputs
from .errors import readable_errors
from .language import localized, show_text
from .later import fitting, panels, requests
from .pictures import CROP, EXTEND, FILL, FIT_WIDTH, REFUSE, rgb
from .types import EDIT, LoadedModel, Run, RunType

PICTURE = "a picture"
SIDES = f"{TWO_PANELS[0]}x{TWO_PANELS[1] // 2}"  # px of one panel


class Encode(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_Encode", display_name="Encode (SSD)", category=EDIT,
            description="Turns an image into tokens for 'picture' of SSD Sampler, which keeps a "
                        "part of it: what a mask leaves black, or its top rows. That part keeps "
                        "its own pixels. With Lumina-mGPT 2.0-Omni it also takes a depth map, an "
                        "edge map or a subject, to which the sampler draws the picture.",
            inputs=[
                inputs.model(tooltip="The model that will use the tokens."),
                io.Image.Input("image", tooltip="One or more pictures, from Load Image or another "
                                                "node."),
                io.Mask.Input("mask", optional=True,
                              tooltip="A mask painted on the picture, for example by Load Image: "
                                      "it comes out scaled and cut as the picture is."),
                use()],
            outputs=[RunType.Output(display_name="run",
                                    tooltip="The tokens, for 'picture' of SSD Sampler and of Edit "
                                            "by Words, and for Finish."),
                     io.Mask.Output(display_name="mask",
                                    tooltip="The mask of the fitted picture, for 'mask' of SSD "
                                            "Sampler; rows below the picture are white."),
                     io.Int.Output(display_name="rows", tooltip="How many rows of tokens the "
                                                                "picture fills; connect it to "
                                                                "keep_rows.")],
            hidden=[io.Hidden.unique_id, io.Hidden.prompt],
            search_aliases=["encode", "img2img", "vae encode", "outpaint", "image to tokens",
                            "controlnet", "depth", "canny", "edges", "subject"])

    @classmethod
    @readable_errors
    def execute(cls, model: LoadedModel, image: torch.Tensor, use: Mapping[str, Any],
                mask: torch.Tensor | None = None) -> io.NodeOutput:
        if (kind := use["use"]) != PICTURE:
            tokens, rows = panels.upper(model, image, kind, use.get("subject", ""))
            return io.NodeOutput(Run(tokens), torch.zeros(1, 64, 64), rows)
        fit = use.get("fit", FILL)
        tokens, rows, report = fitting.encoded(model, image, fit, requests.asked_size(use))
        assert tokens.pixels is not None
        all_rows, (height, width) = tokens.tokens.shape[1], tokens.pixels.shape[1:3]
        said = f"{report}; {rows} of {all_rows} rows of tokens are the picture's"
        white = torch.zeros(1, height, width) if mask is None else fitting.fitted_mask(
            mask, fitting.size_of(rgb(image)), (width, height), all_rows, fit)
        show_text(cls.hidden.unique_id, said)
        return io.NodeOutput(Run(tokens, report=localized(said)), white, rows)


def use() -> io.Input:
    """What the image is, with the settings of each use."""
    fit = io.Combo.Input(
        "fit", options=[FILL, CROP, EXTEND, FIT_WIDTH, REFUSE], default=FILL, optional=True,
        tooltip="scale and crop: scale it until it fills the size, then cut out the middle. crop: "
                "cut out the middle of a larger picture. extend below: accept a picture of the "
                "right width and less height; the sampler draws the rest. scale to width: scale it "
                "to the right width; the sampler draws missing rows, and rows too many are cut off "
                "at the bottom. refuse: accept only sizes that the model draws. The node says what "
                "it did.")
    subject = io.String.Input(
        "subject", default="", optional=True,
        tooltip="What the image shows, in a few words; the sampler's prompt says where it is.")
    settings: dict[str, list[io.Input]] = {
        PICTURE: [fit, *inputs.size("the picture's own if the model draws it, else the model's")],
        **{name: [] for name in MAPS}, SUBJECT: [subject]}
    return io.DynamicCombo.Input(
        "use", optional=True, extra_dict={"default": PICTURE},
        tooltip=f"What the image is. {PICTURE} = one of which a part stays. With Lumina-mGPT "
                "2.0-Omni: " + ", ".join(f"{name} = a {phrase}" for name, phrase in MAPS.items())
                + f", {SUBJECT} = a thing to draw again elsewhere; it is scaled and cropped to "
                f"{SIDES}, and of a batch the first is used.",
        options=[io.DynamicCombo.Option(name, made) for name, made in settings.items()])
