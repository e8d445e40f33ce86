"""What a program says, wherever its output goes: to a full disk, to a closed pipe, or nowhere.

Pictures are saved whether or not anybody can read about them, so no line that cannot be written
ends a run. Without torch.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO


class Said:
    """A text stream that never fails. `error`: of the first line that was lost, except to a reader
    who left; None where nobody could have read it.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and not stream.closed else Nowhere()
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError) as error:  # ValueError: it was closed meanwhile
            return self._lost(error, len(text))

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._lost(error, 0)

    def _lost(self, error: OSError | ValueError, count: int) -> int:
        """Give the stream up: what it holds would be written again when the program ends."""
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            self.error = self.error or error
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        self._stream = Nowhere()
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Nowhere(io.StringIO):
    """Forgets what is written."""

    encoding, errors = "utf-8", "backslashreplace"  # type: ignore[assignment]

    def write(self, text: str) -> int:
        return len(text)


@contextmanager
def safe_output() -> Iterator[Said]:
    """Let nothing that is printed fail during the block; yields what stands for stdout."""
    earlier = sys.stdout, sys.stderr, sys.stdin
    for stream in earlier[:2]:
        # A console may lack a prompt's characters.
        if isinstance(stream, io.TextIOWrapper) and not stream.closed:
            stream.reconfigure(errors="backslashreplace")
    said, complained = map(Said, earlier[:2])
    sys.stdout, sys.stderr = said, complained  # type: ignore[assignment]
    if sys.stdin is None or sys.stdin.closed:
        sys.stdin = Nowhere()
    try:
        yield said
    finally:
        for stream in (said, complained):
            stream.flush()
        sys.stdout, sys.stderr, sys.stdin = earlier


def fill_closed() -> None:
    """Open what a shell has closed (`2>&-`): the next file would else get all error messages."""
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:  # the lowest that is free
            pass
        os.close(number)
