"""All knobs with their descriptions, from which hosts make flags, widgets, controls and help.

Each knob is described on its field of a method or of Sampling; this module collects them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from ..engine.methods import METHODS
from ..errors import SSDError
from ..model.knobs import LARGEST, Knob, declared
from ..model.sampling import Sampling

UNSET_NUMBER = -1  # in numeric widgets of every host: use the method's or backbone's value
MOST_PICTURES = 64  # of one run in every host


@dataclass(frozen=True)
class Described:
    """A knob with its name, its type and the methods that have it."""

    name: str
    kind: type
    optional: bool  # whether the method or backbone can supply the value
    default: Any  # None if the method or backbone supplies it
    knob: Knob
    methods: tuple[str, ...] = ()

    @property
    def low(self) -> float | None:
        """The smallest legal number, for hosts that accept only closed ranges."""
        return self.knob.step if self.knob.above is not None else self.knob.low

    @property
    def high(self) -> float | None:
        """The largest legal number."""
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
        """The default, in words."""
        if self.default is None:
            return self.knob.own
        return ("on" if self.default else "off") if self.kind is bool else str(self.default)


def from_number(knob: Described, value: Any, zero_is_own: bool) -> Any:
    """Convert a widget's value to its knob's; None selects the method's or backbone's own value.

    -1 and, for widgets with fractional steps, any value between -1 and 0 become None.
    zero_is_own: 0 does too, as in files saved before -1 was introduced.
    """
    if isinstance(value, str | bool) or not knob.optional:
        return value
    own = UNSET_NUMBER <= value < 0 or (value == 0 and zero_is_own)
    return None if own else value


def described(record: type) -> list[Described]:
    """The visible knobs of a method's class or of Sampling, in order."""
    defaults = {f.name: f.default for f in fields(record)}
    name = getattr(record, "name", None)
    return [Described(field, kind, optional, defaults[field], knob, (name,) if name else ())
            for field, kind, optional, knob in declared(record)
            if knob is not None and knob.shown != "never"]


def sampling_knobs() -> list[Described]:
    """Seed, guidance, temperature and filters."""
    return described(Sampling)


def all_knobs(names: Iterable[str] | None = None) -> dict[str, Described]:
    """Every knob of these methods once, by name, basic knobs first. names: None: all methods."""
    merged: dict[str, Described] = {}
    for method in METHODS if names is None else names:
        for knob in described(METHODS[method]):
            known = merged.get(knob.name)
            merged[knob.name] = knob if known is None else _merged(known, knob)
    return dict(sorted(merged.items(), key=lambda item: item[1].knob.shown != "basic"))


def _merged(known: Described, other: Described) -> Described:
    """A knob of several methods; if their defaults differ, the default is the method's own."""
    methods = (*known.methods, *other.methods)
    if known.default == other.default:
        return replace(known, methods=methods)
    own = replace(known.knob, own="the method's own")
    return replace(known, methods=methods, optional=True, default=None, knob=own)


def check_pictures(count: int, name: str = "pictures") -> None:
    """Raise SSDError if one run cannot draw this many pictures. name: the host's name for it."""
    if count < 1:
        raise SSDError(f"{name} {count}: must be at least 1")
    if count > MOST_PICTURES:
        raise SSDError(f"{name} {count}: must be at most {MOST_PICTURES}; draw more pictures in "
                       "several runs, each with a seed of its own")
