"""Read files of a folder that others write to: only regular ones, and only while they answer.

A pipe, or a file on a drive that hangs, would else hold up its reader, everyone behind it, and the
end of the program.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ssd_core import SSDError

SECONDS = 5.0  # that a file may take to answer
T = TypeVar("T")
_waiting: dict[Path, threading.Thread] = {}  # readers that have had no answer yet
_lock = threading.Lock()


def require_regular(path: Path) -> None:
    """Raise SSDError for a pipe, a device or a folder; a file that is missing passes."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # whoever reads it says why
    if not stat.S_ISREG(mode):
        raise SSDError(f"{path}: not a regular file: remove it, or choose a PNG")


def answered(path: Path, read: Callable[[], T]) -> T:
    """What `read()` returns or raises; SSDError if it takes longer than SECONDS.

    It runs on a thread of its own, which nobody waits for when the program ends. While one reader
    of a file waits, others are refused at once.
    """
    with _lock:
        waiting = _waiting.get(path)
        if waiting is not None and waiting.is_alive():
            raise no_answer(path)
        _waiting.pop(path, None)
    outcome: list[tuple[bool, Any]] = []
    thread = threading.Thread(target=_note, args=(read, outcome), daemon=True)
    thread.start()
    thread.join(SECONDS)
    if not outcome:
        with _lock:
            _waiting[path] = thread
        raise no_answer(path)
    returned, value = outcome[0]
    if not returned:
        raise value
    return value


def _note(read: Callable[[], T], outcome: list[tuple[bool, Any]]) -> None:
    try:
        outcome.append((True, read()))
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        outcome.append((False, error))


def no_answer(path: Path) -> SSDError:
    return SSDError(f"{path}: did not answer within {SECONDS:g} s: is its drive still there?")
