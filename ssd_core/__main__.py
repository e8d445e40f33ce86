"""`python -m ssd_core COMMAND`, and the console script `ssd`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED, TERMINATED = 130, 143


def stop(*_: object) -> None:
    """End at once. An exception could be lost inside the packages that are being imported."""
    os.write(sys.stderr.fileno(), b"interrupted\n")
    os._exit(INTERRUPTED)


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """Ctrl-C ends the program quietly during this block, before anything was begun."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # the caller ignores it
        yield
        return
    signal.signal(signal.SIGINT, stop)
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run() -> None:
    """Import the commands, which takes a second or two, and run the one on the command line."""
    try:
        with stopping_at_once():
            from .cli import main
    except ModuleNotFoundError as error:  # the nodes run without these packages
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"error: the commands need the package {error.name}: activate .venv, which python "
                 "install.py app makes, or pip install typer rich")
    sys.exit(until_terminated(main))


def until_terminated(main: Callable[[], int]) -> int:
    """The exit code of the commands; SIGTERM ends them as an exception, so that cleanup runs."""
    asked = []

    def end(*_: object) -> None:
        asked.append(True)
        sys.exit(TERMINATED)

    signal.signal(signal.SIGTERM, end)
    try:
        return main()
    except Exception:
        if asked:  # compiled code may raise another exception in its place
            return TERMINATED
        raise


if __name__ == "__main__":
    run()
