"""Start Pictures."""

from __future__ import annotations

import math
from typing import Any

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.engine.methods import Method
from ..ssd_core.output.drawing import Drawing
from ..ssd_core.output.recipe import to_bytes
from ..ssd_core.output.sheet import Tile, contact_sheet
from . import inputs, outcome, requests, running, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .newer import search_aliases
from .types import DRAW, PartialPictures, StartedType, image_of


class StartPictures(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            DRAW, node_id="SSD_StartPictures", display_name="Start Pictures (SSD)",
            description="Draws only the top of several pictures, one for each seed, so that you "
                        "can choose before you wait. Pick Pictures takes those you like, and "
                        "Finish Pictures draws the rest of them.",
            inputs=[
                inputs.model(), inputs.method(),
                *inputs.subject(), inputs.quality(),
                io.Int.Input("count", default=6, min=2, max=16,
                             tooltip="How many pictures, with seeds seed, seed + 1 ..."),
                io.Float.Input("part", default=0.35, min=0.05, max=0.95, step=0.05,
                               tooltip="How much of each picture to draw, from the top: 0.35 is "
                                       "about a third."),
                *inputs.schedule(), inputs.preview(), *inputs.sampling()],
            outputs=[
                StartedType.Output(display_name="started",
                                   tooltip="For Pick Pictures, or for Finish Pictures."),
                io.Image.Output(display_name="overview",
                                tooltip="All tops in one picture, with their numbers for Pick "
                                        "Pictures."),
                io.Image.Output(display_name="images",
                                tooltip="The pictures as a batch; what is not drawn yet is grey.")],
            **search_aliases("seeds", "contact sheet", "batch", "variations"))

    @classmethod
    @readable_errors
    def execute(cls, model: weights.LoadedModel, prompt: str, negative: str, quality: str,
                count: int, part: float, preview: bool, complete_prompt: bool,
                method: Method | None = None, **widgets: Any) -> io.NodeOutput:
        chosen, notes = requests.chosen_method(method, quality, widgets)
        drawing = Drawing(prompt, requests.typed_words(prompt, negative).negative, chosen,
                          requests.sampling_of(widgets), requests.asked_size(widgets), count,
                          complete_prompt)
        request = requests.request_of(model, drawing, named=method is not None)
        run = running.NodeRun(request, model, notes)
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
