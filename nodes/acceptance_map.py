"""Acceptance Map."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from ..ssd_core.output.heatmap import acceptance_sheet
from .errors import readable_errors
from .newer import search_aliases
from .types import CATEGORY, RunStats, StatsType, image_of


class AcceptanceMap(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_AcceptanceMap", display_name="Acceptance Map (SSD)", category=CATEGORY,
            description="Shows over the picture where drafts were accepted and where they were "
                        "repaired, and how many were accepted in each round.",
            inputs=[StatsType.Input("stats", tooltip="From SSD Sampler.")],
            outputs=[io.Image.Output(display_name="images",
                                     tooltip="One sheet for each picture: bright cells were "
                                             "accepted at once, dark ones were repaired.")],
            **search_aliases("heatmap"))

    @classmethod
    @readable_errors
    def execute(cls, stats: RunStats) -> io.NodeOutput:
        acceptance = stats.stats["acceptance"]
        return io.NodeOutput(image_of(acceptance_sheet(share, acceptance, picture, stats.label)
                                      for share, picture in stats.cells()))
