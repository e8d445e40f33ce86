"""GenEval (Ghosh et al., 2023): objects, counts, colours and places, found by a detector.

Its scorer reads FOLDER/00000/metadata.jsonl, the prompt's line of `evaluation_metadata.jsonl`, and
all of FOLDER/00000/samples/0000.png, 0001.png, ... It skips folders whose names are not digits. The
grid is for people.
"""

from __future__ import annotations

import json
from pathlib import Path

from ssd_core.errors import SSDError

from .base import Item, ScorerLayout, prompt_of, require_items, text_of

WANTED = "GenEval's evaluation_metadata.jsonl, one object a line"


def read(path: Path) -> list[Item]:
    """The prompts in the order of their lines, by which GenEval numbers its folders."""
    items: list[Item] = []
    for number, line in enumerate(text_of(path, WANTED).split("\n"), 1):
        if line.strip():
            items.append(item_of(line.strip(), len(items), f"{path}, line {number}"))
    require_items(items, path, WANTED)
    return items


def item_of(line: str, index: int, place: str) -> Item:
    """Parse a line; the item keeps it unchanged as its metadata."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SSDError(f"{place}: not JSON ({error}): give {WANTED}") from error
    if not isinstance(data, dict) or not isinstance(data.get("tag"), str) or not all(
            is_demand(entry) for key in ("include", "exclude")
            for entry in demands(data.get(key, []))):
        raise SSDError(f"{place}: lacks what GenEval's scorer reads, a tag and lists of class and "
                       f"count under include and exclude: give {WANTED}")
    return Item(f"{index:05d}", prompt_of(data.get("prompt"), place), line)


def demands(value: object) -> list:
    """Return the entries of a list; any other value counts as a wrong entry."""
    return value if isinstance(value, list) else [None]


def is_demand(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("class"), str) and (
        isinstance(value.get("count"), int))


GENEVAL = ScorerLayout(
    "geneval", samples=4, most=10_000, read=read,
    picture=lambda item, sample: f"{item.name}/samples/{sample:04d}.png",
    grid=lambda item: f"{item.name}/grid.png",
    texts=lambda items: {f"{item.name}/metadata.jsonl": f"{item.metadata}\n" for item in items})
