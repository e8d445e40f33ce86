"""Work for the Worker: draw and redo (races are in races.py, seeds in seeds.py).

Every finished picture is saved before its job is over. Knows the history and the library, not the
page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.model.grid import size_of as sized
from ssd_core.output.drawing import Drawing
from ssd_core.output.picture_files import upright
from ssd_core.output.pixels import tops
from ssd_core.output.recipe import (
    is_int,
    of_no_size,
    reason_to_encode,
    recipe_of,
    recipe_tokens,
    tokens_from_png,
)
from ssd_core.output.words import Words, drawn_words, inherited, typed_words
from ssd_core.runs.live import LiveRun

from .history import Entry, History, require_picture
from .jobs import Cancelled, Job
from .library import Library
from .pictures import decoded
from .results import DrawResult, follow
from .settings import request_of

__all__ = ["DrawResult", "draw", "look", "redo", "save_partial"]
Work = Callable[[Job], Any]
HELD = "its own tokens, which this app still holds"


def draw(library: Library, history: History, drawing: Drawing, metadata: bool = True,
         source: str = "", cut: int = 0, drafts: str = "") -> Work:
    """Draw all pictures of a drawing.

    source: id of the picture of which it keeps a part. cut: pixels at the top that are not saved.
    drafts: the hash of the draft heads of a picture that is drawn again; "" for those in use.
    They are drawn at once, or one after the other where that is sooner.
    The work returns a DrawResult; if it was stopped, the job's result has what was finished. It
    uses the backbone that is loaded now, and fails if another one is loaded by then.
    """
    loaded = library.as_now(drafts)

    def work(job: Job) -> DrawResult:
        now = loaded()
        if drawing.pictures > 1:
            library.require_room(drawing)
        request = request_of(drawing, now.backbone, now.heads)
        history.require_room(request.pictures, request.sizes[0])
        runs = [LiveRun(part, send=job.tell, panel=panel)
                for panel, part in enumerate(request.parts())]
        try:
            return follow(job, runs, history, metadata, source, cut)
        except Cancelled:
            if drawing.keep_pixels is None and not cut and job.has_followers:
                keep_stopped(history, library, job.result, metadata)
            raise

    return work


def keep_stopped(history: History, library: Library, drawn: DrawResult, metadata: bool) -> None:
    """Save the finished rows of a run that the page leaves for the next one, if it had any."""
    try:
        save_partial(history, library, drawn, metadata)
    except SSDError as problem:
        drawn.saved.problem = drawn.saved.problem or str(problem)


def redo(library: Library, history: History, drawing: Drawing, source: Path, keep_rows: int,
         size: str | None = None, metadata: bool = True, drafts: str = "") -> Work:
    """Redraw a PNG below its first keep_rows rows; see `draw`.

    size: "WIDTHxHEIGHT" of the new picture, as wide and taller; None for the size of the PNG.
    """
    loaded = library.as_now()

    def work(job: Job) -> DrawResult:
        backbone = loaded().backbone
        width, height = size_of(source, backbone)
        seen = look(history, source, backbone)
        if seen.finished is not None and keep_rows > seen.finished:
            raise SSDError(f"{source.name}: only {seen.finished} of its rows were drawn: keep at "
                           "most those")
        tokens, how = rows_of(history, source, backbone.resized((width, height)))
        own = replace(with_words_of(history, source, drawing),
                      size=sized(size) or (width, height), keep_rows=keep_rows)
        if size:
            tokens = with_more_rows(tokens, backbone.resized(own.size).grid.rows)
        drawn = draw(library, history, replace(own, keep=tokens), metadata,
                     history.id_of(source), drafts=drafts)(job)
        return replace(drawn, how=how, unchanged=tokens.equal(drawn.tokens[:1].to(tokens)))

    return work


def with_more_rows(tokens: torch.Tensor, rows: int) -> torch.Tensor:
    """Tokens [1, R, C] -> [1, rows, C]; the new rows are zeros, to be drawn."""
    more = tokens.new_zeros(1, rows - tokens.shape[1], tokens.shape[2])
    return torch.cat((tokens, more), 1)


def save_partial(history: History, library: Library, drawn: DrawResult,
                 metadata: bool = True) -> Entry:
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
        backbone = loaded.backbone.resized(sized(recipe["size"]))
        picture, = tops(backbone, tokens[None], drawn.stopped_rows)
        drawn.partial.append(history.save(picture, recipe, "partial", metadata=metadata))
    return drawn.partial[0]


# Pictures to redo


@dataclass(frozen=True)
class Redoable:
    """A PNG to redo.

    how: where its tokens come from. finished: rows finished, if it was stopped early. rows,
    columns: of cells at its size. taller: legal sizes "WIDTHxHEIGHT" of the same width. typed,
    drawn, seed: by its recipe the words that were typed, those that it was drawn from, its seed.
    """

    how: str
    finished: int | None
    rows: int
    columns: int
    taller: tuple[str, ...] = ()
    typed: Words | None = None
    drawn: Words | None = None
    seed: int | None = None

    @property
    def encoded(self) -> bool:
        """Whether its tokens are guessed from its pixels, so that it may change a little."""
        return self.how.startswith("encoded")


def look(history: History, path: Path, backbone: Backbone) -> Redoable:
    """What a redo of this PNG would use; nothing is encoded.

    Raises SSDError if the picture is incomplete or the backbone does not support its size.
    """
    size = size_of(path, backbone)
    grid, taller = backbone.resized(size).grid, taller_sizes(backbone, size)
    rows, columns = grid.rows, grid.columns
    if (recipe := remembered_recipe(history, path, backbone)) is not None:
        return Redoable(HELD, stopped_rows(recipe, rows), rows, columns, taller)
    with decoded(path) as image:
        recipe = recipe_of(path, image)
        reason = reason_to_encode(recipe, backbone, np.array(upright(image)))
    words = (typed_words(recipe), drawn_words(recipe), recipe["seed"]) if recipe else ()
    if recipe is None or reason is not None:
        return Redoable(f"encoded: {reason}", None, rows, columns, taller, *words)
    return Redoable("tokens from its recipe", stopped_rows(recipe, rows), rows, columns, taller,
                  *words)


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


def with_words_of(history: History, path: Path, drawing: Drawing) -> Drawing:
    """The drawing with the words that a picture without recipe was drawn from.

    It is unchanged if another prompt was typed since, or if nothing is remembered of it.
    """
    words = inherited(history.unwritten(path), Words(drawing.prompt, drawing.negative))
    return replace(drawing, fixed=words) if words and not drawing.fixed else drawing


def stopped_rows(recipe: Mapping, rows: int) -> int | None:
    """How many rows were finished; None if it was not stopped early."""
    stopped = recipe.get("stopped_rows")
    return stopped if is_int(stopped) and 1 <= stopped < rows else None


def size_of(path: Path, backbone: Backbone) -> tuple[int, int]:
    """(width, height) of a complete PNG whose size this backbone supports."""
    require_picture(path)
    with decoded(path) as image:
        size = upright(image).size
    if size not in backbone.sizes:
        raise of_no_size(path, size, backbone)
    return size
