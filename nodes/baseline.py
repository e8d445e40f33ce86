"""Baseline Method."""

from __future__ import annotations

import comfy.model_management as mm
from comfy_api.v0_0_2 import io

from ..ssd_core.output.guarantees import method_help
from ..ssd_core.output.knobs import all_knobs
from . import inputs, schedules, weights
from .errors import readable_errors
from .language import localized, show_text
from .newer import search_aliases
from .schedule import plan_outputs
from .types import CATEGORY
from .widgets import added_widgets, name_of, original_widgets


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
            hidden=[io.Hidden.unique_id],
            **search_aliases("ar", "jacobi", "zipar", "rolling", "exact"))

    @classmethod
    @readable_errors
    def execute(cls, method: str, backbone: weights.LoadedBackbone | None = None,
                **widgets: int | float | str | bool) -> io.NodeOutput:
        chosen = schedules.baseline(method, widgets)
        plan, text = schedules.plan_for(chosen, "postcard", backbone.module if backbone else None,
                                        mm.get_torch_device())
        if note := schedules.without_effect(method, widgets):
            text = f"{text}\nnote: {note}"
        show_text(cls.hidden.unique_id, text)
        return io.NodeOutput(chosen, plan.passes or plan.passes_max, localized(text))


def knob_inputs() -> list[io.Input]:
    """One widget for every knob of any baseline; the page shows those of the chosen method."""
    knobs = list(all_knobs(schedules.BASELINES).values())
    about = {knob.name: {"about": f"{', '.join(knob.methods)}:"} for knob in knobs}
    methods = {name_of(knob): list(knob.methods) for knob in knobs}
    made = [*original_widgets(knobs, **about), *added_widgets(knobs, **about)]
    for widget in made:
        widget.extra_dict = {"methods": methods[widget.id]}  # read by web/comfy/advanced.js
    return made
