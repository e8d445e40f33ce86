"""Errors as users see them: one sentence in ComfyUI's dialog; the last is kept."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import wraps

from ..ssd_core.errors import SSDError
from ..ssd_core.model.surroundings import undisturbed
from . import limits
from .language import localized

last_error: list[str] = []  # at most one


class Refusal(SSDError):
    """An SSDError as raised by a node; ComfyUI shows its type as "SSD".

    Otherwise it would show the full name of the type, which contains the path of the pack's folder.
    """


Refusal.__module__, Refusal.__qualname__ = "builtins", "SSD"  # ComfyUI prints "SSD"


def register() -> None:
    """Leave the traceback of a Refusal out of ComfyUI's console, which prints its sentence too."""
    logging.getLogger().addFilter(lambda record: not (
        isinstance(sys.exc_info()[1], Refusal) and record.getMessage().startswith("Traceback")))


def note(error: BaseException | str) -> None:
    last_error[:] = [error if isinstance(error, str) else f"{type(error).__name__}: {error}"]


def readable_errors(execute: Callable) -> Callable:
    """Wrap a node's `execute` to give missing inputs their defaults, to check all values, which
    links and programs bring in any form, to make errors readable and to store the last one.

    Interrupts pass through. An explicit decorator, because ComfyUI clones node classes.
    """
    @wraps(execute)
    def wrapper(node, **inputs):
        try:
            with undisturbed():  # by what other packs left in torch
                return execute(node, **limits.complete(node, inputs))
        except Exception as error:
            note(error)  # an interrupt is no Exception
            if isinstance(error, SSDError):
                raise Refusal(localized(str(error))) from error
            raise

    return wrapper
