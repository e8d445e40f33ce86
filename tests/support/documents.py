"""Reading the documents: their code blocks, commands and tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), ROOT / "tests/hosts/comfyui/README.md",
             ROOT / "ssd_core/assets/postcard/README.md"]
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = ("", "bash")


@dataclass(frozen=True)
class Block:
    """`before` is the paragraph that introduces the code."""

    language: str
    code: str
    before: str


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    return [Block(m["language"], m["code"], text[: m.start()].rstrip().rpartition("\n\n")[2])
            for m in FENCE.finditer(text)]


def commands(path: Path) -> Iterator[str]:
    """Every line of the shell blocks, without comments; pictures made of letters are no commands.

    Blocks of `console` show what a guide leads to; the guide's own test runs that.
    """
    for block in blocks(path):
        if block.language in SHELL and not set("│|+") & set(block.code):
            for line in block.code.splitlines():
                if words := shlex.split(line, comments=True, posix=False):
                    yield " ".join(words)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def table(path: Path, head: str) -> list[list[str]]:
    """The rows of the table whose head begins with `head`, without that head."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head} |"))
    rows = []
    for line in lines[start + 2:]:
        if not line.startswith("|"):
            break
        rows.append(cells(line))
    return rows


def records(text: str, head: str) -> dict[str, dict[str, str]]:
    """The tables of a text whose head begins with `head`: {first cell: {heading: cell}}."""
    found: dict[str, dict[str, str]] = {}
    headings: list[str] = []
    for line in text.splitlines():
        if line.startswith(f"| {head} |"):
            headings = cells(line)
        elif not line.startswith("|"):
            headings = []
        elif headings and not line.startswith(("| ---", "|---")):
            found[cells(line)[0]] = dict(zip(headings, cells(line), strict=True))
    return found


def by_section(text: str, head: str) -> dict[str, dict[str, dict[str, str]]]:
    """`records` of every section that has some, by the section's heading."""
    sections = (part.partition("\n") for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:])
    found = {heading: records(body, head) for heading, _, body in sections}
    return {heading: rows for heading, rows in found.items() if rows}


def codes(text: str) -> list[str]:
    """What stands in `backticks`."""
    return re.findall(r"`([^`\n]+)`", text)
