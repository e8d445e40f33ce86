"""Limits of widgets, for values that come by a link: ComfyUI checks those that are typed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from ..ssd_core.model.knobs import KnobSpec
from .language import localized_for_all

KINDS = {"INT": int, "FLOAT": float, "STRING": str, "BOOLEAN": bool, "COMBO": str}
OPEN = ("size", "model", "heads", "image")  # lists from files: the node says what is legal


def check(node: type[io.ComfyNode], values: Mapping[str, Any]) -> None:
    """Raise SSDError for the first value that the node's widget would refuse if it were typed."""
    for widget in node.define_schema().inputs:
        value = values.get(widget.id)
        if value is None or widget.io_type not in KINDS:
            continue
        asks = widget.id == "prompt" and widget.default  # Tokens to Image can do without
        if asks and (complaint := complaint_about_prompt(value)):
            raise SSDError(f"prompt: {complaint}")
        spec_of(widget).checked(value)


def complaint_about_prompt(prompt: object) -> str | None:
    """What is wrong with a prompt; None if it is fine or linked.

    validate_inputs takes only the prompt, because ComfyUI repeats a complaint for every widget that
    it takes. ComfyUI checks ranges and lists if they are typed, and the run checks combinations. A
    program may send a value of any type.
    """
    if prompt is not None and not isinstance(prompt, str):
        return localized_for_all(f"it is of type {type(prompt).__name__}, not text: send one text, "
                                 "and a request for each prompt of a list")
    if prompt is not None and not prompt.strip():
        return localized_for_all("it is empty: say what the picture should show")
    return None


def spec_of(widget: io.Input) -> KnobSpec:
    """What the values of a widget may be."""
    choices = () if widget.id in OPEN else tuple(getattr(widget, "options", None) or ())
    return KnobSpec(widget.id, KINDS[widget.io_type], "", low=getattr(widget, "min", None),
                    high=getattr(widget, "max", None), choices=choices)


def without_nan(prompt: dict) -> dict:
    """A queued prompt whose numbers are numbers, so that ComfyUI refuses NaN and infinity.

    It would accept them, and its history would no longer be JSON that a browser can read.
    """
    for node in prompt.get("prompt", {}).values():
        if str(node.get("class_type")).startswith("SSD_"):
            for name, value in node.get("inputs", {}).items():
                if isinstance(value, float) and not math.isfinite(value):
                    node["inputs"][name] = f"{value} is not a number"
    return prompt
