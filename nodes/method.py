"""Method."""

from __future__ import annotations

from typing import Any

import comfy.model_management as mm
from comfy_api.v0_0_2 import io

from ..ssd_core.output.guarantees import method_help
from . import inputs, schedules, weights
from .errors import readable_errors
from .language import localized
from .newer import search_aliases
from .types import DRAW, MethodType
from .widgets import describe, widgets


class MethodNode(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_Method", display_name="Method (SSD)", category=DRAW,
            description="Chooses a decoding method and its knobs, and shows how many forward "
                        "passes it takes before anything runs. ssd drafts rows ahead and verifies "
                        "them; the tooltip of 'method' says what each one guarantees.",
            inputs=[
                inputs.model(True, "The model whose passes are counted. Not connected = postcard."),
                io.Combo.Input("method", options=schedules.NAMES, default=schedules.NAMES[0],
                               tooltip=method_help(schedules.NAMES)[0]),
                *knob_inputs()],
            outputs=[MethodType.Output(display_name="method",
                                       tooltip="For SSD Sampler, Start Pictures and Compare."),
                     io.Int.Output(display_name="passes",
                                   tooltip="Forward passes for one picture, or the maximum if "
                                           "that depends on the picture."),
                     io.String.Output(display_name="plan", tooltip="The plan in words.")],
            **search_aliases("schedule", "rounds", "steps", "plan", "ar", "jacobi", "zipar",
                             "rolling", "exact", "baseline"))

    @classmethod
    @readable_errors
    def execute(cls, method: str, model: weights.LoadedModel | None = None,
                **widgets: Any) -> io.NodeOutput:
        chosen = schedules.of_name(method, widgets)
        plan, text = schedules.plan_for(chosen, model.module if model else None,
                                        mm.get_torch_device())
        idle = schedules.without_effect(method, widgets)
        return io.NodeOutput(chosen, plan.passes or plan.passes_max,
                             localized(f"{text}\nnote: {idle}" if idle else text))


def knob_inputs() -> list[io.Input]:
    """One widget for every knob of any method; the page shows those of the chosen method."""
    knobs = schedules.method_knobs()
    made = widgets(knobs, **{knob.name: {"about": f"{', '.join(knob.methods)}:"} for knob in knobs})
    for widget, knob in zip(made, knobs, strict=True):
        describe(widget, methods=list(knob.methods))
    return made
