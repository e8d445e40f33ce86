"""What hosts make their flags, widgets, controls and help from: every knob, described once.

The descriptions stand on the fields of the methods and of Sampling; here they are only gathered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from ..engine.methods import METHODS
from ..model.knobs import LARGEST, Knob, declared
from ..model.sampling import Sampling

OWN_NUMBER = -1  # in every numeric widget of every host: leave the knob to its method or backbone


@dataclass(frozen=True)
class Described:
    """A knob with its name and type, and the names of the methods that have it."""

    name: str
    kind: type
    optional: bool  # whether it may be left to its method or backbone
    default: Any  # None where that depends on method or backbone
    knob: Knob
    methods: tuple[str, ...] = ()

    @property
    def low(self) -> float | None:
        """The least legal number, for hosts that take only closed ranges."""
        return self.knob.step if self.knob.above is not None else self.knob.low

    @property
    def high(self) -> float | None:
        """The greatest legal number."""
        return LARGEST if self.knob.high is None and self.kind is int else self.knob.high

    @property
    def range(self) -> str:
        """The legal values in a few words, for tables: "1 or more", "0 to 100", "a, b"."""
        knob = self.knob
        if self.kind is bool:
            return "on, off"
        if knob.choices:
            return ", ".join(knob.choices)
        if knob.above is not None:
            return f"above {knob.above:g} to {knob.high:g}"
        if knob.high is None:
            return f"{knob.low:g} or more"
        return f"{knob.low:g} to {knob.high:g}" if knob.high < 1 << 53 else "0 to 2^64 - 1"

    @property
    def usual(self) -> str:
        """What it is where nobody sets it, in words."""
        if self.default is None:
            return self.knob.own
        return ("on" if self.default else "off") if self.kind is bool else str(self.default)


def from_number(one: Described, value: Any, zero_is_own: bool) -> Any:
    """What a widget's value means to its knob; None leaves it to its method or backbone.

    -1 does so in every host, and for a widget that steps by fractions whatever lies between it and
    0. zero_is_own: what was saved before that was agreed on said it by 0.
    """
    if isinstance(value, str | bool) or not one.optional:
        return value
    own = OWN_NUMBER <= value < 0 or (value == 0 and zero_is_own)
    return None if own else value


def described(record: type) -> list[Described]:
    """The knobs of a method's class, or of Sampling, that a host offers, in their order."""
    defaults = {f.name: f.default for f in fields(record)}
    name = getattr(record, "name", None)
    return [Described(field, kind, optional, defaults[field], knob, (name,) if name else ())
            for field, kind, optional, knob in declared(record)
            if knob is not None and knob.shown != "never"]


def sampling_knobs() -> list[Described]:
    """Seed, guidance, temperature and filters."""
    return described(Sampling)


def all_knobs(names: Iterable[str] | None = None) -> dict[str, Described]:
    """Every knob of these methods (None: of all) once, by its name, basic ones first."""
    merged: dict[str, Described] = {}
    for method in METHODS if names is None else names:
        for one in described(METHODS[method]):
            known = merged.get(one.name)
            merged[one.name] = one if known is None else _merged(known, one)
    return dict(sorted(merged.items(), key=lambda item: item[1].knob.shown != "basic"))


def _merged(known: Described, other: Described) -> Described:
    """The knob of several methods: left to the method where they disagree about its default."""
    methods = (*known.methods, *other.methods)
    if known.default == other.default:
        return replace(known, methods=methods)
    own = replace(known.knob, own="the method's own")
    return replace(known, methods=methods, optional=True, default=None, knob=own)
