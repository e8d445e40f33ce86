"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping


def with_error(row: Mapping, name: str, digits: int, unit: str = "") -> str:
    """row[name] and its standard error, such as "7.5x ± 0.2"."""
    return f"{row[name]:.{digits}f}{unit} ± {row[name + '_se']:.{digits}f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
