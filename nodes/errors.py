"""The last error, for Doctor."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import comfy.model_management as mm

last_error: list[str] = []  # at most one


def note(error: BaseException | str) -> None:
    last_error[:] = [error if isinstance(error, str) else f"{type(error).__name__}: {error}"]


def noted(execute: Callable) -> Callable:
    """A node's `execute` whose errors Doctor can tell; an interrupt is none."""
    @wraps(execute)
    def wrapper(*args, **inputs):
        try:
            return execute(*args, **inputs)
        except Exception as error:
            if not isinstance(error, mm.InterruptProcessingException):
                note(error)
            raise

    return wrapper
