"""Acceptance Map."""

from __future__ import annotations

import numpy as np
import torch
from comfy_api.latest import io

from ..ssd_core.front.heatmap import acceptance_sheet
from .errors import noted
from .types import CATEGORY, RunStats, StatsType


class AcceptanceMap(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_AcceptanceMap", display_name="Acceptance Map (SSD)", category=CATEGORY,
            description="Where drafts stood and where they were repaired, over the picture, and "
                        "how many stood in each round.",
            inputs=[StatsType.Input("stats", tooltip="From SSD Sampler.")],
            outputs=[io.Image.Output(display_name="images",
                                     tooltip="One sheet a picture: bright cells were accepted at "
                                             "once, dark ones repaired.")])

    @classmethod
    @noted
    def execute(cls, stats: RunStats) -> io.NodeOutput:
        acceptance = stats.stats["acceptance"]
        sheets = [np.asarray(acceptance_sheet(share, acceptance, picture, stats.label))
                  for share, picture in stats.cells()]
        return io.NodeOutput(torch.from_numpy(np.stack(sheets)).float() / 255)
