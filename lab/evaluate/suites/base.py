"""The parts of a suite: its prompts, and the files that its official scorer reads.

Knows nothing about drawing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from ssd_core.errors import SSDError, first_line
from ssd_core.files import require_file, require_unicode


@dataclass(frozen=True)
class Item:
    """A prompt of a suite.

    name: of its folder or file. metadata: the suite's own line about the prompt, "" if none.
    """

    name: str
    prompt: str
    metadata: str = ""


@dataclass(frozen=True)
class ScorerLayout:
    """The folder layout that the scorer of a suite requires.

    samples: default number of pictures per prompt; most: the scorer's maximum. read: reads and
    checks prompts from a file or folder; raises SSDError. picture(item, sample): path below the
    suite's folder. grid(item): path of all samples side by side; None if the scorer needs no grid.
    texts(items): further files by path. scored_folder: the folder to pass to the scorer. square:
    whether the scorer reads square pictures only.
    """

    name: str
    samples: int
    most: int
    read: Callable[[Path], list[Item]]
    picture: Callable[[Item, int], str]
    grid: Callable[[Item], str | None] = lambda item: None
    texts: Callable[[Sequence[Item]], Mapping[str, str]] = lambda items: {}
    scored_folder: str = "."
    square: bool = False


def text_of(path: Path, wanted: str) -> str:
    """A text file in UTF-8; wanted: what the file should be, for the error."""
    require_file(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise SSDError(f"{path}: prompts cannot be read ({reason}): give {wanted}") from error


def prompt_of(value: object, place: str) -> str:
    """A prompt as one line of text; place: where it is, for the error."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        raise SSDError(f"{place}: has no prompt: write a text, or remove the entry")
    require_unicode(place, text)
    return text


def require_items(items: Sequence[Item], path: Path, wanted: str) -> None:
    """Raise SSDError if there are none, or if two names could be the same on a file system."""
    if not items:
        raise SSDError(f"{path}: holds no prompts: give {wanted}")
    seen: set[str] = set()
    for item in items:
        if item.name.lower() in seen:
            raise SSDError(f"{path}: two prompts are named {item.name!r}, and their pictures would "
                           "overwrite each other: rename one")
        seen.add(item.name.lower())


def side_by_side(pictures: Sequence[Image.Image]) -> Image.Image:
    """Join pictures of one size in a square grid without margins: 4 become 2 x 2."""
    columns = math.ceil(math.sqrt(len(pictures)))
    (width, height), rows = pictures[0].size, math.ceil(len(pictures) / columns)
    grid = Image.new("RGB", (columns * width, rows * height))
    for i, picture in enumerate(pictures):
        grid.paste(picture, (i % columns * width, i // columns * height))
    return grid
