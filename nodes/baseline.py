"""Baseline Method."""

from __future__ import annotations

import comfy.model_management as mm
from comfy_api.latest import io

from . import inputs, schedules, weights
from .errors import noted
from .schedule import plan_outputs
from .types import CATEGORY

OWN = "-1 = the method's own."


class BaselineMethod(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_BaselineMethod", display_name="Baseline Method (SSD)", category=CATEGORY,
            description="Every other way to decode: ar (one token a pass), exact (AR's own "
                        "picture in fewer passes), strict (AR's distribution), rows (no heads), "
                        "mtp (horizontal heads only).",
            inputs=[
                inputs.backbone(True, "Plan for this backbone; without one for a 24 x 24 grid."),
                io.Combo.Input("method", options=schedules.BASELINES, default="ar",
                               tooltip="ar, exact and rows run without heads; mtp and strict "
                                       "need them."),
                *knob_inputs()],
            outputs=plan_outputs())

    @classmethod
    @noted
    def execute(cls, method: str, k_h: int, k_v: int, r: int, i: int, acceptance: str,
                window: int, drafts: str, draft: str, fused_commit: bool = False,
                backbone: weights.LoadedBackbone | None = None) -> io.NodeOutput:
        chosen = schedules.baseline(method, k_h=k_h, k_v=k_v, rounds=r, incremental=i,
                                    acceptance=acceptance, window=window, drafts=drafts,
                                    draft=draft, fused_commit=fused_commit)
        plan, text = schedules.plan_for(chosen, "postcard", backbone and backbone.module,
                                        mm.get_torch_device().type)
        return io.NodeOutput(chosen, plan.passes or plan.passes_max, text)


def knob_inputs() -> list[io.Input]:
    """One widget for every knob of any baseline; each method takes those it has."""
    def count(name: str, least: int, most: int, text: str) -> io.Input:
        return io.Int.Input(name, default=least, min=least, max=most, tooltip=text)

    return [
        count("k_h", 0, 64, "mtp, strict, rows: cells drafted at once. 0 = the method's own."),
        count("k_v", 0, 16, "rows: rows drafted at once. 0 = the method's own."),
        count("r", -1, 64, f"mtp, rows: verification rounds; 0 only drafts. {OWN}"),
        count("i", -1, 64, f"rows: further rounds for each further row of a block. {OWN}"),
        inputs.acceptance(),
        count("window", 0, 8192, "exact: cells looked at in a pass. 0 = the cheapest on this "
                                 "device."),
        io.Combo.Input("drafts", options=["horizontal", "vertical"], default="horizontal",
                       tooltip="strict: drafts along the row, or from the row above."),
        io.Combo.Input("draft", options=["distribution", "copy"], default="distribution",
                       tooltip="rows: draft from the distribution of the cell above, or copy it."),
        io.Boolean.Input("fused_commit", default=False, optional=True,  # came later
                         tooltip="rows: let a row's commit ride with the next row's first round: "
                                 "one pass a row less."),
    ]
