"""Errors as users meet them: one sentence in ComfyUI's dialog, the last one in Doctor."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import comfy.model_management as mm

from ..ssd_core.errors import SSDError

last_error: list[str] = []  # at most one


class Refusal(SSDError):
    """An SSDError at a node's edge, where ComfyUI shows the type by its full name.

    The module of the pack is the path of its folder, and a user should see none of it.
    """


Refusal.__module__, Refusal.__qualname__ = "builtins", "SSD"  # ComfyUI prints "SSD"


def note(error: BaseException | str) -> None:
    last_error[:] = [error if isinstance(error, str) else f"{type(error).__name__}: {error}"]


def noted(execute: Callable) -> Callable:
    """A node's `execute` whose errors Doctor can tell and users can read; an interrupt is none."""
    @wraps(execute)
    def wrapper(*args, **inputs):
        try:
            return execute(*args, **inputs)
        except Exception as error:
            if not isinstance(error, mm.InterruptProcessingException):
                note(error)
            if isinstance(error, SSDError):
                raise Refusal(str(error)) from error
            raise

    return wrapper
