"""The table of graphics cards in docs/results.md, from lab/benchmarks/results/cards/."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ssd_core.measure.tables import table
from ssd_core.output.labels import percent
from ssd_core.selftest.page import MARK

ROOT = Path(__file__).resolve().parents[1]
PAGE, CARDS = ROOT / "docs" / "results.md", ROOT / "lab" / "benchmarks" / "results" / "cards"
START, END = "<!-- cards: made by tools/make.py texts -->\n", "<!-- end of cards -->\n"
HEAD = ["device", "backbone", "torch", "copy, GB/s", "AR, s", "exact", "rolling", "ssd", "rows",
        "tokens of exact that are AR's", "switched off"]
NONE = "No page of a card has been sent in yet.\n"


def figures(path: Path) -> dict:
    """The figures in the first line of a page; SystemExit if they are missing."""
    line = path.read_text(encoding="utf-8").partition("\n")[0]
    if match := re.fullmatch(f"{re.escape(MARK)}(.*) -->", line):
        return json.loads(match[1])
    raise SystemExit(f"{path.name}: its first line has no figures: write it with ssd selftest "
                     "--report")


def row(path: Path) -> list[str]:
    page = figures(path)
    speeds = ["-" if page[name] is None else f"{page[name]:.2f}" for name in HEAD[5:9]]
    return [f"[{page['device']}](../lab/benchmarks/results/cards/{path.name})",
            f"{page['backbone']}, {page['dtype']}", page["torch"], str(page["copy_gb"]),
            f"{page['ar_seconds']:.2f}", *speeds, percent(page["same"] or 0.0),
            ", ".join(page["switched_off"]) or "nothing"]


def cards(folder: Path = CARDS) -> str:
    pages = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    return table(HEAD, [row(path) for path in pages]) if pages else NONE


def pages() -> dict[Path, str]:
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise SystemExit(f"{PAGE.name} has lost the marks of its table of cards")
    return {PAGE: f"{before}{START}\n{cards()}\n{END}{after}"}
