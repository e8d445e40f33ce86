"""Run Info: what a run tells, for nodes that take text and numbers."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from ..ssd_core.model.grid import size_of
from .errors import readable_errors
from .types import TOOLS, Run, RunType


class RunInfo(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_RunInfo", display_name="Run Info (SSD)", category=TOOLS,
            description="Takes a run apart: its report, words, seed and size, for nodes that show "
                        "or save text and numbers. Of a batch, those of the first picture.",
            inputs=[RunType.Input("run", tooltip="From a node that draws, or Load Picture.")],
            outputs=[
                io.String.Output(display_name="report",
                                 tooltip="Forward passes, seconds, acceptance rate and notes."),
                io.String.Output(display_name="prompt",
                                 tooltip="The prompt, as it was typed; the report has the words "
                                         "that were filled in."),
                io.String.Output(display_name="negative", tooltip="The negative prompt."),
                io.Int.Output(display_name="seed", tooltip="The seed that was used."),
                io.Int.Output(display_name="width", tooltip="Width in pixels."),
                io.Int.Output(display_name="height", tooltip="Height in pixels."),
                io.Int.Output(display_name="passes",
                              tooltip="The forward passes that it took; 0 if it was loaded.")],
            search_aliases=["report", "statistics", "seed", "prompt", "metadata"])

    @classmethod
    @readable_errors
    def execute(cls, run: Run) -> io.NodeOutput:
        recipe = run.recipe()
        width, height = size_of(recipe["size"]) or (0, 0)
        passes = run.stats.stats["passes"] if run.stats else 0
        return io.NodeOutput(run.report, recipe["prompt"], recipe["negative"] or "",
                             recipe["seed"], width, height, passes)
