"""Start Seeds."""

from __future__ import annotations

import math

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.engine.methods import Method
from ..ssd_core.output.recipe import to_bytes
from ..ssd_core.output.sheet import Tile, contact_sheet
from . import inputs, outcome, requests, running, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .newer import search_aliases
from .types import PartialPictures, StartedType, image_of


class StartSeeds(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            node_id="SSD_StartSeeds", display_name="Start Seeds (SSD)",
            description="Draws only the top of several pictures, one for each seed, so that you "
                        "can choose before you wait. Pick takes those you like, and Finish draws "
                        "the rest of them.",
            inputs=[
                inputs.backbone(), inputs.heads(), inputs.method(),
                *inputs.subject(), inputs.quality(),
                io.Int.Input("count", default=6, min=2, max=16,
                             tooltip="How many pictures, with seeds seed, seed + 1 ..."),
                io.Float.Input("part", default=0.35, min=0.05, max=0.95, step=0.05,
                               tooltip="How much of each picture to draw, from the top: 0.35 is "
                                       "about a third."),
                inputs.preview(), *inputs.schedule(), *inputs.sampling()],
            outputs=[
                StartedType.Output(display_name="started", tooltip="For Pick, or for Finish."),
                io.Image.Output(display_name="overview",
                                tooltip="All tops in one picture, with their numbers for Pick."),
                io.Image.Output(display_name="images",
                                tooltip="The pictures as a batch; what is not drawn yet is grey.")],
            **search_aliases("contact sheet", "batch", "variations"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, prompt: str, negative: str, size: str,
                quality: str, count: int, part: float, preview: str,
                heads: weights.LoadedHeads | None = None, method: Method | None = None,
                expand: bool = False, **widgets: int | float | str | bool) -> io.NodeOutput:
        chosen, notes = requests.chosen_method(method, quality, widgets)
        request = requests.request_of(backbone, heads, chosen, requests.sampling_of(widgets),
                                      prompt, negative, size, pictures=count,
                                      named=method is not None, expand=expand)
        run = running.NodeRun(request, backbone, heads, notes)
        rows = min(math.ceil(part * request.grid.rows), request.grid.rows - 1)
        ui = cls.draw([run], preview, until=rows)
        started = PartialPictures(tuple(run.result.recipes()))
        overview = outcome.image_output([run], lambda images: overview_of(run, images[0]))
        return io.NodeOutput(started, overview, run.output, ui=ui)


def overview_of(run: running.NodeRun, images: torch.Tensor) -> torch.Tensor:
    """IMAGE [1, H, W, 3] of all tops, each with its number and seed."""
    tiles = [Tile(to_bytes(image), str(n), f"seed {seed}")
             for n, (image, seed) in enumerate(zip(images, run.request.seeds, strict=True), 1)]
    below = f"{run.result.rows} of {run.request.grid.rows} rows are drawn"
    image = contact_sheet(tiles, run.request.prompt, below, run.notes)
    return image_of([image])
