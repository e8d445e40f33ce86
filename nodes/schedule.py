"""SSD Schedule."""

from __future__ import annotations

from comfy_api.latest import io

from ..ssd_core.errors import SSDError
from . import inputs, schedules, weights
from .errors import noted
from .types import CATEGORY, MethodType


class Schedule(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_Schedule", display_name="SSD Schedule", category=CATEGORY,
            description="How far to draft and how often to verify, and what that will cost, "
                        "before anything runs.",
            inputs=[
                inputs.backbone(True, "Plan for this backbone; without one for the preset's own "
                                      "grid."),
                *inputs.schedule(), inputs.acceptance()],
            outputs=plan_outputs())

    @classmethod
    def validate_inputs(cls, preset=None, k_h=None, k_v=None, r=None, i=None) -> bool | str:
        return complaint(preset, k_h, k_v, r, i) or True

    @classmethod
    @noted
    def execute(cls, preset: str, k_h: int, k_v: int, r: int, i: int, acceptance: str,
                backbone: weights.LoadedBackbone | None = None) -> io.NodeOutput:
        method = schedules.ssd_method(preset, k_h, k_v, r, i, acceptance)
        plan, text = schedules.plan_for(method, preset, backbone and backbone.module)
        return io.NodeOutput(method, plan.passes, text)


def plan_outputs() -> list[io.Output]:
    return [MethodType.Output(display_name="method", tooltip="For SSD Sampler and Race."),
            io.Int.Output(display_name="passes",
                          tooltip="Passes a picture takes; the most it can take where that "
                                  "depends on the picture."),
            io.String.Output(display_name="plan", tooltip="The plan in words.")]


def complaint(preset, k_h, k_v, r, i) -> str | None:
    """What is wrong with these widgets, None where nothing is or where one of them is linked."""
    if None in (preset, k_h, k_v, r, i):
        return None
    for name, value in {"k_h": k_h, "k_v": k_v, "r": r, "i": i}.items():
        if not 0 <= value <= inputs.MOST[name]:
            return f"{name} {value}: 0 (the preset's own) to {inputs.MOST[name]}"
    try:
        schedules.ssd_method(preset, k_h, k_v, r, i)
    except SSDError as error:
        return str(error)
    return None
