"""Output of commands: lines and tables for people, one JSON object for programs."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import typer
from rich.console import Console
from rich.table import Table

LOST = ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EBADF")
WIDTH = 160  # characters; wide enough not to break lines, the terminal may wrap them


class Reporter:
    """With `json`, stdout holds only the JSON object; everything else goes to stderr."""

    def __init__(self, json: bool) -> None:
        self.json = json

    def print(self, text: str) -> None:
        typer.echo(text, err=self.json)

    def words(self, prompts: Iterable[str], negative: str | None) -> None:
        """Print the words that are drawn in place of the typed ones."""
        for prompt in dict.fromkeys(prompts):
            self.print(f"drawn from: {prompt}")
        if negative:
            self.print(f"negative prompt: {negative}")

    def table(self, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
        """columns: heading -> key of the rows."""
        table = Table(box=None, pad_edge=False)
        for heading in columns:
            table.add_column(heading, no_wrap=True)
        for row in rows:
            table.add_row(*(shown(row.get(key)) for key in columns.values()))
        Console(file=sys.stderr if self.json else sys.stdout, width=WIDTH, highlight=False,
                markup=False).print(table)

    def result(self, result: Mapping[str, Any]) -> None:
        if self.json:
            typer.echo(json.dumps(result))


def is_of_output(error: OSError) -> bool:
    """Whether writing to stdout or stderr raised the error, for example on a full disk.

    Errors about other files name their file.
    """
    return error.filename is None and errno.errorcode.get(error.errno or 0) in LOST


def give_up_output() -> None:
    """Drop buffered output that cannot be written, which Python would write again on exit."""
    for stream in (sys.stdout, sys.stderr):
        if cannot_flush(stream):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def cannot_flush(stream: TextIO) -> bool:
    try:
        stream.flush()
    except OSError:
        return True
    return False


def note(text: str) -> None:
    """Print a line about the run itself on stderr."""
    typer.echo(text, err=True)


def shown(value: Any) -> str:
    """A table cell: floats with four significant digits, "-" for None."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
