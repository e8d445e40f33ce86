"""Widgets made from knobs, and the knobs' values from widgets.

A number that the method or the model may supply is -1 until somebody sets it. The knobs of a method
are numbers from the start: ComfyUI's page sets them to those of the connected model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from comfy_api.v0_0_2 import io

from ..ssd_core.backbones.presets import JANUS
from ..ssd_core.model.knobs import KnobSpec
from ..ssd_core.output.choices import choices, knobs_of
from ..ssd_core.output.knobs import UNSET_NUMBER, from_number

AUTO = "auto"  # the entry of a list that leaves the choice to the model
LABELS = {"rounds": "r / b (rounds)", "incremental": "i (staged rounds)"}  # as the paper has them
NONE = "none"  # the choice of no method
LIST = "method"  # the widget


def widgets(knobs: Iterable[KnobSpec], **extra: Mapping[str, Any]) -> list[io.Input]:
    """A widget for every knob; extra: further arguments by the knob's name."""
    return [widget(knob, **extra.get(knob.name, {})) for knob in knobs]


def widget(knob: KnobSpec, own: Any = None, folded: bool = False, **extra: Any) -> io.Input:
    """The widget of a knob.

    own: the number that a widget starts from if the knob has none by itself. folded: whether it is
    advanced on this node, as the knobs for experts are on every node.
    """
    unset = knob.optional and own is None
    means = f"{UNSET_NUMBER} = {knob.none_means}." if unset else ""
    options: dict[str, Any] = {
        "display_name": LABELS.get(knob.name), "optional": True,
        "advanced": True if folded or knob.visibility == "expert" else None,
        "tooltip": " ".join(filter(None, (knob.help, means)))}
    if knob.optional:
        options["default"] = knob.kind(UNSET_NUMBER if unset else own)
    return _made(knob, {"default": knob.default} | options | extra, unset)


def _made(knob: KnobSpec, options: dict[str, Any], unset: bool) -> io.Input:
    if knob.kind is bool:
        return io.Boolean.Input(knob.name, **options)
    if knob.kind is str:
        return io.Combo.Input(knob.name, options=list(knob.choices), **options)
    least = UNSET_NUMBER if unset else knob.least
    limits = {name: knob.kind(limit)
              for name, limit in (("min", least), ("max", knob.most)) if limit is not None}
    if knob.kind is int:
        return io.Int.Input(knob.name, **limits, **options)
    return io.Float.Input(knob.name, step=knob.step, **limits, **options)


def method(name: str, default: str, about: str, without: bool = False) -> io.Input:
    """The list of methods, each with its knobs.

    default: the choice of a new node, which ComfyUI's page sets. without: whether it may be NONE.
    """
    none = [io.DynamicCombo.Option(NONE, [])] if without else []
    return io.DynamicCombo.Input(
        name, optional=True, tooltip=about, extra_dict={"default": default},
        options=none + [io.DynamicCombo.Option(title, knob_widgets(title)) for title in choices()])


def knob_widgets(title: str) -> list[io.Input]:
    """The knobs of a choice."""
    return [widget(knob, getattr(JANUS, knob.name, None)) for knob in knobs_of(title)]


def values_of(knobs: Iterable[KnobSpec], widgets: Mapping[str, Any]) -> dict[str, Any]:
    """Knob values by name, from widget values by name; None where a widget is -1."""
    return {knob.name: value_of(knob, widgets[knob.name])
            for knob in knobs if knob.name in widgets}


def value_of(knob: KnobSpec, value: Any) -> Any:
    """A widget's value as its knob's."""
    number = knob.optional and isinstance(value, int | float) and not isinstance(value, bool)
    return from_number(knob, value) if number else value
