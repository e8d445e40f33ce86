"""Encode Image."""

from __future__ import annotations

import torch
from comfy_api.v0_0_2 import io
from torch.nn.functional import interpolate

from ..ssd_core.errors import SSDError
from ..ssd_core.weights.figures import ModelSize
from ..ssd_core.weights.memory import MemoryEstimate
from . import inputs, weights
from .errors import readable_errors
from .language import localized
from .newer import search_aliases
from .requests import asked_size
from .types import CATEGORY, TokenPictures, TokensType

REFUSE, CROP, EXTEND = "refuse", "crop", "extend below"
FILL, FIT_WIDTH = "scale and crop", "scale to width"


class EncodeImage(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_EncodeImage", display_name="Encode Image (SSD)", category=CATEGORY,
            description="Turns a picture into tokens, so that the sampler can keep a part of it: "
                        "what a mask leaves black, or its top rows. That part keeps its own "
                        "pixels. It resizes only if you choose so in 'fit'.",
            inputs=[
                inputs.backbone(tooltip="The backbone that will use the tokens."),
                io.Image.Input("image", tooltip="One or more pictures."),
                io.Combo.Input("fit", options=[REFUSE, CROP, EXTEND, FILL, FIT_WIDTH],
                               default=REFUSE,
                               tooltip="refuse: accept only sizes that the backbone draws. crop: "
                                       "cut out the middle of a larger picture. extend below: "
                                       "accept a picture of the right width and less height; the "
                                       "sampler draws the rest. scale and crop: scale it until it "
                                       "fills the size, then cut out the middle. scale to width: "
                                       "scale it to the right width; the sampler draws missing "
                                       "rows, and rows too many are cut off at the bottom."),
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
            mask, size_of(image), (width, height), all_rows, fit)
        return io.NodeOutput(tokens, rows, localized(said), white)


def encoded(backbone: weights.LoadedBackbone, image: torch.Tensor, fit: str,
            size: str = inputs.AUTO_SIZE) -> tuple[TokenPictures, int, str]:
    """The tokens of pictures, the rows that these fill, and a note on how they were fitted."""
    picture_size = size_of(image)
    drawn = picture_size if picture_size in backbone.module.sizes else None
    module = backbone.module.resized(asked_size(size) or drawn)
    fitted, rows, report = fitted_to(image[..., :3], module.size, module.grid.rows, fit)
    room = MemoryEstimate(ModelSize.of(module)).pixels
    with weights.codec_resident(backbone, room):
        tokens = torch.cat([module.encode(picture[None]).cpu() for picture in fitted])
    return TokenPictures.of(module, tokens, pixels=fitted.cpu()), rows, report


def fitted_mask(mask: torch.Tensor, picture: tuple[int, int], size: tuple[int, int], rows: int,
                fit: str) -> torch.Tensor:
    """A MASK [B, h, w] of pictures of size `picture`, fitted as they are; [B, H, W]."""
    on_picture = interpolate(mask[:, None].float(), picture[::-1], mode="area")
    fitted, filled, _ = fitted_to(on_picture.movedim(1, -1), size, rows, fit)
    fitted = fitted[..., 0].clone()
    fitted[:, filled * size[1] // rows :] = 1
    return fitted


def fitted_to(image: torch.Tensor, size: tuple[int, int], rows: int,
              fit: str) -> tuple[torch.Tensor, int, str]:
    """Fit pictures to `size` (width, height).

    Returns the pictures [B, H, W, 3], the rows of tokens that they fill, and a note on what was
    done. Raises SSDError if `fit` does not suit their size.
    """
    picture_size = size_of(image)
    if picture_size == size:
        return image, rows, f"encoded {named(picture_size)} as it is"
    if fit == FILL or fit == FIT_WIDTH:
        image, note = scaled(image, size, fit)
        fitted, rows, done = fitted_to(image, size, rows, CROP if fit == FILL else EXTEND)
        return fitted, rows, f"{note}, {done}"
    (width, height), (picture_width, picture_height) = size, picture_size
    if fit == CROP and picture_width >= width and picture_height >= height:
        left, top = (picture_width - width) // 2, (picture_height - height) // 2
        return (image[:, top : top + height, left : left + width], rows,
                f"cut the middle {named(size)} out of {named(picture_size)}")
    if fit == EXTEND and picture_width == width and picture_height < height:
        below = image[:, -1:].expand(-1, height - picture_height, -1, -1)
        return (torch.cat((image, below), 1), picture_height * rows // height,
                f"encoded {named(picture_size)}, the last line repeated below it")
    raise SSDError(f"the picture is {named(picture_size)}, the backbone takes {named(size)}: "
                   f"choose fit '{FILL}' or '{FIT_WIDTH}'; '{CROP}' suits a larger picture, "
                   f"'{EXTEND}' one of width {width} and less height")


def scaled(image: torch.Tensor, size: tuple[int, int], fit: str) -> tuple[torch.Tensor, str]:
    """Scale pictures to fill `size`, or to its width and at most its height; also return a note."""
    (width, height), (picture_width, picture_height) = size, size_of(image)
    factor = width / picture_width
    if fit == FILL:
        factor = max(factor, height / picture_height)
    to = max(width, round(picture_width * factor)), max(1, round(picture_height * factor))
    if fit == FILL:
        to = to[0], max(height, to[1])
    pixels = interpolate(image.movedim(-1, 1), to[::-1], mode="bicubic", antialias=True)
    image = pixels.movedim(1, -1).clamp(0, 1)
    note = f"scaled {named((picture_width, picture_height))} to {named(to)}"
    return (image[:, :height], note) if fit == FIT_WIDTH else (image, note)


def size_of(image: torch.Tensor) -> tuple[int, int]:
    return image.shape[2], image.shape[1]


def named(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
