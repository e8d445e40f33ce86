"""Pictures of a run that its folder already has, recognized by their numbers.

A file's name begins with its number. A renamed file has the number that belongs to its seed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import SSDError
from ...model.sampling import Sampling
from ...output.recipe import read_recipe, sampling_of, settings
from ...output.words import FIELDS
from .render import EITHER, RenderItem, RenderSettings
from .task import LoadedModels

NUMBERED = re.compile(r"(\d{6,})(-.*)?\.png", re.IGNORECASE)
SEEDS = 1 << 64
NAMED = 3  # differences named in an error
LISTED = "the list of prompts has changed: add new ones at its end"


def there_already(pictures: Sequence[RenderItem], sampling: Sampling,
                  folder: Path) -> list[RenderItem]:
    """The pictures of this run that the folder has a PNG of, with the names of those files."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    numbers = {path.name: number_of(path, sampling) for path in paths
               if path.suffix.lower() == ".png" and path.is_file()}
    return [replace(pictures[number], file=name) for name, number in numbers.items()
            if number is not None and number < len(pictures)]


def number_of(path: Path, sampling: Sampling) -> int | None:
    """The number of a file; None for a PNG of another program."""
    if match := NUMBERED.fullmatch(path.name):
        return int(match[1])
    try:
        drawn = sampling_of(read_recipe(path))
    except SSDError:
        return None
    if sampling.variation:
        return (drawn.variation_seed - sampling.variation_seed) % SEEDS
    return (drawn.seed - sampling.seed) % SEEDS


def named_as(existing: Sequence[RenderItem], pictures: Sequence[RenderItem]) -> list[RenderItem]:
    """The pictures, those in `existing` with their names there."""
    files = {picture.number: picture.file for picture in existing}
    return [replace(picture, file=files.get(picture.number, picture.file)) for picture in pictures]


def require_same(pictures: Sequence[RenderItem], how: RenderSettings, loaded: LoadedModels,
                 folder: Path) -> None:
    """Raise SSDError if a PNG in the folder was drawn with other settings than this run's."""
    for picture in pictures:
        path = folder / picture.file
        if path.exists():
            require_equal(f"{path}, picture {picture.number}", read_recipe(path),
                          wanted_of(picture, how, loaded), how, loaded)


def require_equal(where: str | Path, recipe: Mapping, wanted: Mapping, how: RenderSettings,
                  loaded: LoadedModels) -> None:
    """Raise SSDError if settings of a recipe differ from those of this run."""
    free = set(not_compared(recipe, how, loaded))
    differing = [key for key in dict.fromkeys((*wanted, *FIELDS))
                 if recipe.get(key) != wanted.get(key) and key not in free]
    if differing:
        raise SSDError(f"{where}: {difference(recipe, wanted, differing)}")


def wanted_of(picture: RenderItem, how: RenderSettings, loaded: LoadedModels) -> dict[str, Any]:
    """The settings in the recipe of a picture of this run."""
    recipe = settings(loaded.backbone, how.heads(loaded), how.method,
                      how.sampling.offset_seed(picture.number), index=0, prompt=picture.prompt,
                      negative=how.negative, drawn=picture.drawn)
    return json.loads(json.dumps(recipe))


def not_compared(recipe: Mapping, how: RenderSettings, loaded: LoadedModels) -> list[str]:
    """Settings that may differ in this run."""
    either = ["method", "knobs", "heads"] if how.either and recipe["method"] in EITHER else []
    apart = loaded.backbone.device.type == "meta"  # workers draw, perhaps in another dtype
    return either + ["dtype"] * apart


def difference(recipe: Mapping, wanted: Mapping, keys: Sequence[str]) -> str:
    """The differences and the remedies, as the end of an error message."""
    differences = "; with ".join(
        f"{key} {brief(recipe.get(key))}, now it is {brief(wanted.get(key))}"
        for key in keys[:NAMED])
    remedies = [LISTED] * ("prompt" in keys)
    remedies += ["change --expand or --no-expand back"] * (set(FIELDS) >= set(keys))
    remedies += [f"give --dtype {recipe['dtype']}"] * ("dtype" in keys)
    return (f"drawn with {differences}: "
            f"{', or '.join([*remedies, 'choose another folder', 'remove the picture'])}")


def brief(value: object) -> str:
    """A value of a recipe, short enough for a line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."
