"""Draw prompts as PNGs with recipes, by any method, in a folder where an unfinished run goes on.

Picture n of a run has the run's seed + n and is the same in any batch. A file's name begins with
its number; a renamed file has the number that belongs to its seed. The process that begins a run
writes its settings into the folder, under a lock; every other process draws by them. Knows no host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ...engine.decode import generate
from ...engine.events import finished
from ...engine.heads import DraftHeads
from ...engine.methods import AR, Exact, Method
from ...engine.methods.window import Tunable
from ...engine.tuning import Machine, filled
from ...engine.tuning import at_once as cheapest_batch
from ...errors import SSDError
from ...files import write_text
from ...model.grid import Grid
from ...model.sampling import Sampling
from ...output.drawing import Drawing, method_of, sampling_of
from ...output.guarantees import guarantee_holds
from ...output.pixels import pixels
from ...output.recipe import make_recipe, png_bytes, read_recipe, refuse_newer_recipe, settings
from ...output.words import FIELDS, Words
from ..request import Request
from .queue import TaskLocks, claimed
from .workers import LoadedModels, PicturesTask, batches, fitting_batch, in_groups

MOST_AT_ONCE = 8
EITHER = (AR.name, Exact.name)
NUMBERED = re.compile(r"(\d{6,})(-.*)?\.png", re.IGNORECASE)
NAMED = 3  # differences named in an error
LISTED = "the list of prompts has changed: add new ones at its end"
FILE, RUN = ".render.json", "render"


@dataclass(frozen=True)
class RenderItem:
    """Picture `number` of a run: its prompt, and its PNG's name relative to the folder.

    drawn: the words it is drawn from; None: the typed ones. negative, seed: its own; None: those
    of the run.
    """

    number: int
    prompt: str
    file: str
    drawn: Words | None = None
    negative: str | None = None
    seed: int | None = None


@dataclass(frozen=True)
class RenderSettings:
    """The settings that all pictures of a run share; sampling has picture 0's seed.

    window: of `exact` on the machine that hands out tasks; no picture depends on it. either: AR and
    `exact` may both draw pictures of the run, because theirs are the same.
    """

    method: Method
    sampling: Sampling
    negative: str | None = None
    window: int | None = None
    either: bool = False

    @classmethod
    def of(cls, first: Request) -> RenderSettings:
        """Those of a run whose first picture is requested."""
        either = (isinstance(first.drawing.method, (AR, Exact)) and first.fall_back
                  and not first.named and guarantee_holds(first.sized))
        return cls(first.recorded, first.sampling, first.drawing.negative, either=either)

    @property
    def drawn_by(self) -> Method:
        """The method with its window."""
        if isinstance(self.method, Exact) and self.method.window is None:
            return replace(self.method, window=self.window)
        return self.method

    def on(self, grid: Grid, device: str) -> RenderSettings:
        """These settings with the method's window: the default for this type of device."""
        return replace(self, method=filled(self.method, grid, device))

    def typed(self, picture: RenderItem) -> Words:
        return Words(picture.prompt, picture.negative or self.negative)

    def words(self, picture: RenderItem) -> Words:
        """The words a picture is drawn from."""
        return picture.drawn or self.typed(picture)

    def sampling_of(self, picture: RenderItem) -> Sampling:
        """The run's, with the picture's seed."""
        own = self.sampling.offset_seed(picture.number)
        return own if picture.seed is None else replace(own, seed=picture.seed)

    def drawing(self, picture: RenderItem) -> Drawing:
        """The drawing of one picture, as its recipe tells it."""
        return Drawing(picture.prompt, self.typed(picture).negative, self.method,
                       self.sampling_of(picture),
                       fixed=(picture.drawn,) if picture.drawn else ())

    def heads(self, loaded: LoadedModels) -> DraftHeads | None:
        return loaded.heads if self.method.uses_heads else None


@dataclass(frozen=True)
class DrawTask(PicturesTask):
    """Pictures that are drawn together."""

    pictures: tuple[RenderItem, ...]
    how: RenderSettings

    def run(self, loaded: LoadedModels) -> dict[str, bytes]:
        return {file: png for part in together(self.pictures, self.how)
                for file, png in draw(part, self.how, loaded)}


def draw_tasks(pictures: Sequence[RenderItem], how: RenderSettings, batch: int) -> list[DrawTask]:
    """All pictures in batches; equal arguments give equal tasks in every process."""
    parts = (tuple(pictures[i] for i in part) for part in batches(len(pictures), batch))
    return [DrawTask(part[0].file, part, how) for part in parts]


def together(pictures: Sequence[RenderItem], how: RenderSettings) -> list[list[RenderItem]]:
    """The pictures in groups that can be drawn as a batch.

    Their seeds are consecutive, and the negative prompt is the same.
    """
    return in_groups(pictures, lambda last, picture: (
        how.sampling_of(last).offset_seed(1) == how.sampling_of(picture)
        and how.words(last).negative == how.words(picture).negative))


def draw(pictures: Sequence[RenderItem], how: RenderSettings,
         loaded: LoadedModels) -> Iterator[tuple[str, bytes]]:
    """File name and PNG of each picture, drawn as a batch."""
    backbone, heads = loaded.backbone, how.heads(loaded)
    how = how.on(backbone.grid, backbone.device.type)
    sampling = how.sampling_of(pictures[0])
    drawn_from = [how.words(picture) for picture in pictures]
    done = finished(generate(backbone, [words.prompt for words in drawn_from], how.drawn_by, heads,
                             sampling, drawn_from[0].negative))
    decoded = pixels(backbone, done.tokens)
    for index, (picture, image) in enumerate(zip(pictures, decoded, strict=True)):
        recipe = make_recipe(backbone, heads, how.drawing(picture), done.tokens[index], done.stats)
        yield picture.file, png_bytes(image, recipe)


