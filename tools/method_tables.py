"""Tables of methods.md and contract.md that list methods.

A method's row is written by hand, because it has measured figures; a method without a row gets one
from its class.
"""

from __future__ import annotations

from pathlib import Path

from ssd_core import Grid
from ssd_core.backbones.base import Preset
from ssd_core.engine.methods import METHODS
from ssd_core.output.guarantees import GUARANTEES, by_guarantee, heads_use

DOCS = Path(__file__).resolve().parents[1] / "docs"
GRID = Grid(24, 24)
METHOD_HEAD, GUARANTEE_HEAD = "| method |", "| guarantee |"


def rows_of(text: str, head: str) -> tuple[str, list[str], str]:
    """A page in three parts: up to the rows of the table with this head, the rows, the rest."""
    lines = text.splitlines(keepends=True)
    matches = [n for n, line in enumerate(lines) if line.startswith(head)]
    if not matches:
        raise SystemExit(f"no table whose head begins with {head!r}: a page has lost it")
    start = 2 + matches[0]
    stop = next((n for n in range(start, len(lines)) if not lines[n].startswith("|")), len(lines))
    return "".join(lines[:start]), lines[start:stop], "".join(lines[stop:])


def first_code(row: str) -> str:
    """The text in the first `backticks`."""
    return row.split("`")[1]


# Rows of methods


def with_methods(text: str) -> str:
    """The table of methods, with a new row for each missing method."""
    before, rows, after = rows_of(text, METHOD_HEAD)
    known = {first_code(row) for row in rows}
    return before + "".join([*rows, *(method_row(name) for name in METHODS
                                      if name not in known)]) + after


def method_row(name: str) -> str:
    method = METHODS[name]().resolve(Preset())
    count = method.plan(GRID)
    passes = f"at most {count.passes_max}" if count.passes is None else str(count.passes)
    cells = (f"`{name}`", f"not measured; {passes}", GUARANTEES[method.guarantee], heads_use(name))
    return f"| {' | '.join(cells)} |\n"


def with_guarantees(text: str) -> str:
    """The table of guarantees with up-to-date methods; the rest of each row stays."""
    before, rows, after = rows_of(text, GUARANTEE_HEAD)
    return before + "".join(map(guarantee_row, rows)) + after


def guarantee_row(row: str) -> str:
    start, _, last = row.rstrip(" |\n").rpartition(" | ")
    names = by_guarantee()[first_code(row)]
    known = [name for name in last.partition(";")[0].replace("`", "").split(", ")
             if name in names]
    listed = ", ".join(f"`{name}`" for name in dict.fromkeys([*known, *names]))
    return f"{start} | {listed}{last[len(last.partition(';')[0]):]} |\n"


def pages() -> dict[Path, str]:
    """Both pages with their tables up to date."""
    methods, contract = DOCS / "methods.md", DOCS / "contract.md"
    return {methods: with_methods(methods.read_text(encoding="utf-8")),
            contract: with_guarantees(contract.read_text(encoding="utf-8"))}
