"""Baseline Method."""

from __future__ import annotations

import comfy.model_management as mm
from comfy_api.v0_0_2 import io

from ..ssd_core.front.knobs import all_knobs
from ..ssd_core.front.promises import method_help
from . import inputs, schedules, weights
from .errors import noted
from .language import said
from .newer import found_by
from .schedule import plan_outputs
from .types import CATEGORY
from .widgets import first, later


class BaselineMethod(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_BaselineMethod", display_name="Baseline Method (SSD)", category=CATEGORY,
            description="All other decoding methods, from AR itself to those that come close to "
                        "its distribution. The tooltip of 'method' says what each promises.",
            inputs=[
                inputs.backbone(True, "Plan for this backbone; without one for a 24 x 24 grid."),
                io.Combo.Input("method", options=schedules.BASELINES, default="ar",
                               tooltip=method_help(schedules.BASELINES)[0]),
                *knob_inputs()],
            outputs=plan_outputs(),
            **found_by("ar", "jacobi", "zipar", "rolling", "exact"))

    @classmethod
    @noted
    def execute(cls, method: str, backbone: weights.LoadedBackbone | None = None,
                **widgets: int | float | str | bool) -> io.NodeOutput:
        chosen = schedules.baseline(method, widgets)
        plan, text = schedules.plan_for(chosen, "postcard", backbone.module if backbone else None,
                                        mm.get_torch_device())
        return io.NodeOutput(chosen, plan.passes or plan.passes_max, said(text))


def knob_inputs() -> list[io.Input]:
    """One widget for every knob of any baseline; each method uses the knobs it has."""
    knobs = list(all_knobs(schedules.BASELINES).values())
    about = {one.name: {"about": f"{', '.join(one.methods)}:"} for one in knobs}
    return [*first(knobs, **about), *later(knobs, **about)]
