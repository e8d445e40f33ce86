"""`python -m ssd_core COMMAND`, and the console script `ssd`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

from .stopping import stopping_at_once
from .streams import fill_closed

TERMINATED = 143


def run() -> None:
    """Run the command on the command line."""
    fill_closed()
    try:
        with stopping_at_once():
            from .cli import main
        code = until_terminated(main)
    except ModuleNotFoundError as error:  # the nodes run without these packages
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"error: the commands need the package {error.name}: activate .venv, which python "
                 "install.py app makes, or pip install typer rich")
    sys.exit(code)


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
