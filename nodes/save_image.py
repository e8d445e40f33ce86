"""Save Image: PNGs that contain the workflow and the recipe."""

from __future__ import annotations

import json

import numpy as np
import torch
from comfy.cli_args import args
from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from .errors import readable_errors
from .filenames import new_file, place_for
from .later import recipe as stored
from .pictures import rgb
from .types import TOOLS, Run, RunType


class SaveImage(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_SaveImage", display_name="Save Image (SSD)", category=TOOLS,
            description="Saves PNGs that contain the workflow, the settings in a form that other "
                        "tools read, and the recipe with its tokens. ComfyUI's "
                        "--disable-metadata leaves all of this out.",
            inputs=[
                io.Image.Input("images", tooltip="The pictures to save."),
                RunType.Input("run", optional=True,
                              tooltip="The run that drew them, from which the recipe is made. "
                                      "Without it only the workflow is saved."),
                io.String.Input("filename_prefix", default="SSD", optional=True,
                                tooltip="Start of the file name. It may contain a folder and "
                                        "ComfyUI's patterns, such as %date:yyyy-MM-dd%, "
                                        "%SSD_Sampler.seed% and %width%."),
            ],
            outputs=[io.Image.Output(display_name="images", tooltip="The same pictures, for the "
                                                                    "nodes that follow.")],
            is_output_node=True, search_aliases=["save", "export png"])

    @classmethod
    @readable_errors
    def execute(cls, images: torch.Tensor, filename_prefix: str,
                run: Run | None = None) -> io.NodeOutput:
        pictures = rgb(images, "images")
        check_match(pictures, run)
        height, width = pictures.shape[1:3]
        folder, name, counter, subfolder = place_for(filename_prefix, width, height,
                                                     cls.hidden.prompt)
        saved = []
        for n, picture in enumerate(pictures):
            recipe, extra = ((None, {}) if args.disable_metadata
                             else chunks(cls.hidden, picture, run, n))
            own = name.replace("%batch_num%", str(n))
            with new_file(folder, own, counter, "png") as (file, counter):
                stored.save_png(file, picture, recipe, extra)
            saved.append({"filename": file.name, "subfolder": subfolder, "type": "output"})
        return io.NodeOutput(images, ui={"images": saved})


def check_match(images: torch.Tensor, run: Run | None) -> None:
    """Raise SSDError if the run has other pictures: the recipe would be wrong."""
    if run is None or not run.recipes:
        return
    if len(run.recipes) != len(images):
        raise SSDError(f"{len(images)} pictures, but the run drew {len(run.recipes)}: connect "
                       "images and run of the same node")


def chunks(hidden, picture: torch.Tensor, run: Run | None,
           n: int) -> tuple[dict | None, dict[str, str]]:
    """Recipe n, and further text chunks of a PNG.

    If another node changed the picture, the recipe has the hash of the decoded pixels, so that its
    tokens are not mistaken for those of the changed picture.
    """
    extra = {key: json.dumps(value) for key, value in (hidden.extra_pnginfo or {}).items()}
    if hidden.prompt:
        extra["prompt"] = json.dumps(hidden.prompt)
    if run is None or not run.recipes:
        return None, extra
    recipe, pixels = run.recipes[n], run.tokens.pixels
    decoded = None if pixels is None else stored.to_bytes(pixels[n])
    if decoded is not None and np.array_equal(decoded, stored.to_bytes(picture)):
        return recipe, extra
    sha256 = "" if decoded is None else stored.pixels_sha256(decoded)
    changed = {**recipe, "pixels_sha256": sha256}
    return None, {**extra, "parameters": stored.parameters(changed),
                  stored.CHUNK: json.dumps(changed)}
