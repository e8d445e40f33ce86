"""Widgets made from knobs, in the order that saved workflows rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from comfy_api.v0_0_2 import io

from ..ssd_core.model.knobs import KnobSpec
from ..ssd_core.output.comfyui_workflow import WIDGETS
from ..ssd_core.output.knob_words import KNOB_WORDS
from ..ssd_core.output.knobs import UNSET_NUMBER, from_number
from .newer import ADVANCED

# Saved values are positional. The original widgets come in this order on every node that has them.
# Every other knob comes after all other widgets of its node, in the order of KNOB_WORDS; saved
# workflows may lack it.
FIRST = ("k_h", "k_v", "rounds", "incremental", "acceptance", "window", "drafts", "draft",
         "seed", "cfg", "temperature", "top_k", "top_p")
ORDER = {name: place for place, name in enumerate(KNOB_WORDS)}


def name_of(knob: KnobSpec) -> str:
    """The widget's name."""
    return WIDGETS.get(knob.name, knob.name)


def original_widgets(knobs: Iterable[KnobSpec], **extra: Mapping[str, Any]) -> list[io.Input]:
    """Widgets of the knobs in FIRST; extra: further arguments by the knob's name."""
    originals = sorted((knob for knob in knobs if knob.name in FIRST),
                       key=lambda knob: FIRST.index(knob.name))
    return [widget(knob, **extra.get(knob.name, {})) for knob in originals]


def added_widgets(knobs: Iterable[KnobSpec], **extra: Mapping[str, Any]) -> list[io.Input]:
    """Widgets of all other knobs; they are optional, because older workflows lack them."""
    others = sorted((knob for knob in knobs if knob.name not in FIRST),
                    key=lambda knob: ORDER.get(knob.name, len(ORDER)))
    return [widget(knob, optional=True, **extra.get(knob.name, {})) for knob in others]


def widget(knob: KnobSpec, about: str = "", none_means: str = "", **extra: Any) -> io.Input:
    """The widget of a knob.

    about: text before its help. none_means: what -1 means, if this node differs from the knob.
    """
    unset = f"{UNSET_NUMBER} = {none_means or knob.none_means}." if knob.optional else ""
    tooltip = " ".join(filter(None, (about, knob.help, unset)))
    default = UNSET_NUMBER if knob.default is None else knob.default
    options: dict[str, Any] = {"default": default, "tooltip": tooltip, **extra}
    if knob.visibility == "expert":
        options |= ADVANCED
    if knob.kind is bool:
        return io.Boolean.Input(name_of(knob), **options)
    if knob.kind is str:
        return io.Combo.Input(name_of(knob), options=list(knob.choices), **options)
    least = UNSET_NUMBER if knob.optional else knob.least
    if knob.kind is int:
        return io.Int.Input(name_of(knob), min=least, max=knob.most, **options)
    limits = {name: float(limit) for name, limit in (("min", least), ("max", knob.most))
              if limit is not None}
    options["default"] = float(options["default"])
    return io.Float.Input(name_of(knob), step=knob.step, **limits, **options)


def values_of(knobs: Iterable[KnobSpec], widgets: Mapping[str, Any],
              zero_is_own: bool = False) -> dict[str, Any]:
    """Knob values by knob name, from widget values by widget name; None is the method's own value.

    In workflows saved before -1 had this meaning, 0 has it; so 0 is read as None if the knob does
    not allow it, or if `zero_is_own`.
    """
    return {knob.name: from_number(knob, UNSET_NUMBER if knob.optional and not (
        knob.allows(0) or widgets[name_of(knob)]) else widgets[name_of(knob)])
            for knob in knobs if name_of(knob) in widgets}
