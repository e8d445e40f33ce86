"""DPG-Bench (Hu et al., 2024): long prompts, with questions that a language model answers.

Its scorer opens every file of one folder as a picture. It finds the questions by the file's name up
to the first dot, and cuts the picture into squares of a resolution set by the user: a picture holds
four samples, two by two. The single samples are in a folder beside it.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from ssd_core.errors import SSDError

from .base import Item, ScorerLayout, prompt_of, require_items, text_of

WANTED = ("DPG-Bench's folder of prompts, one .txt file each, or its dpg_bench.csv")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
COLUMNS = ("item_id", "text")


def read(path: Path) -> list[Item]:
    """The prompts by name, from the folder of .txt files or from the table of questions."""
    items = from_folder(path) if path.is_dir() else from_table(path)
    require_items(items, path, WANTED)
    return items


def from_folder(path: Path) -> list[Item]:
    return [Item(checked_name(file.stem, str(file)), prompt_of(text_of(file, WANTED), str(file)))
            for file in sorted(path.glob("*.txt"))]


def from_table(path: Path) -> list[Item]:
    """One item for each item_id, which has a row for every question on it."""
    rows = csv.DictReader(io.StringIO(text_of(path, WANTED), newline=""))
    prompts: dict[str, str] = {}
    try:
        if not set(COLUMNS) <= set(rows.fieldnames or ()):
            raise SSDError(f"{path}: has no columns item_id and text: give {WANTED}")
        for row in rows:
            place = f"{path}, line {rows.line_num}"
            name = checked_name(row["item_id"] or "", place)
            prompt = prompt_of(row["text"], place)
            if prompts.setdefault(name, prompt) != prompt:
                raise SSDError(f"{place}: {name!r} has another prompt above: rename one")
    except csv.Error as error:
        raise SSDError(f"{path}: not a table ({error}): give {WANTED}") from error
    return [Item(name, prompt) for name, prompt in prompts.items()]


def checked_name(name: str, place: str) -> str:
    """Return a name that is valid for a file and that the scorer can find."""
    if not NAME.fullmatch(name):
        raise SSDError(f"{place}: {name[:60]!r} cannot name a picture: DPG-Bench's names have "
                       "letters, digits, _ and - only; rename the prompt")
    return name


DPG = ScorerLayout(
    "dpg", samples=4, most=4, read=read,
    picture=lambda item, sample: f"samples/{item.name}/{sample:04d}.png",
    grid=lambda item: f"images/{item.name}.png", scored_folder="images", square=True)
