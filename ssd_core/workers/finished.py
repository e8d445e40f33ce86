"""Pictures of a run that its folder has already, known by their numbers whatever their names are.

A file's number is the one that its name begins with. A file that was renamed has the number whose
seed it was drawn with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import SSDError
from ..front.recipe import read_recipe, settings
from ..front.words import FIELDS
from ..model.sampling import Sampling
from .draw import EITHER, How, ToDraw
from .task import Loaded

NUMBERED = re.compile(r"(\d{6,})(-.*)?\.png", re.IGNORECASE)
SEEDS = 1 << 64
NAMED = 3  # differences that an error names
LISTED = "the list of prompts has changed: add new ones at its end"


def there_already(pictures: Sequence[ToDraw], sampling: Sampling, folder: Path) -> list[ToDraw]:
    """Every PNG in the folder with a number of this run, as the picture that it should be."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    numbers = {path.name: number_of(path, sampling) for path in paths
               if path.suffix.lower() == ".png" and path.is_file()}
    return [replace(pictures[number], file=name) for name, number in numbers.items()
            if number is not None and number < len(pictures)]


def number_of(path: Path, sampling: Sampling) -> int | None:
    """The number of a file; None for a PNG that is none of ours."""
    if match := NUMBERED.fullmatch(path.name):
        return int(match[1])
    try:
        return (read_recipe(path)["seed"] - sampling.seed) % SEEDS
    except SSDError:
        return None


def named_as(there: Sequence[ToDraw], pictures: Sequence[ToDraw]) -> list[ToDraw]:
    """The pictures, each with the name that it has in the folder already."""
    files = {one.number: one.file for one in there}
    return [replace(one, file=files.get(one.number, one.file)) for one in pictures]


def require_same(pictures: Sequence[ToDraw], how: How, loaded: Loaded, folder: Path) -> None:
    """SSDError if a PNG in the folder was not drawn by this very run: nothing stale is kept."""
    for one in pictures:
        path = folder / one.file
        if path.exists():
            found, wanted = read_recipe(path), wanted_of(one, how, loaded)
            free = set(not_compared(found, how, loaded))
            differing = [key for key in dict.fromkeys((*wanted, *FIELDS))
                         if found.get(key) != wanted.get(key) and key not in free]
            if differing:
                raise SSDError(f"{path}, picture {one.number}: "
                               f"{difference(found, wanted, differing)}")


def wanted_of(one: ToDraw, how: How, loaded: Loaded) -> dict[str, Any]:
    """The settings that the recipe of a picture of this run has."""
    told = settings(loaded.backbone, how.heads(loaded), how.method, how.sampling.later(one.number),
                    index=0, prompt=one.prompt, negative=how.negative, drawn=one.drawn)
    return json.loads(json.dumps(told))


def not_compared(found: Mapping, how: How, loaded: Loaded) -> list[str]:
    """Settings that may differ in this run."""
    either = ["method", "knobs", "heads"] if how.either and found["method"] in EITHER else []
    apart = loaded.backbone.device.type == "meta"  # others draw, maybe in another dtype than here
    return either + ["dtype"] * apart


def difference(found: Mapping, wanted: Mapping, keys: Sequence[str]) -> str:
    """What differs, and what to do, as the rest of a line."""
    told = "; with ".join(f"{key} {brief(found.get(key))}, now it is {brief(wanted.get(key))}"
                          for key in keys[:NAMED])
    remedies = [LISTED] * ("prompt" in keys)
    remedies += ["change --expand or --no-expand back"] * (set(FIELDS) >= set(keys))
    remedies += [f"give --dtype {found['dtype']}"] * ("dtype" in keys)
    return (f"drawn with {told}: "
            f"{', or '.join([*remedies, 'choose another folder', 'remove the picture'])}")


def brief(value: object) -> str:
    """A value of a recipe, short enough for a line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."
