"""Widgets made from knobs, in the order that saved workflows rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from comfy_api.v0_0_2 import io

from ..ssd_core.front.knob_words import KNOB_WORDS
from ..ssd_core.front.knobs import OWN_NUMBER, Described, from_number
from ..ssd_core.front.workflow import WIDGETS
from .newer import ADVANCED

# Saved values are positional. These widgets came first, in this order, on every node that has
# them. Every other knob comes after all other widgets of its node, in the order of KNOB_WORDS, and
# may be missing.
FIRST = ("k_h", "k_v", "rounds", "incremental", "acceptance", "window", "drafts", "draft",
         "seed", "cfg", "temperature", "top_k", "top_p")
ORDER = {name: place for place, name in enumerate(KNOB_WORDS)}


def name_of(one: Described) -> str:
    """The widget's name."""
    return WIDGETS.get(one.name, one.name)


def first(knobs: Iterable[Described], **extra: Mapping[str, Any]) -> list[io.Input]:
    """Widgets of the knobs that nodes had from the start; extra: arguments by knob."""
    known = sorted((one for one in knobs if one.name in FIRST), key=lambda k: FIRST.index(k.name))
    return [widget(one, **extra.get(one.name, {})) for one in known]


def later(knobs: Iterable[Described], **extra: Mapping[str, Any]) -> list[io.Input]:
    """Widgets of all other knobs; optional, because older workflows lack them."""
    others = sorted((one for one in knobs if one.name not in FIRST),
                    key=lambda one: ORDER.get(one.name, len(ORDER)))
    return [widget(one, optional=True, **extra.get(one.name, {})) for one in others]


def widget(one: Described, about: str = "", own: str = "", **extra: Any) -> io.Input:
    """about: text before the help; own: what -1 means here, if the knob's own text does not fit."""
    own_number = f"{OWN_NUMBER} = {own or one.knob.own}." if one.optional else ""
    options: dict[str, Any] = {"default": OWN_NUMBER if one.default is None else one.default,
                               "tooltip": " ".join(filter(None, (about, one.knob.help,
                                                                 own_number))), **extra}
    if one.knob.shown == "expert":
        options |= ADVANCED
    if one.kind is bool:
        return io.Boolean.Input(name_of(one), **options)
    if one.kind is str:
        return io.Combo.Input(name_of(one), options=list(one.knob.choices), **options)
    least = OWN_NUMBER if one.optional else one.low
    if one.kind is int:
        return io.Int.Input(name_of(one), min=least, max=one.high, **options)
    limits = {name: float(limit) for name, limit in (("min", least), ("max", one.high))
              if limit is not None}
    options["default"] = float(options["default"])
    return io.Float.Input(name_of(one), step=one.knob.step, **limits, **options)


def values_of(knobs: Iterable[Described], widgets: Mapping[str, Any],
              zero_is_own: bool = False) -> dict[str, Any]:
    """Knob values by knob name, from widgets by widget name; None is the method's own.

    In workflows saved before -1 had this meaning, 0 has it: if 0 is illegal, or zero_is_own.
    """
    return {one.name: from_number(one, widgets[name_of(one)],
                                  zero_is_own or not one.knob.allows(0))
            for one in knobs if name_of(one) in widgets}
