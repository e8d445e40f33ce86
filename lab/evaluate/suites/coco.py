"""MS-COCO's captions (Lin et al., 2014), or any list of prompts: one picture each, in one folder.

FID tools read the folder directly. With COCO's annotations a picture is named by the number of the
photograph that its caption describes; of several captions the one with the lowest id is used.
captions.json lists the prompts in the order of the pictures' names, as in HPSv2's benchmark.
"""

from __future__ import annotations

import json
from pathlib import Path

from ssd_core.errors import SSDError

from .base import Item, ScorerLayout, prompt_of, require_items, text_of

WANTED = ("COCO's captions_val2017.json or captions_val2014.json, a JSON list of prompts, or a "
          "text file with one prompt a line (lines that begin with # do not count)")


def read(path: Path) -> list[Item]:
    text = text_of(path, WANTED)
    if path.suffix.lower() == ".json":
        items = from_json(text, path)
    else:
        items = numbered([(line, f"{path}, line {number}")
                          for number, line in enumerate(text.split("\n"), 1)
                          if line.strip() and not line.lstrip().startswith("#")])
    require_items(items, path, WANTED)
    return items


def from_json(text: str, path: Path) -> list[Item]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SSDError(f"{path}: not JSON ({error}): give {WANTED}") from error
    if isinstance(data, list):
        return numbered([(value, f"{path}, entry {i}") for i, value in enumerate(data, 1)])
    annotations = data.get("annotations") if isinstance(data, dict) else None
    if not isinstance(annotations, list) or not all(map(is_annotation, annotations)):
        raise SSDError(f"{path}: has no list of annotations with id, image_id and caption: give "
                       f"{WANTED}")
    return photographs(annotations, path)


def numbered(prompts: list[tuple[object, str]]) -> list[Item]:
    """Number prompts, which come with their places for error messages."""
    return [Item(f"{i:05d}", prompt_of(value, place)) for i, (value, place) in enumerate(prompts)]


def is_annotation(value: object) -> bool:
    return isinstance(value, dict) and "caption" in value and all(
        isinstance(value.get(key), int) and value[key] >= 0 for key in ("id", "image_id"))


def photographs(annotations: list[dict], path: Path) -> list[Item]:
    """Return one item per photograph, in the order of their numbers."""
    first: dict[int, dict] = {}
    for entry in sorted(annotations, key=lambda entry: entry["id"]):
        first.setdefault(entry["image_id"], entry)
    return [Item(f"{number:012d}", prompt_of(entry["caption"], f"{path}, annotation {entry['id']}"))
            for number, entry in sorted(first.items())]


COCO = ScorerLayout(
    "coco", samples=1, most=1, read=read,
    picture=lambda item, sample: f"images/{item.name}.png",
    texts=lambda items: {"captions.json": json.dumps([item.prompt for item in items], indent=0)},
    scored_folder="images")
