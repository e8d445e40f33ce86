"""Finish: draws what pictures lack, their lower rows or their pixels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import comfy.model_management as mm
import torch
from comfy_api.v0_0_2 import io
from comfy_execution.graph_utils import ExecutionBlocker

from ..ssd_core.errors import SSDError
from ..ssd_core.output.drawing import method_of
from . import inputs
from .drawing import DrawingNode, outputs
from .errors import readable_errors
from .language import show_text
from .later import decoding, finished, outcome, request, running, unfinished
from .later import recipe as stored
from .types import DRAW, LoadedModel, Run, RunType

ALL = "all"
NOTHING_YET = ("Nothing is picked yet: click the pictures you like on the sampler, or write their "
               "numbers, for example 1, 3, and run again. What is drawn already is not drawn "
               "again.")


class Finish(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            DRAW, node_id="SSD_Finish", display_name="Finish (SSD)",
            description="Draws what pictures lack: the rest of those that SSD Sampler has begun "
                        "with 'part', and the pixels of those that it had no memory for, of "
                        "encoded ones and of GLM-Image. With nothing connected to 'run' it takes "
                        "up the last interrupted run, also after a restart of ComfyUI.",
            inputs=[inputs.model(tooltip="The model that began them."),
                    RunType.Input("run", optional=True,
                                  tooltip="From SSD Sampler or Encode. Not connected = the last "
                                          "interrupted run."),
                    io.String.Input("pictures", default="", optional=True,
                                    tooltip="Which pictures to finish: click them on the sampler, "
                                            f"or write their numbers, for example 1, 3 or 2-4, or "
                                            f"{ALL}. Empty = none yet, if several are begun: the "
                                            "nodes after it wait."),
                    inputs.preview(), *inputs.painting()],
            outputs=outputs(),
            search_aliases=["resume", "continue", "unfinished", "interrupted", "cancelled",
                            "recover", "pick", "choose", "select seeds", "vae decode", "decode",
                            "tokens to image", "glm-image", "diffusion"])

    @classmethod
    def validate_inputs(cls) -> bool | str:  # type: ignore[override]
        return True  # its prompt may be empty; ComfyUI checks the inputs that are not named here

    @classmethod
    def fingerprint_inputs(cls, **_) -> str:
        return unfinished.fingerprint()

    @classmethod
    @readable_errors
    def execute(cls, model: LoadedModel, pictures: str, preview: bool, prompt: str,
                seed: int, steps: int, guidance: float, run: Run | None = None,
                source: torch.Tensor | None = None) -> io.NodeOutput:
        if run is None:
            return cls.rest(model, unfinished.load(), preview)
        wanted = picked(pictures, len(run.tokens.tokens))
        if run.tokens.unfinished:
            if not wanted and len(run.recipes) > 1:
                show_text(cls.hidden.unique_id, NOTHING_YET)
                return io.NodeOutput(ExecutionBlocker(None), ExecutionBlocker(None))
            return cls.rest(model, [run.recipes[n - 1] for n in wanted or [1]], preview)
        tokens = run.tokens if not wanted else run.tokens.those(wanted)
        images = decoding.images_of(model, tokens, prompt, seed, steps, guidance, source)
        return io.NodeOutput(images, with_pixels(run, tokens, images, wanted))

    @classmethod
    def rest(cls, model: LoadedModel, recipes: Sequence[dict],
             preview: bool) -> io.NodeOutput:
        """Draw the rows below those of stopped runs."""
        keys = [finished.key_of(recipe, model.module) for recipe in recipes]
        runs = [running.NodeRun(rest_of(recipe, model), model, title=f"seed {recipe['seed']}",
                                earlier=finished.lookup(key))
                for recipe, key in zip(recipes, keys, strict=True)]
        ui = cls.draw(runs, preview, together=False)
        keep(keys, runs)
        return io.NodeOutput(*outcome.of(runs), ui=ui)


def with_pixels(run: Run, tokens, images: torch.Tensor, wanted: Sequence[int]) -> Run:
    """The run with these images."""
    stats = run.stats
    if stats is not None:
        chosen = [n - 1 for n in wanted or range(1, len(run.tokens.tokens) + 1)]
        stats = replace(stats, recipes=tokens.recipes, acceptance=stats.acceptance[chosen],
                        pictures=stored.to_bytes(images))
    return Run(replace(tokens, pixels=images), stats, run.report)


def keep(keys: Sequence[str], runs: Sequence[running.NodeRun]) -> None:
    """Cache the pictures drawn in this run; earlier ones get their first messages back."""
    for panel, (key, run) in enumerate(zip(keys, runs, strict=True)):
        if run.earlier is not None:
            run.messages = [{**message, "panel": panel} for message in run.earlier.messages]
        elif (drawn := run.outcome) is not None:
            finished.keep(key, drawn)


def rest_of(recipe: dict, model: LoadedModel) -> request.Request:
    """The request that draws the rows below those of a stopped run."""
    needs_heads = recipe["heads"] is not None and not request.draws_ars_picture(method_of(recipe))
    if needs_heads and model.heads is None:
        raise SSDError("these pictures were begun with draft heads: choose the same ones in "
                       "'heads' of Load Model")
    rows = min(recipe["stopped_rows"], recipe["tokens"]["shape"][0] - 1)
    return request.Request.of_recipe({**recipe, "keep_rows": rows}, model.module,
                             model.heads.module if model.heads else None, mm.get_torch_device())


def picked(text: str, count: int) -> list[int]:
    """The numbers from 1 to `count` in a text such as "1, 3-5", in its order, without repeats.

    Raises SSDError for any other text but "all".
    """
    if text.strip().lower() == ALL:
        return list(range(1, count + 1))
    found: list[int] = []
    for part in re.split(r"[\s,，、;]+", re.sub(r"\s*[-–]\s*", "-", text.strip())):
        match = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", part)
        ends = [int(end) for end in match.groups() if end] if match else []
        if part and not (ends and 1 <= ends[0] <= ends[-1] <= count):
            raise SSDError(f"pictures {part!r}: write numbers from 1 to {count}, such as 1, 3 or "
                           f"2-4, or {ALL}")
        found += range(ends[0], ends[-1] + 1) if ends else []
    return list(dict.fromkeys(found))
