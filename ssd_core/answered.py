"""Read files that others write, and only while they answer.

A file on a drive that hangs, or one that takes for ever to read, would else hold up its reader,
everyone behind it, and the end of the program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

from .errors import SSDError

SECONDS = 5.0  # that a file may take to answer
T = TypeVar("T")
_waiting: dict[Path, threading.Thread] = {}  # readers that have had no answer yet
_lock = threading.Lock()


def answered(path: Path, read: Callable[[], T], seconds: float | None = None) -> T:
    """What `read()` returns or raises; SSDError if it takes longer than `seconds`, or SECONDS.

    It runs on a thread of its own, which nobody waits for when the program ends. While one reader
    of a file waits, others are refused at once.
    """
    seconds = SECONDS if seconds is None else seconds
    with _lock:
        waiting = _waiting.get(path)
        if waiting is not None and waiting.is_alive():
            raise no_answer(path, seconds)
        _waiting.pop(path, None)
    outcome: list[tuple[bool, Any]] = []
    thread = threading.Thread(target=copy_context().run, args=(_note, read, outcome), daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        with _lock:
            _waiting[path] = thread
        raise no_answer(path, seconds)
    returned, value = outcome[0]
    if not returned:
        raise value
    return value


def _note(read: Callable[[], T], outcome: list[tuple[bool, Any]]) -> None:
    try:
        outcome.append((True, read()))
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        outcome.append((False, error))


def no_answer(path: Path, seconds: float) -> SSDError:
    return SSDError(f"{path}: did not answer within {seconds:g} s: is its drive still there?")
