"""SSD Sampler."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from ..ssd_core.engine.methods import Method
from . import inputs, outcome, previews, requests, running, weights
from .errors import noted
from .newer import RESENT, found_by
from .types import CATEGORY, TokenPictures


class Sampler(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        keep, keep_rows = inputs.keep()
        return io.Schema(
            node_id="SSD_Sampler", display_name="SSD Sampler", category=CATEGORY,
            description="Draws pictures row by row: drafts whole rows, then checks and repairs "
                        "them in a few forward passes. The rows appear on the node.",
            inputs=[
                inputs.backbone(), inputs.heads(), inputs.method(), keep,
                *inputs.subject(), inputs.quality(), inputs.batch_size(), keep_rows,
                inputs.preview(), *inputs.schedule(),
                *inputs.sampling(inputs.keep_picture())],
            outputs=[*outcome.outputs(), *outcome.typed()],
            hidden=previews.HIDDEN, **RESENT,
            **found_by("ksampler", "speculative decoding", "autoregressive", "text to image",
                       "janus", "generate"))

    @classmethod
    def validate_inputs(cls, prompt: str | None = None) -> bool | str:
        return inputs.complaint_about_prompt(prompt) or True

    @classmethod
    @noted
    def execute(cls, backbone: weights.LoadedBackbone, prompt: str, negative: str, size: str,
                quality: str, batch_size: int, keep_rows: int, preview: str,
                heads: weights.LoadedHeads | None = None, method: Method | None = None,
                keep: TokenPictures | None = None, expand: bool = False, keep_picture: int = 0,
                **widgets: int | float | str | bool) -> io.NodeOutput:
        chosen, notes = requests.chosen_method(method, quality, widgets)
        keep = keep.picked(keep_picture) if keep is not None else None
        kept, rows, unused = requests.kept(keep, keep_rows, backbone)
        fixed, told = requests.words_of_kept(keep, rows, requests.typed_words(prompt, negative),
                                             batch_size)
        request = requests.request_of(
            backbone, heads, chosen, requests.sampling_of(widgets), prompt, negative, size,
            pictures=batch_size, keep=kept, keep_rows=rows, named=method is not None,
            expand=expand, fixed=fixed)
        runs = [running.Run(part, backbone, heads, [*notes, *unused, *told])
                for part in request.parts()]
        ui = running.run_all(runs, previews.Place.of(cls.hidden), preview, together=False)
        return io.NodeOutput(*outcome.of(runs), *outcome.typed_of(runs[0]), ui=ui)
