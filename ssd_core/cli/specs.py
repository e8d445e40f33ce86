"""Parse methods written as text: `ssd`, or with knobs `ssd:rounds=1:acceptance=coupled`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_type_hints

from ..engine.methods import METHODS, Method
from ..errors import SSDError
from ..model.knobs import WANTED
from ..runs.comparison import every_method

ALL = "all"
SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def build_method(name: str, knobs: dict[str, Any]) -> Method:
    """The method with these knobs, its name in any case; SSDError if either does not exist."""
    name = name.lower()
    require_known(name, knobs)
    return METHODS[name](**knobs)


def require_known(name: str, knobs: Iterable[str]) -> None:
    """Raise SSDError unless the method exists and has these knobs."""
    if name not in METHODS:
        raise SSDError(f"method {name!r}: choose one of {', '.join(METHODS)}")
    own = [f.name for f in fields(METHODS[name])]
    foreign = next((knob for knob in knobs if knob not in own), None)
    if foreign is not None:
        known = f"its knobs are {', '.join(own)}" if own else "it has no knobs"
        raise SSDError(f"method {name} has no knob {foreign}: {known}")


def parse_method(text: str) -> Method:
    """Read NAME:KNOB=VALUE:...; knobs may be written with dashes."""
    name, *settings = text.strip().split(":")
    name, values = name.lower(), {}
    for setting in settings:
        knob, equals, value = setting.partition("=")
        if not equals:
            raise SSDError(f"method {text!r}: write knobs as NAME:KNOB=VALUE, like ssd:rounds=1")
        values[knob.strip().replace("-", "_")] = value.strip()
    require_known(name, values)
    hints = get_type_hints(METHODS[name])
    return build_method(name, {knob: value_of(knob, value, hints[knob])
                               for knob, value in values.items()})


def parse_methods(text: str) -> list[tuple[str, Method]]:
    """Read comma-separated specs as (spec, method); the spec is the method's label in tables.

    "all" is every method at its own settings.
    """
    if text.strip().lower() == ALL:
        return list(every_method().items())
    specs = [spec.strip() for spec in text.split(",") if spec.strip()]
    if not specs:
        raise SSDError(f"methods {text!r}: name at least one of {', '.join(METHODS)}")
    twice = next((spec for spec in specs if specs.count(spec) > 1), None)
    if twice:
        raise SSDError(f"methods: {twice} is named twice")
    return [(spec, parse_method(spec)) for spec in specs]


def value_of(knob: str, text: str, hint: Any) -> Any:
    """`text` converted to the knob's declared type."""
    kind = next(k for k in getattr(hint, "__args__", (hint,)) if k is not type(None))
    try:
        return SWITCH[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError) as error:
        raise SSDError(f"{knob} {text!r}: must be {WANTED[kind]}") from error
