"""Finish Pictures."""

from __future__ import annotations

from collections.abc import Sequence

import comfy.model_management as mm
from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from ..ssd_core.output.drawing import method_of
from ..ssd_core.runs.request import Request, draws_ars_picture
from . import finished, inputs, outcome, running, unfinished, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .newer import search_aliases
from .types import DRAW, PartialPictures, StartedType


class FinishPictures(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            DRAW, node_id="SSD_FinishPictures", display_name="Finish Pictures (SSD)",
            description="Draws the rest of pictures that Start Pictures has begun, with the "
                        "prompt, seed and settings they were begun with. With nothing connected "
                        "to 'started' it takes up the last interrupted run, also after a restart "
                        "of ComfyUI.",
            inputs=[inputs.model(tooltip="The model that began them."),
                    StartedType.Input("started", optional=True,
                                      tooltip="From Pick Pictures or Start Pictures. Not "
                                              "connected = the last interrupted run."),
                    inputs.preview()],
            outputs=outcome.outputs(),
            **search_aliases("resume", "continue", "unfinished", "interrupted", "cancelled",
                             "recover"))

    @classmethod
    def fingerprint_inputs(cls, **_) -> str:
        return unfinished.fingerprint()

    @classmethod
    @readable_errors
    def execute(cls, model: weights.LoadedModel, preview: bool,
                started: PartialPictures | None = None) -> io.NodeOutput:
        recipes = unfinished.load() if started is None else started.recipes
        keys = [finished.key_of(recipe, model.module) for recipe in recipes]
        runs = [running.NodeRun(rest_of(recipe, model), model, title=f"seed {recipe['seed']}",
                                earlier=finished.lookup(key))
                for recipe, key in zip(recipes, keys, strict=True)]
        ui = cls.draw(runs, preview, together=False)
        keep(keys, runs)
        return io.NodeOutput(*outcome.of(runs), ui=ui)


def keep(keys: Sequence[str], runs: Sequence[running.NodeRun]) -> None:
    """Cache the pictures drawn in this run; earlier ones get their first messages back."""
    for panel, (key, run) in enumerate(zip(keys, runs, strict=True)):
        if run.earlier is not None:
            run.messages = [{**message, "panel": panel} for message in run.earlier.messages]
        elif (drawn := run.outcome) is not None:
            finished.keep(key, drawn)


def rest_of(recipe: dict, model: weights.LoadedModel) -> Request:
    """The request that draws the rows below those of a stopped run."""
    needs_heads = recipe["heads"] is not None and not draws_ars_picture(method_of(recipe))
    if needs_heads and model.heads is None:
        raise SSDError("these pictures were begun with draft heads: choose the same ones in "
                       "'heads' of Load Model")
    rows = min(recipe["stopped_rows"], recipe["tokens"]["shape"][0] - 1)
    return Request.of_recipe({**recipe, "keep_rows": rows}, model.module,
                             model.heads.module if model.heads else None, mm.get_torch_device())
