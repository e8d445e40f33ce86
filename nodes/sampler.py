"""SSD Sampler."""

from __future__ import annotations

from typing import Any

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.engine.methods import Method
from ..ssd_core.output.drawing import Drawing
from . import inputs, keeping, outcome, requests, running, sources, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .newer import search_aliases
from .types import DRAW, TokenPictures


class Sampler(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            DRAW, node_id="SSD_Sampler", display_name="SSD Sampler",
            description="Draws pictures from a prompt, as KSampler does, with models that draw "
                        "token by token. It drafts many tokens and checks them in one forward "
                        "pass. The rows appear on the node.",
            inputs=[
                inputs.model(), inputs.method(), *inputs.known_part(), inputs.source(),
                *inputs.subject("that of a picture of which a part stays, else the model's own"),
                inputs.quality(), *inputs.schedule(), inputs.batch_size(),
                *inputs.known_rows(), inputs.preview(), *inputs.sampling()],
            outputs=[*outcome.outputs(), *outcome.typed()],
            **search_aliases("ksampler", "speculative decoding", "autoregressive", "text to image",
                             "row by row", "variation", "postcard", "janus", "generate"))

    @classmethod
    @readable_errors
    def execute(cls, model: weights.LoadedModel, prompt: str, negative: str, quality: str,
                batch_size: int, keep_rows: int, preview: bool, complete_prompt: bool,
                picture_number: str | int = inputs.ALL, method: Method | None = None,
                picture: TokenPictures | None = None, mask: torch.Tensor | None = None,
                source: torch.Tensor | None = None, **widgets: Any) -> io.NodeOutput:
        chosen, notes = requests.chosen_method(method, quality, widgets)
        known = keeping.picked(picture, picture_number)
        fields, unused = keeping.fields_of(known, keep_rows, mask, model, batch_size)
        typed = requests.typed_words(prompt, negative)
        fixed, word_notes = keeping.words_of_known(known, fields, typed, batch_size)
        drawing = Drawing(prompt, typed.negative, chosen, requests.sampling_of(widgets),
                          requests.asked_size(widgets), batch_size, complete_prompt, fixed=fixed,
                          **fields, **sources.fields_of(model, source))
        request = requests.request_of(model, drawing, named=method is not None)
        runs = [running.NodeRun(part, model, [*notes, *unused, *word_notes])
                for part in request.parts()]
        ui = cls.draw(runs, preview, together=False)
        return io.NodeOutput(*outcome.of(runs), *outcome.typed_of(runs[0]), ui=ui)
