"""Knobs: every value that a user can set, described once on the dataclass field that holds it.

Checks, flags, widgets, controls, tables and translations all read the `specs` of a dataclass.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
from copy import copy
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from ..errors import SSDError
from ..files import is_unicode

LARGEST = 1 << 20  # default limit of integers: beyond any grid, safe in JSON
NEW_NUMBER = -1  # see `KnobSpec.fresh`
T = TypeVar("T")
WANTED = {int: "a whole number", float: "a number", str: "text",
          bool: "True or False"}


@dataclass(frozen=True)
class KnobSpec:
    """A knob: its type, default, legal values and help.

    kind: the type of all values but None, which is legal if the default is None. none_means: what
    None means, in words. help: one line for the user. above: an exclusive lower limit. visibility:
    "basic", "expert", or "never" if no host offers it. methods: those that have it, in a table of
    several methods. fresh: whether NEW_NUMBER stands for a number drawn at random.
    """

    name: str
    kind: type
    default: Any
    help: str = ""
    low: float | None = None
    above: float | None = None
    high: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()
    visibility: str = "expert"
    none_means: str = ""
    methods: tuple[str, ...] = ()
    fresh: bool = False

    @property
    def optional(self) -> bool:
        """Whether the method or backbone can supply the value."""
        return self.default is None

    @property
    def also(self) -> str:
        """What is legal besides its limits, to end a line about them."""
        return f", or {NEW_NUMBER} for a random one" if self.fresh else ""

    # Checks

    def checked(self, value: Any) -> Any:
        """The value, converted to the knob's type; raises SSDError if it is illegal."""
        if value is None and self.optional:
            return None
        value = coerce(self.name, value, self.kind)
        if self.fresh and value == NEW_NUMBER:
            return secrets.randbits(32)
        self.require_legal(value)
        return value

    def require_legal(self, value: Any) -> None:
        """Raise SSDError that states the legal range if a value of the right type is outside it."""
        if not self.allows(value):
            shown = repr(value[:40]) if isinstance(value, str) else value
            raise SSDError(f"{self.name} {shown}: {self.allowed_text or 'must be text'}")
        if type(value) is int and self.high is None and value > LARGEST:
            raise SSDError(f"{self.name} {str(value)[:20]}: must be at most {LARGEST:,}")

    def allows(self, value: Any) -> bool:
        """Whether a value of the right type is within the limits."""
        if self.choices:
            return value in self.choices
        if isinstance(value, str):
            return is_unicode(value)
        return ((self.low is None or value >= self.low)
                and (self.above is None or value > self.above)
                and (self.high is None or value <= self.high))

    # Limits and words for hosts

    @property
    def least(self) -> float | None:
        """The smallest legal number, for hosts that accept only closed ranges."""
        return self.step if self.above is not None else self.low

    @property
    def most(self) -> float | None:
        """The largest legal number."""
        return LARGEST if self.high is None and self.kind is int else self.high

    @property
    def allowed_text(self) -> str:
        """The legal values, phrased for error messages; empty if every value is legal."""
        if self.choices:
            return f"choose one of {', '.join(self.choices)}"
        high = "" if self.high is None else f"{self.high:,}"
        if self.above is not None:
            return f"must lie above {self.above}" + (f", at most {high}" if high else "")
        if self.low is not None:
            return (f"must lie in {self.low} .. {high}{self.also}" if high
                    else f"must be at least {self.low}")
        return f"must be at most {high}" if high else ""

    @property
    def range_text(self) -> str:
        """The legal values in a few words, for tables: "1 or more", "0 to 100", "a, b"."""
        if self.kind is bool:
            return "on, off"
        if self.choices:
            return ", ".join(self.choices)
        if self.above is not None:
            return f"above {self.above:g} to {self.high:g}"
        if self.high is None:
            return f"{self.low:g} or more"
        return f"{self.low:g} to {self.high:g}" if self.high < 1 << 53 else "0 to 2^64 - 1"

    @property
    def default_text(self) -> str:
        """The default, in words."""
        if self.default is None:
            return self.none_means
        return ("on" if self.default else "off") if self.kind is bool else str(self.default)


def knob(default: Any, help: str, **spec: Any) -> Any:
    """A dataclass field that is a knob; spec: further fields of its KnobSpec.

    The annotation is the type of all values but None.
    """
    return dataclasses.field(default=default, metadata={"help": help, **spec})


@cache
def specs(record: type) -> tuple[KnobSpec, ...]:
    """The fields of a dataclass, in order."""
    hints = get_type_hints(record)
    return tuple(KnobSpec(f.name, _not_none(hints[f.name]), f.default, **f.metadata)
                 for f in fields(record))


def _not_none(hint: Any) -> type:
    """`int` for the hint `int | None`, which knobs have that may stay None during a run."""
    kind, *_ = (kind for kind in get_args(hint) or (hint,) if kind is not type(None))
    return kind


class CheckedFirst(type):
    """The type of `KnobRecord`, whose calls make records."""

    if not TYPE_CHECKING:
        def __call__(cls, *values: Any, **named: Any) -> Any:
            known = {spec.name: spec for spec in specs(cls)}
            own = {**dict(zip(known, values, strict=False)), **named}
            return super().__call__(*values[len(known):], **{
                name: known[name].checked(value) if name in known else value
                for name, value in own.items()})


class KnobRecord(metaclass=CheckedFirst):
    """The base class of frozen dataclasses of knobs.

    Values are checked before they are set, and numbers of other libraries, such as numpy's, become
    Python's. Raises SSDError for the first value of a wrong type or out of range.
    """


def derived(record: T, **values: Any) -> T:
    """A copy of a checked, frozen record with other legal values, which is not checked again."""
    if not values:
        return record
    made = copy(record)
    vars(made).update(values)
    return made


def coerce(name: str, value: Any, kind: type) -> Any:
    """Return `value` as an int, float, str or bool; raise SSDError naming it if it is not one."""
    converted = _as(value, kind)
    if converted is None and isinstance(value, str | Real):
        raise SSDError(f"{name} {str(value)[:40]!r}: must be {WANTED[kind]}")
    if converted is None:
        raise SSDError(f"{name}: must be {WANTED[kind]}, not of type {type(value).__name__}")
    return converted


def _as(value: Any, kind: type) -> Any:
    if kind in (str, bool):
        plain = value.item() if type(value).__name__ == "bool" and hasattr(value, "item") else value
        return plain if isinstance(plain, kind) else None
    if isinstance(value, bool):
        return None
    if kind is int:
        whole = isinstance(value, Integral) or (isinstance(value, Real) and value % 1 == 0)
        return int(value) if whole else None
    if isinstance(value, int):
        return value if value.bit_length() <= 64 else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return float(value) if isinstance(value, Real) and math.isfinite(value) else None


def flag(default: Any, text: str, *names: str) -> Any:
    """Declare a field that becomes an option with this help text.

    default: dataclasses.MISSING: the option is required. names: of the option, instead of the
    field's own.
    """
    return dataclasses.field(default=default, metadata={"help": text, "names": names})
