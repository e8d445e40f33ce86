"""Tables in Markdown, and the files that hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..files import write_text


def with_error(row: Mapping, name: str, digits: int, unit: str = "") -> str:
    """row[name] and its standard error, such as "7.5x ± 0.2"."""
    return f"{row[name]:.{digits}f}{unit} ± {row[name + '_se']:.{digits}f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def write_with_rows(folder: Path, name: str, text: str, rows: Sequence[Mapping]) -> None:
    """Write a page to NAME.md and the rows of its table to NAME.json."""
    write_text(folder / f"{name}.json", json.dumps(rows, indent=1) + "\n")
    write_text(folder / f"{name}.md", text)
