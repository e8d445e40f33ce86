"""Load Picture: a saved PNG with everything it was drawn from."""

from __future__ import annotations

from pathlib import Path

import folder_paths
import numpy as np
import torch
from comfy_api.v0_0_2 import io
from PIL import Image

from ..ssd_core.errors import SSDError
from ..ssd_core.output.picture_files import layers, opened
from ..ssd_core.output.recipe import (
    pixels_sha256,
    read_recipe,
    recipe_of,
    recipe_tokens,
)
from .errors import readable_errors
from .folders import fingerprint
from .language import localized_for_all
from .newer import search_aliases
from .types import CATEGORY, TokenPictures, TokensType

ENCODE = "use Load Image and Encode Image, which guesses the tokens from the pixels"
SizeType = io.Custom("COMBO")  # the sampler's `size` takes it


class LoadPicture(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_LoadPicture", display_name="Load Picture (SSD)", category=CATEGORY,
            description="Loads a picture that was saved with its recipe: its exact tokens, its "
                        "words, seed and size. A mask painted on it in ComfyUI's mask editor is "
                        "what the sampler redraws.",
            inputs=[io.Combo.Input("image", options=choices(), upload=io.UploadType.image,
                                   tooltip="A PNG from Save Image (SSD), the app or the command "
                                           "line, in ComfyUI's input folder. For the mask, choose "
                                           "'Open in MaskEditor' in the node's menu.")],
            outputs=[
                io.Image.Output(display_name="image", tooltip="The picture."),
                TokensType.Output(display_name="tokens",
                                  tooltip="Its own tokens, for 'keep' and Decode Tokens."),
                io.Mask.Output(display_name="mask", tooltip="What the mask editor painted, for "
                                                            "'mask' of SSD Sampler; else black."),
                io.String.Output(display_name="prompt", tooltip="Its prompt, as it was typed."),
                io.String.Output(display_name="negative", tooltip="Its negative prompt."),
                io.Int.Output(display_name="seed", tooltip="Its seed."),
                SizeType.Output(display_name="size", tooltip="Its width x height, for 'size'.")],
            **search_aliases("load image", "restore", "recipe", "mask", "inpaint"))

    @classmethod
    def validate_inputs(cls, image: str | None = None) -> bool | str:
        if image is None or folder_paths.exists_annotated_filepath(image):
            return True
        return localized_for_all(f"there is no file {image} in ComfyUI's input folder: upload the "
                                 "picture with the button on the node")

    @classmethod
    def fingerprint_inputs(cls, image: str | None = None) -> str:
        return "" if image is None else fingerprint(file_of(image))

    @classmethod
    @readable_errors
    def execute(cls, image: str) -> io.NodeOutput:
        path = file_of(image)
        with opened(path) as png:
            own, (colours, alpha) = recipe_of(path, png), layers(png)
            pixels = np.array(colours)
        recipe = own or painted_over(path, pixels)
        check_whole(path, recipe, pixels)
        picture = torch.from_numpy(pixels)[None].float() / 255
        width, height = recipe["size"]
        tokens = TokenPictures(recipe_tokens(recipe)[None], recipe["backbone"]["name"],
                               recipe["backbone"]["sha256"], (recipe,), picture)
        return io.NodeOutput(picture, tokens, mask_of(alpha), recipe["prompt"],
                             recipe["negative"] or "", recipe["seed"], f"{width}x{height}")


def choices() -> list[str]:
    """The PNGs of ComfyUI's input folder."""
    folder = Path(folder_paths.get_input_directory())
    return sorted(file.name for file in folder.glob("*.png") if file.is_file())


def file_of(image: str) -> Path:
    return Path(folder_paths.get_annotated_filepath(image))


def mask_of(alpha: Image.Image | None) -> torch.Tensor:
    """A MASK [1, H, W], white where the picture is transparent; as Load Image makes it."""
    if alpha is None:
        return torch.zeros(1, 64, 64)
    return 1 - torch.from_numpy(np.array(alpha))[None].float() / 255


def painted_over(path: Path, pixels: np.ndarray) -> dict:
    """The recipe of the picture in the input folder that has these pixels.

    The mask editor saves the pixels with the mask, but without the recipe.
    """
    sha256 = pixels_sha256(pixels)
    for name in choices():
        file = Path(folder_paths.get_input_directory(), name)
        try:
            recipe = read_recipe(file)
        except SSDError:
            continue
        if recipe.get("pixels_sha256") == sha256:
            return recipe
    raise SSDError(f"{path}: this PNG has no settings in it, and neither has a picture with its "
                   f"pixels in ComfyUI's input folder: {ENCODE}")


def check_whole(path: Path, recipe: dict, pixels: np.ndarray) -> None:
    """Raise SSDError if the recipe's tokens are not those of these pixels."""
    if "stopped_rows" in recipe:
        raise SSDError(f"{path}: only {recipe['stopped_rows']} of its rows were drawn: drop it "
                       "onto ComfyUI's page and draw it again")
    if recipe.get("pixels_sha256") != pixels_sha256(pixels):
        raise SSDError(f"{path}: it was changed since its recipe was written: {ENCODE}")
