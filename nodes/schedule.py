"""SSD Schedule."""

from __future__ import annotations

import comfy.model_management as mm
from comfy_api.v0_0_2 import io

from . import inputs, schedules, weights
from .errors import readable_errors
from .language import localized
from .newer import search_aliases
from .types import CATEGORY, MethodType


class Schedule(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_Schedule", display_name="SSD Schedule", category=CATEGORY,
            description="Sets how far ahead to draft and how often to verify, and shows the cost "
                        "before anything runs.",
            inputs=[
                inputs.backbone(True, "Plan for this backbone; without one for the preset's own "
                                      "grid."),
                *inputs.ssd()],
            outputs=plan_outputs(),
            **search_aliases("rounds", "steps", "plan"))

    @classmethod
    @readable_errors
    def execute(cls, preset: str, backbone: weights.LoadedBackbone | None = None,
                **widgets: int | float | str | bool) -> io.NodeOutput:
        method = schedules.method_of(preset, widgets)
        plan, text = schedules.plan_for(method, preset, backbone.module if backbone else None,
                                        mm.get_torch_device())
        idle = schedules.idle_knobs(preset, widgets)
        return io.NodeOutput(method, plan.passes or plan.passes_max,
                             localized(f"{text}\nnote: {idle}" if idle else text))


def plan_outputs() -> list[io.Output]:
    return [MethodType.Output(display_name="method", tooltip="For SSD Sampler and Race."),
            io.Int.Output(display_name="passes",
                          tooltip="Forward passes for one picture, or the maximum if that "
                                  "depends on the picture."),
            io.String.Output(display_name="plan", tooltip="The plan in words.")]
