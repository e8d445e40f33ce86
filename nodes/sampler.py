"""SSD Sampler."""

from __future__ import annotations

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.engine.methods import Method
from . import inputs, keeping, outcome, requests, running, sources, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .newer import search_aliases
from .types import TokenPictures


class Sampler(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        keep, keep_rows = inputs.keep()
        return cls.drawing_schema(
            node_id="SSD_Sampler", display_name="SSD Sampler",
            description="Draws pictures row by row: drafts whole rows, then checks and repairs "
                        "them in a few forward passes. The rows appear on the node.",
            inputs=[
                inputs.backbone(), inputs.heads(), inputs.method(), keep,
                *inputs.subject(), inputs.quality(), inputs.batch_size(), keep_rows,
                inputs.preview(), *inputs.schedule(),
                *inputs.sampling(inputs.keep_picture()), inputs.mask(), inputs.source()],
            outputs=[*outcome.outputs(), *outcome.typed()],
            **search_aliases("ksampler", "speculative decoding", "autoregressive", "text to image",
                             "row by row", "variation", "postcard", "janus", "generate"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, prompt: str, negative: str, size: str,
                quality: str, batch_size: int, keep_rows: int, preview: str,
                heads: weights.LoadedHeads | None = None, method: Method | None = None,
                keep: TokenPictures | None = None, expand: bool = False, keep_picture: int = 0,
                mask: torch.Tensor | None = None, source: torch.Tensor | None = None,
                **widgets: int | float | str | bool) -> io.NodeOutput:
        chosen, notes = requests.chosen_method(method, quality, widgets)
        keep = keep.picked(keep_picture) if keep is not None else None
        fields, unused = keeping.fields_of(keep, keep_rows, mask, backbone, batch_size)
        typed = requests.typed_words(prompt, negative)
        fixed, word_notes = keeping.words_of_kept(keep, fields, typed, batch_size)
        request = requests.request_of(
            backbone, heads, chosen, requests.sampling_of(widgets), prompt, negative, size,
            pictures=batch_size, named=method is not None, expand=expand, fixed=fixed,
            **fields, **sources.fields_of(backbone, source))
        runs = [running.NodeRun(part, backbone, heads, [*notes, *unused, *word_notes])
                for part in request.parts()]
        ui = cls.draw(runs, preview, together=False)
        return io.NodeOutput(*outcome.of(runs), *outcome.typed_of(runs[0]), ui=ui)
