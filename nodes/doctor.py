"""Doctor."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from . import report
from .language import show_text
from .newer import search_aliases
from .types import TOOLS


class Doctor(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_Doctor", display_name="Doctor (SSD)", category=TOOLS,
            description="Writes one text for a bug report: versions, device, attention backend, "
                        "the models and draft heads that were found, and the last error. It "
                        "works without any other node.",
            inputs=[], is_output_node=True,
            outputs=[io.String.Output(display_name="report",
                                      tooltip="The same text, for a node that saves or shows it.")],
            hidden=[io.Hidden.unique_id],
            **search_aliases("system info", "debug", "bug report"))

    @classmethod
    def fingerprint_inputs(cls) -> float:
        return float("nan")  # NaN is never equal to itself, so the node always runs

    @classmethod
    def execute(cls) -> io.NodeOutput:
        text = report.doctor()
        show_text(cls.hidden.unique_id, text)
        return io.NodeOutput(text, ui={"text": [text]})
