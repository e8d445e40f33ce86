"""What inputs may be: checked here for all nodes, since links and programs bring any value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from ..ssd_core.model.knobs import KnobSpec
from .language import localized_for_all
from .types import LoadedModel, Run

KINDS = {"INT": int, "FLOAT": float, "STRING": str, "BOOLEAN": bool, "COMBO": str}
LINKS = {"SSD_MODEL": (LoadedModel, "Load Model"), "SSD_RUN": (Run, "a node with the output run"),
         "IMAGE": (torch.Tensor, "a node with images"), "MASK": (torch.Tensor, "a node with masks")}
LISTS = "COMFY_DYNAMICCOMBO_V3"  # of choices, each with inputs of its own
OPEN = ("size", "model", "heads", "image")  # lists from files: the node says what is legal


def complete(node: type[io.ComfyNode], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with the defaults of those that a program may leave out.

    Raises SSDError for the first value that is of a wrong type, or that its widget would refuse.
    """
    known = dict(values)
    for one in node.define_schema().inputs:
        if one.io_type == LISTS:
            chosen = values.get(one.id)
            if chosen is not None and not isinstance(chosen, Mapping):
                known[one.id] = chosen = {one.id: chosen}  # a bare title
            check_choice(node, one, chosen)
            known.setdefault(one.id, {one.id: one.extra_dict["default"]})
        elif (value := values.get(one.id)) is not None:
            check_value(one, value)
        elif one.io_type in KINDS and one.optional:
            known[one.id] = one.default
    return known


def check_value(one: io.Input, value: Any) -> None:
    """Raise SSDError for a value that this input cannot take."""
    if one.io_type in LINKS:
        kind, giver = LINKS[one.io_type]
        if not isinstance(value, kind):
            raise SSDError(f"{one.id} {str(value)[:40]!r}: connect {giver}")
    elif one.io_type in KINDS:
        asks = one.id == "prompt" and one.default  # Finish can do without
        if asks and (complaint := complaint_about_prompt(value)):
            raise SSDError(f"prompt: {complaint}")
        spec_of(one).checked(value)


def check_choice(node: type[io.ComfyNode], one: io.Input, value: Any) -> None:
    """Raise SSDError for a choice that a list lacks, and for inputs that the choice lacks.

    ComfyUI leaves out both before a node runs, so they are looked up in the prompt.
    """
    sent = sent_to(node)
    title = (value or {}).get(one.id, sent.get(one.id, one.extra_dict["default"]))
    options = {option.key: option.inputs for option in one.options}
    if not isinstance(title, str) or title not in options:
        raise SSDError(f"{one.id} {str(title)[:40]!r}: choose one of {', '.join(options)}")
    own = {each.id: each for each in options[title]}
    named = [name.removeprefix(f"{one.id}.") for name in sent if name.startswith(f"{one.id}.")]
    if unknown := [name for name in named if name not in own]:
        raise SSDError(f"{one.id} {title} has no {unknown[0]}: "
                       + (f"it has {', '.join(own)}" if own else "it has no settings"))
    for name, each in own.items():
        if (given := (value or {}).get(name)) is not None:
            check_value(each, given)


def sent_to(node: type[io.ComfyNode]) -> Mapping[str, Any]:
    """A node's inputs in the queued prompt, as they were sent; {} if the node does not know it."""
    hidden = getattr(node, "hidden", None)
    prompt = getattr(hidden, "prompt", None) or {}
    return prompt.get(getattr(hidden, "unique_id", None), {}).get("inputs", {})


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
