"""Work for the Worker: draw, redo, race (seeds are in seeds.py).

Every finished picture is saved before its job is over. Knows the history and the library, not the
page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.engine.methods import AR
from ssd_core.files import atomic_write
from ssd_core.output.guarantees import identical_share
from ssd_core.output.pixels import tops
from ssd_core.output.recipe import (
    is_int,
    opened,
    reason_to_encode,
    recipe_of,
    recipe_tokens,
    to_bytes,
    tokens_from_png,
)
from ssd_core.output.words import Words, drawn_words, inherited, typed_words
from ssd_core.runs.comparison import Comparison, compare_with_ar
from ssd_core.runs.live import LiveRun
from ssd_core.runs.request import Result

from .drawn import Drawn, Saved, follow, not_saved, words_of
from .history import Entry, History, require_picture
from .jobs import Job
from .library import Library
from .running import advance_together, guarded
from .settings import Settings

__all__ = ["Drawn", "Raced", "draw", "look", "race", "redo", "save_partial"]
Work = Callable[[Job], Any]
MOST_RACERS = 6
HELD = "its own tokens, which this app still holds"


@dataclass
class Raced:
    """Finished pictures in order, their labelled sheet if it could be saved, and the measurements.

    Per picture: identical (share of tokens equal to AR's, None if AR did not run), stats, labels,
    verdicts, seeds, words (as in Drawn). equal: share of tokens equal between the first two.
    judged: the pictures that the verdicts are about: all but AR's own; all if AR did not run.
    """

    saved: Saved
    sheet: Entry | None
    identical: list[float | None]
    equal: float
    judged: list[int]
    stats: list[Mapping]
    labels: list[str]
    verdicts: list[str]
    seeds: list[int]
    words: list[str]

    @property
    def entries(self) -> list[Entry]:
        return self.saved.entries


def draw(library: Library, history: History, settings: Settings,
         keep: torch.Tensor | None = None, keep_rows: int = 0, metadata: bool = True) -> Work:
    """Draw all pictures of `settings`, below the first keep_rows rows of keep [B or 1, R, C].

    They are drawn at once, or one after the other where that is sooner. The work returns Drawn; if
    it was stopped, the job's result has what was finished. It uses the backbone that is loaded now,
    and fails if another one is loaded by then.
    """
    loaded = library.as_now()

    def work(job: Job) -> Drawn:
        now = loaded()
        if settings.pictures > 1:
            library.require_room(settings, keep_rows=keep_rows)
        request = settings.request(now.backbone, now.heads, keep, keep_rows)
        history.require_room(request.pictures, request.sizes[0])
        runs = [LiveRun(part, send=job.tell, panel=panel)
                for panel, part in enumerate(request.parts())]
        return follow(job, runs, history, metadata)

    return work


def redo(library: Library, history: History, settings: Settings, source: Path, keep_rows: int,
         size: str | None = None, metadata: bool = True) -> Work:
    """Redraw a PNG below its first keep_rows rows; see `draw`.

    size: "WIDTHxHEIGHT" of the new picture, as wide and taller; None for the size of the PNG.
    """
    loaded = library.as_now()

    def work(job: Job) -> Drawn:
        backbone = loaded().backbone
        width, height = size_of(source, backbone)
        seen = look(history, source, backbone)
        if seen.finished is not None and keep_rows > seen.finished:
            raise SSDError(f"{source.name}: only {seen.finished} of its rows were drawn: keep at "
                           "most those")
        tokens, how = rows_of(history, source, backbone.resized((width, height)))
        own = with_words_of(history, source, settings)
        own = replace(own, size=size or f"{width}x{height}")
        if size:
            tokens = with_more_rows(tokens, backbone.resized(own.pixels()).grid.rows)
        drawn = draw(library, history, own, tokens, keep_rows, metadata)(job)
        return replace(drawn, how=how, unchanged=tokens.equal(drawn.tokens[:1].to(tokens)))

    return work


def with_more_rows(tokens: torch.Tensor, rows: int) -> torch.Tensor:
    """Tokens [1, R, C] -> [1, rows, C]; the new rows are zeros, to be drawn."""
    more = tokens.new_zeros(1, rows - tokens.shape[1], tokens.shape[2])
    return torch.cat((tokens, more), 1)


def save_partial(history: History, library: Library, drawn: Drawn, metadata: bool = True) -> Entry:
    """Save a stopped run's finished rows, grey below; returns the first picture's entry.

    Without metadata, Redo uses the tokens in memory while the app runs, and later encodes the file.
    Raises SSDError if another backbone is loaded now.
    """
    if not drawn.stopped_rows:
        raise SSDError("nothing to save: no row was finished when the run was stopped")
    for tokens, recipe in zip(drawn.tokens, drawn.recipes, strict=True):
        loaded = library.current
        if recipe["backbone"]["sha256"] != loaded.backbone.sha256:
            raise SSDError("the stopped picture was drawn by another backbone, but "
                           f"{loaded.name} is loaded: load the other one again")
        backbone = loaded.backbone.resized(tuple(recipe["size"]))
        picture, = tops(backbone, tokens[None], drawn.stopped_rows)
        drawn.partial.append(history.save(picture, recipe, "partial", metadata=metadata))
    return drawn.partial[0]


# Pictures to redo


@dataclass(frozen=True)
class Source:
    """A PNG to redo.

    how: where its tokens come from. finished: rows finished, if it was stopped early. rows: total
    rows at its size. taller: legal sizes "WIDTHxHEIGHT" of the same width. typed, drawn: by its
    recipe the words that were typed, and those that it was drawn from.
    """

    how: str
    finished: int | None
    rows: int
    taller: tuple[str, ...] = ()
    typed: Words | None = None
    drawn: Words | None = None


def look(history: History, path: Path, backbone: Backbone) -> Source:
    """What a redo of this PNG would use; nothing is encoded.

    Raises SSDError if the picture is incomplete or the backbone does not support its size.
    """
    size = size_of(path, backbone)
    rows, taller = backbone.resized(size).grid.rows, taller_sizes(backbone, size)
    if (recipe := remembered_recipe(history, path, backbone)) is not None:
        return Source(HELD, stopped_rows(recipe, rows), rows, taller=taller)
    with opened(path) as image:
        recipe = recipe_of(path, image)
        reason = reason_to_encode(recipe, backbone, np.array(image.convert("RGB")))
    words = (typed_words(recipe), drawn_words(recipe)) if recipe else ()
    if recipe is None or reason is not None:
        return Source(f"encoded: {reason}", None, rows, taller, *words)
    return Source("tokens from its recipe", stopped_rows(recipe, rows), rows, taller, *words)


def taller_sizes(backbone: Backbone, size: tuple[int, int]) -> tuple[str, ...]:
    """The sizes that a picture of `size` can be extended to downward, the lowest first."""
    return tuple(f"{width}x{height}" for width, height in sorted(backbone.sizes)
                 if width == size[0] and height > size[1])


def rows_of(history: History, path: Path, backbone: Backbone) -> tuple[torch.Tensor, str]:
    """Tokens [1, R, C] of a PNG, and where they came from; see `tokens_from_png`."""
    if (recipe := remembered_recipe(history, path, backbone)) is not None:
        return recipe_tokens(recipe)[None], HELD
    return tokens_from_png(path, backbone)


def remembered_recipe(history: History, path: Path, backbone: Backbone) -> dict | None:
    """What the history remembers of a picture without recipe, if this backbone drew it."""
    recipe = history.unwritten(path)
    return recipe if recipe and recipe["backbone"]["sha256"] == backbone.sha256 else None


def with_words_of(history: History, path: Path, settings: Settings) -> Settings:
    """The settings with the words that a picture without recipe was drawn from.

    They are unchanged if another prompt was typed since, or if nothing is remembered of it.
    """
    typed = Words(settings.prompt, settings.negative or None)
    words = inherited(history.unwritten(path), typed)
    return replace(settings, fixed=words[0]) if words and not settings.fixed else settings


def stopped_rows(recipe: Mapping, rows: int) -> int | None:
    """How many rows were finished; None if it was not stopped early."""
    stopped = recipe.get("stopped_rows")
    return stopped if is_int(stopped) and 1 <= stopped < rows else None


def size_of(path: Path, backbone: Backbone) -> tuple[int, int]:
    """(width, height) of a complete PNG whose size this backbone supports."""
    require_picture(path)
    with opened(path) as image:
        size = image.size
    if size not in backbone.sizes:
        legal = ", ".join(f"{width}x{height}" for width, height in backbone.sizes)
        raise SSDError(f"{path}: the picture has {size[0]}x{size[1]} pixels, {backbone.name} "
                       f"takes {legal}: resize it first")
    return size


# Races


def race(library: Library, history: History, settings: Settings,
         methods: Sequence[Settings | str], metadata: bool = True) -> Work:
    """Methods draw one picture with the same prompt and seed, each on its own clock.

    methods: at most MOST_RACERS; a name means `settings` with that method. The work returns Raced.
    Raises SSDError at once for too few or too many.
    """
    if not 2 <= len(methods) <= MOST_RACERS:
        raise SSDError(f"a race of {len(methods)}: choose 2 to {MOST_RACERS} methods")
    racers = [replace(settings, method=method) if isinstance(method, str) else method
              for method in methods]
    loaded = library.as_now()

    def work(job: Job) -> Raced:
        now = loaded()
        requests = [replace(racer, pictures=1).request(now.backbone, now.heads, named=True)
                    for racer in racers]
        history.require_room(2 * len(requests), requests[0].sizes[0])  # and all on the sheet
        library.require_room_together(requests)
        runs = [LiveRun(request, send=job.tell, panel=panel)
                for panel, request in enumerate(requests)]
        with guarded(*runs):
            advance_together(job, runs)
            return raced(runs, history, metadata)

    return work


def raced(runs: Sequence[LiveRun], history: History, metadata: bool) -> Raced:
    """Save the pictures and the sheet, show them, and return the measurements."""
    results = [run.result for run in runs]
    compare_with_ar(results)
    pictures = [next(result.pictures()) for result in results]
    saved = Saved()
    for picture, result in zip(pictures, results, strict=True):
        saved.take(history, picture, result.recipes()[0], metadata)
    sheet = save_sheet(results, pictures, history, saved)
    for run, picture in zip(runs, pictures, strict=True):
        run.finish(picture[None])
    return Raced(saved, sheet, [result.share for result in results],
                 identical_share(results[0].tokens, results[1].tokens),
                 judged_of([isinstance(run.request.method, AR) for run in runs]),
                 [result.measured for result in results], [run.request.label for run in runs],
                 [result.verdict for result in results],
                 [result.request.sampling.seed for result in results],
                 [words for run in runs for words in words_of(run.request)])


def judged_of(is_ar: Sequence[bool]) -> list[int]:
    """All pictures but the first that is AR's own."""
    baseline = is_ar.index(True) if True in is_ar else None
    return [n for n in range(len(is_ar)) if n != baseline]


def save_sheet(results: Sequence[Result], pictures: Sequence[torch.Tensor],
               history: History, saved: Saved) -> Entry | None:
    """Save the pictures with their words as one PNG; None, with its problem, if that fails."""
    image = Comparison.of(results).sheet([to_bytes(picture) for picture in pictures])

    def save(path: Path) -> None:
        with atomic_write(path) as temporary:
            image.save(temporary, format="PNG")

    left = results[0].request
    names = "-".join(result.request.method.name for result in results)
    try:
        return history.write(save, {"seed": left.sampling.seed, "method": names}, "race")
    except SSDError as error:
        saved.problem = saved.problem or str(not_saved(error))
        return None
