"""SSD Sampler."""

from __future__ import annotations

from comfy_api.latest import io

from ..ssd_core.engine.methods import Method
from ..ssd_core.front.recipe import to_bytes
from . import inputs, previews, report, requests, running, weights
from .errors import noted
from .types import CATEGORY, MethodType, RunStats, StatsType, TokenPictures, TokensType


class Sampler(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        keep, keep_rows = inputs.keep()
        return io.Schema(
            node_id="SSD_Sampler", display_name="SSD Sampler", category=CATEGORY,
            description="Draws pictures row by row: drafts whole rows, then checks and repairs "
                        "them in a few forward passes. The rows appear on the node.",
            inputs=[
                inputs.backbone(), inputs.heads(),
                MethodType.Input("method", optional=True,
                                 tooltip="From SSD Schedule or Baseline Method. Overrides preset, "
                                         "k_h, k_v, r and i; the node says so."),
                *inputs.schedule(), *inputs.prompts(), *inputs.sampling(), inputs.size(),
                io.Int.Input("batch_size", default=1, min=1, max=64,
                             tooltip="Pictures drawn together, with seeds seed, seed + 1 ..."),
                inputs.preview(), keep, keep_rows, *inputs.more_sampling()],
            outputs=[
                io.Image.Output(display_name="images", tooltip="The pictures."),
                TokensType.Output(display_name="tokens", tooltip="For 'keep' and Decode Tokens."),
                StatsType.Output(display_name="stats",
                                 tooltip="For Acceptance Map and Save Image."),
                io.String.Output(display_name="report", tooltip="Forward passes, seconds, "
                                                                "acceptance rate and notes.")],
            hidden=previews.HIDDEN, **previews.RESENT)

    @classmethod
    def validate_inputs(cls, prompt: str | None = None) -> bool | str:
        return inputs.complaint_about_prompt(prompt) or True

    @classmethod
    @noted
    def execute(cls, backbone: weights.LoadedBackbone, preset: str, prompt: str, negative: str,
                size: str, batch_size: int, preview: str, keep_rows: int,
                heads: weights.LoadedHeads | None = None, method: Method | None = None,
                keep: TokenPictures | None = None,
                **widgets: int | float | str | bool) -> io.NodeOutput:
        chosen, notes = requests.chosen_method(method, preset, widgets)
        request = requests.request_of(
            backbone, heads, chosen, requests.sampling_of(widgets), prompt, negative, size,
            pictures=batch_size, keep=requests.kept(keep, keep_rows, backbone),
            keep_rows=keep_rows)
        run = running.Run(request, backbone, heads, notes)
        ui = running.run_all([run], previews.Place.of(cls.hidden), preview)
        result = run.result
        stats = RunStats(request.label, result.measured, tuple(result.recipes()), run.count.share(),
                         None if run.images is None else to_bytes(run.images))
        return io.NodeOutput(run.output, TokenPictures.of(backbone.module, result.tokens), stats,
                             report.sampled(run), ui=ui)
