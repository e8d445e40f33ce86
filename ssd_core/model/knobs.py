"""Knobs: every value that a user can set, described once on the dataclass field that holds it.

Checks read these descriptions and the field types. Flags, widgets, controls and help pages are
generated from them (see output/knobs.py).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from typing import Any, get_args, get_type_hints

from ..errors import SSDError
from ..unicode import is_unicode

LARGEST = 1 << 20  # default limit of integers: beyond any grid, safe in JSON
WANTED = {int: "a whole number", float: "a number", str: "text",
          bool: "True or False"}


@dataclass(frozen=True)
class Knob:
    """Legal values, help and visibility of a knob.

    help: one line for the user. above: an exclusive lower limit. shown: "basic", "expert", or
    "never" if no host offers it. own: the meaning of None, in words.
    """

    help: str
    low: float | None = None
    above: float | None = None
    high: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()
    shown: str = "expert"
    own: str = ""

    def allows(self, value: Any) -> bool:
        """Whether a value of the right type is legal."""
        if self.choices:
            return value in self.choices
        if isinstance(value, str):
            return is_unicode(value)
        return ((self.low is None or value >= self.low)
                and (self.above is None or value > self.above)
                and (self.high is None or value <= self.high))

    @property
    def legal(self) -> str:
        """The legal values, phrased for error messages; empty if every value is legal."""
        if self.choices:
            return f"choose one of {', '.join(self.choices)}"
        high = "" if self.high is None else f"{self.high:,}"
        if self.above is not None:
            return f"must lie above {self.above}" + (f", at most {high}" if high else "")
        if self.low is not None:
            return f"must lie in {self.low} .. {high}" if high else f"must be at least {self.low}"
        return f"must be at most {high}" if high else ""


def knob(default: Any, help: str, *, low: float | None = None, above: float | None = None,  # noqa: A002
         high: float | None = None, step: float | None = None, choices: tuple[str, ...] = (),
         shown: str = "expert", own: str = "") -> Any:
    """A dataclass field that carries its Knob.

    If the default is None, None is allowed and `own` says what it means; the annotation is the type
    of all other values.
    """
    described = Knob(help, low, above, high, step, choices, shown, own)
    return dataclasses.field(default=default, metadata={"knob": described})


def check_knobs(record: object) -> None:
    """Raise SSDError for the first field of a frozen dataclass with a wrong type or value.

    Converts numbers of other libraries, such as numpy's, to Python's.
    """
    owner: type = type(record)
    for name, kind, optional, described in declared(owner):
        value = getattr(record, name)
        if value is not None or not optional:
            value = typed(name, value, kind)
            require_legal(name, value, described)
            object.__setattr__(record, name, value)


def require_legal(name: str, value: Any, described: Knob | None) -> None:
    """Raise SSDError that states the legal range if a value of the right type is outside it."""
    if described is not None and not described.allows(value):
        shown = repr(value[:40]) if isinstance(value, str) else value
        raise SSDError(f"{name} {shown}: {described.legal or 'must be text'}")
    if type(value) is int and (described is None or described.high is None) and value > LARGEST:
        raise SSDError(f"{name} {str(value)[:20]}: must be at most {LARGEST:,}")


def typed(name: str, value: Any, kind: type) -> Any:
    """Return `value` as an int, float, str or bool; raise SSDError naming it if it is not one."""
    converted = _as(value, kind)
    if converted is None:
        raise SSDError(f"{name} {str(value)[:40]!r}: must be {WANTED[kind]}")
    return converted


def _as(value: Any, kind: type) -> Any:
    if kind in (str, bool):
        plain = value.item() if type(value).__name__ == "bool" and hasattr(value, "item") else value
        return plain if isinstance(plain, kind) else None
    if isinstance(value, bool):
        return None
    if kind is int:
        return int(value) if isinstance(value, Integral) else None
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    return float(value) if isinstance(value, Real) and math.isfinite(value) else None


@cache
def declared(record: type) -> tuple[tuple[str, type, bool, Knob | None], ...]:
    """(name, type, whether None is allowed, description) of every field of a dataclass."""
    hints = get_type_hints(record)
    return tuple((f.name, _not_none(hints[f.name]), f.default is None, f.metadata.get("knob"))
                 for f in fields(record))


def _not_none(hint: Any) -> type:
    """`int` for the hint `int | None`, which knobs have that may stay None during a run."""
    kind, *_ = (kind for kind in get_args(hint) or (hint,) if kind is not type(None))
    return kind
