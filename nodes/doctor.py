"""Doctor."""

from __future__ import annotations

from comfy_api.latest import io

from . import report
from .types import CATEGORY


class Doctor(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_Doctor", display_name="Doctor (SSD)", category=CATEGORY,
            description="One text for a bug report: versions, device, attention, the backbones "
                        "and heads that were found, the last error.",
            inputs=[],
            outputs=[io.String.Output(display_name="report",
                                      tooltip="Connect it to a text preview.")])

    @classmethod
    def fingerprint_inputs(cls) -> float:
        return float("nan")  # never equal to itself: always runs

    @classmethod
    def execute(cls) -> io.NodeOutput:
        return io.NodeOutput(report.doctor())
