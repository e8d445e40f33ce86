"""Ctrl-C during training: the step under way is finished first, so that a checkpoint is whole."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..launched import is_first

FINISHING = b"\nfinishing the step and writing a checkpoint; Ctrl-C again ends at once\n"


class Interrupts:
    """Whether Ctrl-C was pressed; a second one raises KeyboardInterrupt at once."""

    def __init__(self) -> None:
        self.came = False

    def note(self, *_: object) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True
        if is_first():
            with suppress(OSError, ValueError):  # without Python's buffers, which may be in use
                os.write(sys.stderr.fileno(), FINISHING)


@contextmanager
def held_back() -> Iterator[Interrupts]:
    """Ctrl-C only sets `came` during the block.

    A program that ignores Ctrl-C, and a thread, which gets no signals, stay as they are.
    """
    found = Interrupts()
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield found
        return
    signal.signal(signal.SIGINT, found.note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
