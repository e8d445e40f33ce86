"""Ctrl-C while modules are imported, which takes a second or two."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

INTERRUPTED = 130


def stop(*_: object) -> None:
    """End at once. An exception could be lost inside the packages that are being imported."""
    with suppress(OSError, ValueError, AttributeError):  # nobody reads it
        os.write(sys.stderr.fileno(), b"interrupted\n")
    os._exit(INTERRUPTED)


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """Ctrl-C ends the program quietly during this block, before anything was begun."""
    ignored = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    if ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, stop)
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)
