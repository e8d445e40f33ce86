"""Load Picture: a saved PNG with everything it was drawn from, or the known part of one as text."""

from __future__ import annotations

from pathlib import Path

import folder_paths
import numpy as np
import torch
from comfy_api.v0_0_2 import io
from comfy_execution.graph_utils import ExecutionBlocker
from PIL import Image

from ..ssd_core.errors import SSDError
from ..ssd_core.output.picture_files import layers, opened
from .errors import readable_errors
from .folders import complaint_of_type, fingerprint
from .language import localized, localized_for_all
from .later import kept_rows
from .later import recipe as stored
from .types import EDIT, Run, RunType, TokenPictures

ENCODE = "use Load Image and Encode, which guesses the tokens from the pixels"


class LoadPicture(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_LoadPicture", display_name="Load Picture (SSD)", category=EDIT,
            description="Loads a picture that was saved with its recipe: its exact tokens, its "
                        "words, seed and size. A mask painted on it in ComfyUI's mask editor is "
                        "what the sampler redraws.",
            inputs=[io.Combo.Input("image", options=choices(), upload=io.UploadType.image,
                                   tooltip="A PNG from Save Image (SSD), the app or the command "
                                           "line, in ComfyUI's input folder. For the mask, choose "
                                           "'Open in MaskEditor' in the node's menu."),
                    io.String.Input(
                        "text", default="", multiline=True, optional=True, advanced=True,
                        tooltip="The kept part of a picture as text, used instead of 'image'. It "
                                "is filled in when a picture that was made outside ComfyUI is "
                                "dropped onto the page.")],
            outputs=[
                io.Image.Output(display_name="image", tooltip="The picture."),
                RunType.Output(display_name="run",
                               tooltip="Its own tokens, for 'picture' of SSD Sampler and of Edit "
                                       "by Words; Run Info tells its words, seed and size."),
                io.Mask.Output(display_name="mask",
                               tooltip="White where it is redrawn: what the mask editor painted, "
                                       "for 'mask' of SSD Sampler; else black.")],
            search_aliases=["load image", "restore", "recipe", "mask", "inpaint"])

    @classmethod
    def validate_inputs(cls, image: str | None = None, text: str | None = None) -> bool | str:
        if wrong := complaint_of_type(image):
            return localized_for_all(wrong)
        if image is None or text or folder_paths.exists_annotated_filepath(image):
            return True
        return localized_for_all(f"there is no file {image} in ComfyUI's input folder: upload the "
                                 "picture with the button on the node")

    @classmethod
    def fingerprint_inputs(cls, image: str | None = None, text: str | None = None) -> str:
        return "" if image is None or text else fingerprint(file_of(image))

    @classmethod
    @readable_errors
    def execute(cls, image: str, text: str) -> io.NodeOutput:
        if text:
            return of_text(text)
        path = file_of(image)
        with opened(path) as png:
            own, (colours, alpha) = stored.recipe_of(path, png), layers(png)
            pixels = np.array(colours)
        recipe = own or painted_over(path, pixels)
        check_whole(path, recipe, pixels)
        picture = torch.from_numpy(pixels)[None].float() / 255
        tokens = TokenPictures(stored.recipe_tokens(recipe)[None], recipe["backbone"]["name"],
                               recipe["backbone"]["sha256"], (recipe,), picture)
        return io.NodeOutput(picture, Run(tokens), mask_of(alpha))


def of_text(text: str) -> io.NodeOutput:
    """Tokens and mask of a text; the image blocks what is connected to it."""
    known, backbone = kept_rows.read(text)
    assert known.keep is not None
    tokens = TokenPictures(known.keep, backbone["name"], backbone["sha256"])
    redrawn = torch.zeros_like(known.keep[0]) if known.keep_mask is None else ~known.keep_mask
    unknown = ExecutionBlocker(localized("Load Picture has the tokens of a picture as text, not "
                                         "the picture itself"))
    return io.NodeOutput(unknown, Run(tokens), redrawn[None].float())


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
    sha256 = stored.pixels_sha256(pixels)
    for name in choices():
        file = Path(folder_paths.get_input_directory(), name)
        try:
            recipe = stored.read_recipe(file)
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
    if recipe.get("pixels_sha256") != stored.pixels_sha256(pixels):
        raise SSDError(f"{path}: it was changed since its recipe was written: {ENCODE}")
