"""Output of commands: lines and tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

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


def note(text: str) -> None:
    """Print a line about the run itself on stderr."""
    typer.echo(text, err=True)


def shown(value: Any) -> str:
    """A table cell: floats with four significant digits, "-" for None."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
