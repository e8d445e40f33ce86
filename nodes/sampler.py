"""SSD Sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.output.drawing import Drawing
from . import inputs
from .drawing import DrawingNode, outputs
from .errors import readable_errors
from .later import keeping, outcome, panels, requests, running, schedules, sources
from .types import DRAW, LoadedModel, Run


class Sampler(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            DRAW, node_id="SSD_Sampler", display_name="SSD Sampler",
            description="Draws pictures from a prompt, as KSampler does, with models that draw "
                        "token by token. It drafts many tokens and checks them in one forward "
                        "pass. The rows appear on the node.",
            inputs=[
                inputs.model(), *inputs.known_part(), inputs.source(),
                *inputs.subject("that of a picture of which a part stays, else the model's own"),
                inputs.method(), inputs.batch_size(), inputs.part(),
                *inputs.known_rows(), inputs.preview(), *inputs.sampling()],
            outputs=outputs(),
            search_aliases=["ksampler", "speculative decoding", "autoregressive", "text to image",
                            "row by row", "variation", "postcard", "janus", "generate",
                            "method", "schedule", "rounds", "start pictures", "controlnet"])

    @classmethod
    @readable_errors
    def execute(cls, model: LoadedModel, prompt: str, negative: str,
                method: Mapping[str, Any], batch_size: int, part: float, keep_rows: int,
                preview: bool, complete_prompt: bool, picture_number: int,
                picture: Run | None = None, mask: torch.Tensor | None = None,
                source: torch.Tensor | None = None, **widgets: Any) -> io.NodeOutput:
        chosen, named = schedules.chosen(method)
        known = keeping.picked(picture.tokens if picture else None, picture_number)
        size, sampling = requests.asked_size(widgets), requests.sampling_of(widgets)
        if known is not None and known.panel is not None:
            prompt, keep_rows, size = panels.words(known, model, prompt)
        fields, unused = keeping.fields_of(known, keep_rows, mask, model, batch_size)
        typed = requests.typed_words(prompt, negative)
        fixed, word_notes = keeping.words_of_known(known, fields, typed, batch_size)
        drawing = Drawing(prompt, typed.negative, chosen, sampling, size, batch_size,
                          complete_prompt, fixed=fixed, **fields,
                          **sources.fields_of(model, source))
        request = requests.request_of(model, drawing, named=named)
        until = rows_of(part, request.grid.rows)
        runs = [running.NodeRun(each, model, [*notes_of(until), *unused, *word_notes])
                for each in ([request] if until else request.parts())]
        ui = cls.draw(runs, preview, together=False, until=until)
        images, run = outcome.of(runs)
        return io.NodeOutput(panels.cut(images, known), run, ui=ui)


def rows_of(part: float, rows: int) -> int | None:
    """The rows of that part of a picture; None for all."""
    return None if part == 1 else min(math.ceil(part * rows), rows - 1)


def notes_of(until: int | None) -> list[str]:
    return [f"only the top {until} rows: Finish draws the rest"] if until else []
