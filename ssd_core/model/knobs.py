"""Whether values are of the types that their names ask for: one check for all that users set."""

from __future__ import annotations

import math
import types
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from typing import Any, Union, get_args, get_origin, get_type_hints

from ..errors import SSDError

WANTED = {int: "a number without a fraction", float: "a number", str: "text",
          bool: "True or False"}


def check_types(record: Any) -> None:
    """Raise SSDError for the first field of a frozen dataclass that is not of its type.

    Numbers of other libraries, such as numpy's, are kept as Python's own.
    """
    for name, kind, optional in _kinds(type(record)):
        value = getattr(record, name)
        if value is not None or not optional:
            object.__setattr__(record, name, typed(name, value, kind))


def typed(name: str, value: Any, kind: type) -> Any:
    """`value` as an int, float, str or bool; SSDError naming it where it is none."""
    found = _as(value, kind)
    if found is None:
        raise SSDError(f"{name} {str(value)[:40]!r}: must be {WANTED[kind]}")
    return found


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
def _kinds(record: type) -> list[tuple[str, type, bool]]:
    """(name, type, whether None will do) of every field."""
    hints = get_type_hints(record)
    return [(f.name, *_parts(hints[f.name])) for f in fields(record)]


def _parts(hint: Any) -> tuple[type, bool]:
    if get_origin(hint) in (Union, types.UnionType):
        kind, = (one for one in get_args(hint) if one is not type(None))
        return kind, True
    return hint, False
