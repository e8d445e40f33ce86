"""All knobs with their descriptions, from which hosts make flags, widgets, controls and help.

Each knob is described on its field of a method or of Sampling; this module collects them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..engine.methods import METHODS
from ..errors import SSDError
from ..model.knobs import KnobSpec, specs
from ..model.sampling import Sampling

UNSET_NUMBER = -1  # in numeric widgets of every host: use the method's or backbone's value
MOST_PICTURES = 64  # of one run in every host


def from_number(knob: KnobSpec, value: Any) -> Any:
    """Convert a widget's value to its knob's; None selects the method's or backbone's own value.

    -1 and, for widgets with fractional steps, any value between -1 and 0 become None.
    """
    if isinstance(value, str | bool) or not knob.optional:
        return value
    return None if UNSET_NUMBER <= value < 0 else value


def visible_knobs(record: type) -> list[KnobSpec]:
    """The knobs of a method's class or of Sampling that hosts offer, in order."""
    return [spec for spec in specs(record) if spec.visibility != "never"]


def sampling_knobs() -> list[KnobSpec]:
    """Seed, guidance, temperature and filters."""
    return visible_knobs(Sampling)


def all_knobs(names: Iterable[str] | None = None) -> dict[str, KnobSpec]:
    """Every knob of these methods once, by name, basic knobs first. names: None: all methods."""
    merged: dict[str, KnobSpec] = {}
    for method in METHODS if names is None else names:
        for knob in visible_knobs(METHODS[method]):
            knob = replace(knob, methods=(method,))
            known = merged.get(knob.name)
            merged[knob.name] = knob if known is None else _merged(known, knob)
    return dict(sorted(merged.items(), key=lambda item: item[1].visibility != "basic"))


def _merged(known: KnobSpec, other: KnobSpec) -> KnobSpec:
    """A knob of several methods; if their defaults differ, the default is the method's own."""
    methods = (*known.methods, *other.methods)
    if known.default == other.default:
        return replace(known, methods=methods)
    return replace(known, methods=methods, default=None, none_means="the method's own")


def check_pictures(count: int, name: str = "pictures") -> None:
    """Raise SSDError if one run cannot draw this many pictures. name: the host's name for it."""
    if count < 1:
        raise SSDError(f"{name} {count}: must be at least 1")
    if count > MOST_PICTURES:
        raise SSDError(f"{name} {count}: must be at most {MOST_PICTURES}; draw more pictures in "
                       "several runs, each with a seed of its own")
