"""Checks of the types of what a caller hands in, by the annotations of the functions that take it.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import torch

from .errors import SSDError

F = TypeVar("F", bound=Callable[..., Any])
UNIONS = (Union, types.UnionType)
SHOWN = 40  # letters of a text in a line about it
NUMBERS: dict[Any, type] = {int: Integral, float: Real}
WORDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "True or False",
         "NoneType": "None"}


def checked(*others: str) -> Callable[[F], F]:
    """Let a function raise SSDError for an argument of a wrong type.

    others: parameters that the function checks itself, since it takes more than its annotation.
    """
    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checking(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs).arguments
            require_types({name: value for name, value in bound.items() if name not in others},
                          hints(function))
            return function(*args, **kwargs)

        return checking  # type: ignore[return-value]
    return decorate


@functools.cache
def hints(owner: Any) -> Mapping[str, Any]:
    """The annotations of a function or a class."""
    return get_type_hints(owner)


def require_types(values: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise SSDError for the first value whose type is not the wanted one."""
    for name, value in values.items():
        if is_of(value, wanted[name]):
            continue
        if isinstance(value, str | Real):
            raise SSDError(f"{name} {shown(value)}: must be {in_words(wanted[name])}")
        raise SSDError(f"{name}: must be {in_words(wanted[name])}, not {in_words(kind_of(value))}")


def kind_of(value: Any) -> type:
    return type if isinstance(value, type) else type(value)


def shown(value: str | Real) -> str:
    """A value in a line about it."""
    return repr(str(value)[:SHOWN])


def require_fields(record: Any, *others: str) -> None:
    """The same for the fields that a dataclass is made with, but for `others`."""
    require_types({f.name: getattr(record, f.name) for f in fields(record)
                   if f.init and f.name not in others}, hints(record.__class__))


def is_of(value: Any, hint: Any) -> bool:
    """Whether a value has an annotated type, and what it holds, too."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if hint is torch.device:  # what is used of it
        return isinstance(getattr(value, "type", None), str)
    if origin in UNIONS:
        return any(is_of(value, each) for each in inner)
    if origin is type:
        return isinstance(value, type) and issubclass(value, inner[0])
    if origin is not None and not isinstance(value, (list, tuple) if origin is tuple else origin):
        return False
    if origin is not None and issubclass(origin, Mapping):
        return all(is_of(key, inner[0]) and is_of(each, inner[1]) for key, each in value.items())
    if origin is not None:
        return origin is Callable or all(is_of(each, inner[0]) for each in value)
    if hint in NUMBERS:
        return isinstance(value, NUMBERS[hint]) and not isinstance(value, bool)
    return isinstance(value, hint)


def in_words(hint: Any) -> str:
    """ "text or None"."""
    inner = [each for each in get_args(hint) if each is not Ellipsis]
    if get_origin(hint) in UNIONS:
        return " or ".join(dict.fromkeys(in_words(each) for each in inner))
    name = getattr(get_origin(hint) or hint, "__name__", str(hint))
    if inner and name != "Callable":
        return f"a {name} of {in_words(inner[-1])}"
    return WORDS.get(name, f"a {name}" if name[:1] not in "aeioAEIO" else f"an {name}")
