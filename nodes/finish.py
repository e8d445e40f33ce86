"""Finish."""

from __future__ import annotations

from collections.abc import Sequence

import comfy.model_management as mm
from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from ..ssd_core.runs.request import Request
from . import finished, inputs, outcome, requests, running, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .newer import search_aliases
from .types import PartialPictures, StartedType


class Finish(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            node_id="SSD_Finish", display_name="Finish (SSD)",
            description="Draws the rest of pictures that Start Seeds has begun or that were "
                        "interrupted, with the prompt, seed and settings they were begun with.",
            inputs=[inputs.backbone(tooltip="The backbone that began them."), inputs.heads(),
                    StartedType.Input("started", tooltip="From Pick, Start Seeds or Unfinished "
                                                         "Run."),
                    inputs.preview()],
            outputs=outcome.outputs(),
            **search_aliases("resume", "continue"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, started: PartialPictures, preview: str,
                heads: weights.LoadedHeads | None = None) -> io.NodeOutput:
        requests.check_pairing(backbone, heads)
        keys = [finished.key_of(recipe, backbone) for recipe in started.recipes]
        runs = [running.NodeRun(rest_of(recipe, backbone, heads), backbone, heads,
                            title=f"seed {recipe['seed']}", earlier=finished.lookup(key))
                for recipe, key in zip(started.recipes, keys, strict=True)]
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


def rest_of(recipe: dict, backbone: weights.LoadedBackbone,
            heads: weights.LoadedHeads | None) -> Request:
    """The request that draws the rows below those of a stopped run."""
    if recipe["heads"] is not None and heads is None:
        raise SSDError("these pictures were begun with draft heads: connect Load Draft Heads to "
                       "'heads', with the heads that they were begun with")
    rows = min(recipe["stopped_rows"], recipe["tokens"]["shape"][0] - 1)
    return Request.of_recipe({**recipe, "keep_rows": rows}, backbone.module,
                             heads.module if heads else None, mm.get_torch_device())
