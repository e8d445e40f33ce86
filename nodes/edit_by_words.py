"""Edit by Words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.engine.edits.words import Edit
from ..ssd_core.errors import SSDError
from ..ssd_core.model.grid import Grid
from ..ssd_core.model.knobs import specs
from ..ssd_core.model.sampling import Sampling
from ..ssd_core.output.drawing import Drawing, sampling_of
from ..ssd_core.output.picture_files import redrawn_cells
from ..ssd_core.output.unknown import require_something_known
from ..ssd_core.output.words import Words, drawn_words
from . import inputs
from .drawing import DrawingNode, outputs
from .errors import readable_errors
from .later import changed_words, fitting, look, outcome, requests, running, weights
from .pictures import FILL
from .types import EDIT, LoadedModel, Run, RunType, TokenPictures
from .widgets import widget

KNOBS = {spec.name: spec for spec in specs(Edit)}


class EditByWords(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            EDIT, node_id="SSD_EditByWords", display_name="Edit by Words (SSD)",
            description="Changes a picture by its words. What the new words change is drawn anew; "
                        "everything else keeps its tokens and its own pixels.",
            inputs=[
                inputs.model(),
                RunType.Input("picture", optional=True,
                              tooltip="The picture to edit, from 'run' of a sampler or of Load "
                                      "Picture."),
                io.Image.Input("image", optional=True,
                               tooltip="Any picture without tokens; it is scaled and cropped to "
                                       "a size of the model, and needs 'old prompt'."),
                io.Mask.Input("mask", optional=True,
                              tooltip="Where the words may act: white. Without a mask, "
                                      "everywhere."),
                io.String.Input("prompt", multiline=True, dynamic_prompts=True,
                                default="a blue house by a river",
                                tooltip="What the picture should show: its old prompt with the "
                                        "words changed that are to change."),
                io.String.Input("old_prompt", display_name="old prompt", multiline=True,
                                default="", optional=True,
                                tooltip="What the picture shows now. Empty = the prompt that the "
                                        "tokens were drawn from."),
                inputs.seed(), widget(KNOBS["reach"]), widget(KNOBS["hold"]), inputs.preview()],
            outputs=[
                *outputs(),
                io.Mask.Output(display_name="mask", tooltip="White where cells were drawn anew."),
                io.Image.Output(display_name="map",
                                tooltip="How much the new words change each cell: the brighter, "
                                        "the more.")],
            search_aliases=["instruct", "edit", "inpaint", "img2img", "prompt to prompt"])

    @classmethod
    @readable_errors
    def execute(cls, model: LoadedModel, prompt: str, old_prompt: str, seed: int,
                reach: float, hold: bool, preview: bool, picture: Run | None = None,
                image: torch.Tensor | None = None, mask: torch.Tensor | None = None
                ) -> io.NodeOutput:
        source = pictures_of(model, picture, image)
        runs = [running.NodeRun(request, model) for request in requests_of(
            model, source, mask, prompt, old_prompt, seed, reach=reach, hold=hold)]
        ui = cls.draw(runs, preview, together=False)
        return io.NodeOutput(*outcome.of(runs), redrawn(runs), maps(model, runs), ui=ui)


def pictures_of(model: LoadedModel, picture: Run | None,
                image: torch.Tensor | None) -> TokenPictures:
    """The pictures to edit; those of an image are encoded."""
    if picture is not None:
        return picture.tokens
    if image is None:
        raise SSDError("there is no picture to edit: connect a run to 'picture', or an image")
    return fitting.encoded(model, image, FILL)[0]


def requests_of(model: LoadedModel, source: TokenPictures,
                mask: torch.Tensor | None, prompt: str, old_prompt: str, seed: int,
                **knobs: Any) -> list:
    """A request for each picture: pictures of a batch may have different old words."""
    codes, made = source.for_backbone(model.module), []
    known = None if mask is None else ~redrawn_cells(mask, Grid(*codes.shape[1:]))
    for n, picture in enumerate(codes):
        recipe = source.recipes[n] if n < len(source.recipes) else None
        old, new = words_of(model, recipe, old_prompt, prompt)
        sampling = Sampling() if recipe is None else sampling_of(recipe)
        negative = drawn_words(recipe).negative if recipe else None
        drawing = Drawing(
            prompt, negative, sampling=replace(sampling, seed=seed, variation=0.0),
            size=source.size_of(n), keep=picture[None], edit=Edit(old, **knobs),
            fixed=(Words(new, negative),),
            keep_mask=None if known is None or not known[n % len(known)].any()
            else known[n % len(known)],
            keep_pixels=None if source.pixels is None else source.pixels[n : n + 1])
        made.append(requests.request_of(LoadedModel(model.backbone), drawing,
                                        fall_back=False))
    return made


def words_of(model: LoadedModel, recipe: dict | None, old: str,
             new: str) -> tuple[str, str]:
    """Old and new words to draw from."""
    require_something_known(model.module, new)
    if old.strip():
        return old, new
    if recipe is None:
        raise SSDError("old prompt: the picture has no recipe that tells its words: write what it "
                       "shows")
    return changed_words.changed_words(model.module, recipe, new)


def redrawn(runs: Sequence[running.NodeRun]) -> torch.Tensor:
    """MASK [B, H, W], white where cells were drawn anew."""
    return torch.cat([as_pixels(run, run.result.edit.redrawn.float()) for run in runs
                      if run.result.edit is not None])


def maps(model: LoadedModel, runs: Sequence[running.NodeRun]) -> torch.Tensor:
    """IMAGE [B, H, W, 3]: the change map of every run, grey."""
    made = []
    with weights.resident([model.backbone], max(run.request.bytes_needed for run in runs)):
        for run in runs:
            request, drawing = run.request, run.request.drawing
            assert drawing.keep is not None and drawing.edit is not None
            change = look.change_map(request.sized, drawing.keep, drawing.edit.old_prompt,
                                request.words[0].prompt, guidance=request.sampling.cfg,
                                min_p=request.sampling.min_p)
            made.append(as_pixels(run, change)[..., None].expand(-1, -1, -1, 3))
    return torch.cat(made)


def as_pixels(run: running.NodeRun, cells: torch.Tensor) -> torch.Tensor:
    """Cells [R, C] as pixels [1, H, W] of the run's size."""
    (width, height), (rows, columns) = run.request.sized.size, cells.shape
    tall = cells.repeat_interleave(height // rows, 0)
    return tall.repeat_interleave(width // columns, 1)[None]
