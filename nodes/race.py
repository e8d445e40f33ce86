"""Race."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from ..ssd_core.engine.methods import AR, Method
from . import inputs, outcome, report, requests, running, schedules, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .language import localized
from .newer import search_aliases
from .types import MethodType


class Race(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return cls.drawing_schema(
            node_id="SSD_Race", display_name="Race (SSD)",
            description="Two methods draw the same prompt with the same seed and are timed "
                        "separately. Shows which was faster in this run, and whether the "
                        "picture is the same.",
            inputs=[
                inputs.backbone(), inputs.heads(),
                MethodType.Input("method_a", optional=True, tooltip="Left. Default: AR."),
                MethodType.Input("method_b", optional=True,
                                 tooltip=f"Right. Default: what quality {schedules.FAITHFUL} of "
                                         "SSD Sampler draws with."),
                *inputs.subject(), inputs.preview(), *inputs.sampling()],
            outputs=[
                io.Image.Output(display_name="image_a", tooltip="The left picture."),
                io.Image.Output(display_name="image_b", tooltip="The right picture."),
                io.Image.Output(display_name="side_by_side",
                                tooltip="Both, labelled with seconds, passes and verdict."),
                io.String.Output(display_name="report", tooltip="What was measured."),
                *outcome.typed()],
            **search_aliases("compare", "benchmark", "speed"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, prompt: str, negative: str, size: str,
                preview: str, heads: weights.LoadedHeads | None = None,
                method_a: Method | None = None, method_b: Method | None = None,
                expand: bool = False, **widgets: int | float | str | bool) -> io.NodeOutput:
        sampling = requests.sampling_of(widgets)
        racing = (method_a or AR(), method_b or schedules.method_of(schedules.FAITHFUL))
        runs = [running.NodeRun(requests.request_of(backbone, heads, method, sampling, prompt,
                                                negative, size, named=True, expand=expand),
                            backbone, heads)
                for method in racing]
        ui = cls.draw(runs, preview)
        texts = [*map(report.sampled, runs), report.compared(runs)]
        return io.NodeOutput(*(run.output for run in runs), outcome.sheet_output(runs),
                             localized("\n\n".join(texts)), *outcome.typed_of(runs[0]), ui=ui)