def at_once(how: RenderSettings, prompt: str, loaded: LoadedModels, free: int | None) -> int:
    """The number of pictures in a batch: MOST_AT_ONCE, or fewer if free memory (bytes) is short."""
    if free is None:
        return MOST_AT_ONCE
    return fitting_batch(MOST_AT_ONCE, free, lambda pictures: Request(
        loaded.backbone, how.heads(loaded), Drawing(prompt, how.negative, how.method, how.sampling,
                                                    pictures=pictures)).bytes_needed)


def quickest(first: Request, how: RenderSettings, sizes: Sequence[int]) -> tuple[RenderSettings,
                                                                                 int]:
    """The settings with which this machine draws soonest, and a batch size out of `sizes`.

    first: the request for one of the pictures. Without measurements it is the last size.
    """
    machine = Machine.of(first.sized, first.heads, first.branches)
    fastest = cheapest_batch(machine, first.drawing.method, sizes, named=not how.either)
    if fastest is None:
        return how, sizes[-1]
    chosen, window = fastest.tuning.method, getattr(fastest.tuning.method, "window", None)
    if isinstance(first.drawing.method, Exact):
        by_ar = isinstance(chosen, AR)
        how = replace(how, method=AR() if by_ar else first.drawing.method, window=window)
    return how, fastest.pictures


def there_already(pictures: Sequence[RenderItem], how: RenderSettings,
                  folder: Path) -> list[RenderItem]:
    """The pictures of this run that the folder has a PNG of, with the names of those files."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    known: dict[tuple, int] = {}
    for picture in reversed(pictures):  # lines may have equal seeds
        seeds = seeds_of(how.sampling_of(picture))
        known[seeds] = known[seeds, picture.prompt] = picture.number
    numbers = {path.name: number_of(path, known) for path in paths
               if path.suffix.lower() == ".png" and path.is_file()}
    return [replace(pictures[number], file=name) for name, number in numbers.items()
            if number is not None and number < len(pictures)]


def number_of(path: Path, known: Mapping[tuple, int]) -> int | None:
    """The number of a file; None for a PNG of another program or run.

    known: the numbers by seeds, and by seeds and prompt.
    """
    if match := NUMBERED.fullmatch(path.name):
        return int(match[1])
    try:
        recipe = read_recipe(path)
    except SSDError:
        return None
    seeds = seeds_of(sampling_of(recipe))
    return known.get((seeds, recipe["prompt"]), known.get(seeds))


def seeds_of(sampling: Sampling) -> tuple[int, int]:
    return sampling.seed, sampling.variation_seed if sampling.variation else 0


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
    return json.loads(json.dumps(settings(loaded.backbone, how.heads(loaded),
                                          how.drawing(picture))))


def not_compared(recipe: Mapping, how: RenderSettings, loaded: LoadedModels) -> list[str]:
    """Settings that may differ in this run."""
    either = ["method", "heads", *(f.name for f in fields(Exact))
              ] if how.either and recipe["method"] in EITHER else []
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


ANY = RenderItem(0, "", "")  # the settings are those of all pictures, whatever their prompts
Decide = Callable[[], tuple[RenderSettings, int]]


def agreed(folder: Path, how: RenderSettings, loaded: LoadedModels, decide: Decide,
           existing: bool) -> tuple[RenderSettings, int]:
    """The settings and the batch size of the folder's run; the first process decides them.

    existing: whether the folder has pictures of the run. A run that has none, and that no process
    is drawing, has not begun. Raises SSDError if a run that has begun draws other pictures.
    """
    with TaskLocks(folder).held(RUN):
        begun = read_begun(folder)
        if begun is None or not (existing or claimed(folder)):
            how, batch = decide()
            write_text(folder / FILE, json.dumps({
                "settings": wanted_of(ANY, how, loaded), "window": how.window, "batch": batch}))
            return how, batch
    require_equal(folder / FILE, begun["settings"], wanted_of(ANY, how, loaded), how, loaded)
    if how.either:
        how = replace(how, method=method_of(begun["settings"]))
    return replace(how, window=begun["window"]), begun["batch"]


def read_begun(folder: Path) -> dict | None:
    """What `agreed` has written; None if no run has begun. Raises SSDError if it is damaged."""
    path = folder / FILE
    try:
        begun = json.loads(path.read_text(encoding="utf-8"))
        refuse_newer_recipe(path, begun["settings"])
        method_of(begun["settings"])
        return {"settings": begun["settings"], "batch": int(begun["batch"]),
                "window": None if begun["window"] is None else int(begun["window"])}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise SSDError(f"{path}: damaged: remove it, then the run goes on") from error


def as_begun(how: RenderSettings, asked: Method, folder: Path) -> RenderSettings:
    """The settings with the window of the run in the folder, if that was left to the program.

    It may have begun on another type of device, and pictures depend on it.
    """
    if (begun := read_begun(folder)) is None or not isinstance(asked,
                                                         Tunable) or asked.window is not None:
        return how
    settings: Mapping = begun["settings"]
    if settings["method"] != how.method.name or not isinstance(how.method, Tunable):
        return how
    return replace(how, method=how.method.with_window(settings.get(how.method.window_knob)))
