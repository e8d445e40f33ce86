"""What inputs may be: checked here for all nodes, since links and programs bring any value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from ..ssd_core.model.knobs import KnobSpec
from ..ssd_core.output.choices import choices, knobs_of
from ..ssd_core.output.knobs import UNSET_NUMBER, sampling_knobs
from .language import localized_for_all
from .types import LoadedModel, Run
from .widgets import value_of

KINDS = {"INT": int, "FLOAT": float, "STRING": str, "BOOLEAN": bool, "COMBO": str}
LINKS = {"SSD_MODEL": (LoadedModel, "Load Model"), "SSD_RUN": (Run, "a node with the output run"),
         "IMAGE": (torch.Tensor, "a node with images"), "MASK": (torch.Tensor, "a node with masks")}
LISTS = "COMFY_DYNAMICCOMBO_V3"  # of choices, each with inputs of its own
OPEN = ("size", "model", "heads", "image")  # lists from files: the node says what is legal


def complete(node: type[io.ComfyNode], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with the defaults of those that a program may leave out.

    Raises SSDError for the first value that is of a wrong type, or that its widget would refuse.
    """
    known, slots = dict(values), node.define_schema().inputs
    for slot in slots:
        if slot.io_type == LISTS:
            chosen = values.get(slot.id)
            if chosen is not None and not isinstance(chosen, Mapping):
                known[slot.id] = chosen = {slot.id: chosen}  # a bare title
            check_choice(node, slot, chosen)
            known.setdefault(slot.id, {slot.id: slot.extra_dict["default"]})
        elif (value := values.get(slot.id)) is not None:
            known[slot.id] = checked(slot, value, sampling_knobs())
        elif slot.io_type in KINDS and slot.optional:
            known[slot.id] = slot.default
    for slot in slots:  # what came by a link may be nothing
        if not slot.optional and slot.id in values and values[slot.id] is None:
            giver = LINKS[slot.io_type][1] if slot.io_type in LINKS else "a node that gives it"
            raise SSDError(f"{slot.id}: nothing came by its link: connect {giver}")
    return known


def checked(slot: io.Input, value: Any, knobs: Iterable[KnobSpec] = ()) -> Any:
    """The value as the input takes it, 3 for 3.0; knobs: those that the input may be the widget of.

    Raises SSDError for a value that it cannot take.
    """
    if slot.io_type in LINKS:
        kind, giver = LINKS[slot.io_type]
        if isinstance(value, str | int | float):
            raise SSDError(f"{slot.id} {str(value)[:40]!r}: connect {giver}")
        if not isinstance(value, kind):
            raise SSDError(f"{slot.id}: it is of type {type(value).__name__}: connect {giver}")
    elif slot.io_type in KINDS:
        asks = slot.id == "prompt" and slot.default  # Finish can do without
        if asks and (complaint := complaint_about_prompt(value)):
            raise SSDError(f"prompt: {complaint}")
        own = next((knob for knob in knobs if knob.name == slot.id), None)
        if own and getattr(slot, "min", None) == UNSET_NUMBER:  # outside the knob's own range
            taken = own.checked(value_of(own, value))
            return value if taken is None else taken
        return spec_of(slot).checked(value)
    return value


def check_choice(node: type[io.ComfyNode], slot: io.Input, value: Any) -> None:
    """Raise SSDError for a choice that a list lacks, and for inputs that the choice lacks.

    ComfyUI leaves out both before a node runs, so they are looked up in the prompt.
    """
    sent = sent_to(node)
    title = (value or {}).get(slot.id, sent.get(slot.id, slot.extra_dict["default"]))
    options = {option.key: option.inputs for option in slot.options}
    if not isinstance(title, str) or title not in options:
        plain = isinstance(title, str | int | float)
        shown = f" {str(title)[:40]!r}" if plain else ""
        raise SSDError(f"{slot.id}{shown}: choose one of {', '.join(options)}")
    own = {each.id: each for each in options[title]}
    named = [name.removeprefix(f"{slot.id}.") for name in sent if name.startswith(f"{slot.id}.")]
    if unknown := [name for name in named if name not in own]:
        raise SSDError(f"{slot.id} {title} has no {unknown[0]}: "
                       + (f"it has {', '.join(own)}" if own else "it has no settings"))
    for name, each in own.items():
        if (number := (value or {}).get(name)) is not None:
            checked(each, number, knobs_of(title) if title in choices() else ())


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
