"""Widgets made from knobs, and the knobs' values from widgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from ..ssd_core.model.knobs import WANTED, KnobSpec, coerce

AUTO = "auto"  # the value of a widget that leaves a number to the method or the model
LONGEST_NUMBER = 20  # characters of a number
LABELS = {"rounds": "r / b (rounds)", "incremental": "i (staged rounds)"}  # as the paper has them


def widgets(knobs: Iterable[KnobSpec], **extra: Mapping[str, Any]) -> list[io.Input]:
    """A widget for every knob; extra: further arguments by the knob's name."""
    return [widget(knob, **extra.get(knob.name, {})) for knob in knobs]


def widget(knob: KnobSpec, about: str = "", none_means: str = "", folded: bool = False,
           **extra: Any) -> io.Input:
    """The widget of a knob.

    about: text before its help. none_means: what "auto" means, if this node differs from the knob.
    folded: whether it is advanced on this node, as the knobs for experts are on every node.
    """
    unset = f"{AUTO} = {none_means or knob.none_means}." if knob.optional else ""
    options: dict[str, Any] = {"display_name": LABELS.get(knob.name),
                               "tooltip": " ".join(filter(None, (about, knob.help, unset)))}
    made = _made(knob, options | extra)
    return advanced(made) if folded or knob.visibility == "expert" else made


def _made(knob: KnobSpec, options: dict[str, Any]) -> io.Input:
    if knob.optional:
        return number_or_auto(knob.name, **options)
    options.setdefault("default", knob.default)
    if knob.kind is bool:
        return io.Boolean.Input(knob.name, **options)
    if knob.kind is str:
        return io.Combo.Input(knob.name, options=list(knob.choices), **options)
    limits = {name: knob.kind(limit)
              for name, limit in (("min", knob.least), ("max", knob.most)) if limit is not None}
    if knob.kind is int:
        return io.Int.Input(knob.name, **limits, **options)
    return io.Float.Input(knob.name, step=knob.step, **limits, **options)


def number_or_auto(name: str, default: str = AUTO, **options: Any) -> io.Input:
    """A field for a number or a word such as "auto"; links may bring numbers, too."""
    return io.MultiType.Input(io.String.Input(name, default=default, **options),
                              [io.Int, io.Float])


def advanced(made: io.Input) -> io.Input:
    """Hide a widget until the user asks for the advanced inputs."""
    return describe(made, advanced=True)  # ComfyUI 0.3.64 has no argument for it


def describe(made: io.Input, **facts: Any) -> io.Input:
    """Tell the page something about an input; web/comfy/advanced.js reads it."""
    made.extra_dict = {**made.extra_dict, **facts}
    return made


def values_of(knobs: Iterable[KnobSpec], widgets: Mapping[str, Any]) -> dict[str, Any]:
    """Knob values by name, from widget values by name; None where a widget says "auto"."""
    return {knob.name: value_of(knob, widgets[knob.name])
            for knob in knobs if knob.name in widgets}


def value_of(knob: KnobSpec, value: Any) -> Any:
    """A widget's value as its knob's; raises SSDError for a text that is no legal number."""
    if not knob.optional:
        return value
    return None if is_auto(value) else knob.checked(number(knob.name, value, knob.kind))


def is_auto(value: Any, word: str = AUTO) -> bool:
    """Whether a field leaves its value open by this word; an empty field does, too."""
    return isinstance(value, str) and value.strip().lower() in ("", word)


def number(name: str, value: Any, kind: type, word: str = AUTO) -> Any:
    """The number in a field or from a link, where 384.0 is a whole number, too.

    Raises SSDError for anything else. word: what the field may say instead.
    """
    whole = kind is int and isinstance(value, float) and value.is_integer()
    typed = isinstance(value, str) and len(value) <= LONGEST_NUMBER
    try:
        return coerce(name, kind(value) if whole or typed else value, kind)
    except (ValueError, SSDError):
        raise SSDError(f"{name} {str(value)[:LONGEST_NUMBER]!r}: must be {WANTED[kind]}, or "
                       f"{word}") from None
