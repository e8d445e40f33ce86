"""Work for the Worker: redraw some cells of a saved picture in place. All others stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.engine.methods import METHODS, Exact
from ssd_core.engine.region import region_of
from ssd_core.output import picture_files

from .history import Entry, History
from .jobs import Job
from .library import Library
from .results import DrawResult
from .runs import Work, draw, look, rows_of, size_of, with_more_rows, with_words_of
from .settings import Settings


def edit(library: Library, history: History, settings: Settings, metadata: bool = True) -> Work:
    """Redraw the cells of `settings.parent` that `settings.keep_mask` leaves open; see `draw`.

    A mask of a taller size extends the picture downward. Without mask and old words, the settings
    are those of the parent with a variation. Raises SSDError if parent and mask do not fit
    together.
    """
    own, path = fitted(library.current.backbone, history, settings), parent_of(history, settings)
    loaded = library.as_now()

    def work(job: Job) -> DrawResult:
        backbone = loaded().backbone
        tokens, how = rows_of(history, path, backbone.resized(size_of(path, backbone)))
        tokens = with_more_rows(tokens, backbone.resized(own.pixels()).grid.rows)
        worded = with_words_of(history, path, own)
        asked: dict[str, Any] = {} if varies(own) else {
            "keep": tokens, "keep_pixels": pixels_of(path, own.pixels())}
        drawn = draw(library, history, worded, metadata=metadata,
                     source=history.id_of(path), **asked)(job)
        same = drawn.tokens.cpu().eq(tokens.cpu()).flatten(1).all(1)
        return replace(drawn, how=how, unchanged=bool(same.all()))

    return work


def pixels_of(path: Path, size: tuple[int, int] | None) -> torch.Tensor:
    """The pixels [1, H, W, 3] of a picture; at a taller size its last line is repeated below."""
    pixels = picture_files.pixels_of(path)[None]
    more = 0 if size is None else size[1] - pixels.shape[1]
    return torch.cat((pixels, pixels[:, -1:].expand(-1, more, -1, -1)), 1)


def fitted(backbone: Backbone, history: History, settings: Settings) -> Settings:
    """The settings with the size that the mask has; nothing is filled into the prompt. An edit by
    words is drawn by `exact` where the method cannot.

    Raises SSDError if there is no such size, or if the mask keeps what was never drawn.
    """
    path, known = parent_of(history, settings), settings.kept_cells
    if varies(settings) and not settings.knobs["variation"]:
        raise SSDError("keep_mask: missing: say which cells of the picture stay, or in old_prompt "
                       "the words that it was drawn from")
    seen = look(history, path, backbone)
    width, height = size_of(path, backbone)
    if known is None:
        known = torch.ones(seen.rows, seen.columns, dtype=torch.bool)
    else:
        width, height = sized_as(backbone, (width, height), known)
        if known.any():
            region_of(backbone.resized((width, height)).grid, keep_mask=known)
    drawn = seen.rows if seen.finished is None else seen.finished
    if known[drawn:].any():
        raise SSDError(f"{path.name}: only {drawn} of its rows were drawn: keep at most those")
    able = not settings.old_prompt or METHODS[settings.method].takes_words
    return replace(settings, size=f"{width}x{height}", expand=False,
                   method=settings.method if able else Exact.name)


def varies(settings: Settings) -> bool:
    """Whether nothing of the parent is kept: its own settings draw it again, with a variation."""
    return settings.keep_mask is None and not settings.old_prompt


def parent_of(history: History, settings: Settings) -> Path:
    """The file of the picture to edit."""
    if not settings.parent:
        raise SSDError("parent: missing: name the picture to edit by its id")
    return history.entry(settings.parent).path


def parent_tokens(backbone: Backbone, history: History, settings: Settings) -> torch.Tensor:
    """Tokens [1, R, C] of the picture to edit, zeros in rows that are new."""
    path = parent_of(history, settings)
    tokens, _ = rows_of(history, path, backbone.resized(size_of(path, backbone)))
    return with_more_rows(tokens, backbone.resized(settings.pixels()).grid.rows)


def sized_as(backbone: Backbone, size: tuple[int, int], mask: torch.Tensor) -> tuple[int, int]:
    """The size of the mask: the picture's own, or a taller one of the same width."""
    sizes = [each for each in backbone.sizes if each[0] == size[0] and each[1] >= size[1]]
    for each in sizes:
        grid = backbone.resized(each).grid
        if tuple(mask.shape) == (grid.rows, grid.columns):
            return each
    raise SSDError(f"keep_mask: {mask.shape[0]} x {mask.shape[1]} cells do not fit a picture of "
                   f"{size[0]}x{size[1]} pixels")


def edited_again(history: History, entry: Entry, settings: Settings) -> Settings:
    """The settings that draw an edited picture again: from its source, or else from itself.

    What a mask keeps is the same in both. An edit by words needs its source.
    """
    source = known(history, entry.source)
    if settings.old_prompt and not source:
        return settings.anew
    return replace(settings, parent="" if settings.keep_mask is None and not settings.old_prompt
                   else source or entry.id)


def known(history: History, id_: str | None) -> str:
    """An id, if the history still has its picture; else ""."""
    try:
        return history.entry(id_).id if id_ else ""
    except SSDError:
        return ""


def family(history: History, entry: Entry) -> list[Entry]:
    """The pictures that were made from each other, this one among them, the first one first."""
    root, seen = entry, {entry.id}
    while (above := known(history, root.source)) and above not in seen:
        root = history.entry(above)
        seen.add(above)
    found = {root.id: root}
    for newer in reversed(history.since(root.id)):
        if newer.source in found:
            found.setdefault(newer.id, newer)
    found.setdefault(entry.id, entry)
    return list(found.values())
