"""Work for the Worker: redraw some cells of a saved picture in place. All others stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.engine.methods import Exact
from ssd_core.engine.region import region_of
from ssd_core.output import picture_files
from ssd_core.output.drawing import Drawing
from ssd_core.output.words import Words

from .additions import own_additions
from .history import Entry, History
from .jobs import Job
from .library import Library
from .results import DrawResult
from .runs import Redoable, Work, draw, look, rows_of, size_of, with_more_rows, with_words_of
from .settings import anew


def edit(library: Library, history: History, drawing: Drawing, parent: str,
         metadata: bool = True, drafts: str = "") -> Work:
    """Redraw the cells of the picture with the id `parent` that keep_mask leaves open; see `draw`.

    A mask of a taller size extends the picture downward. Without mask and old words, the drawing
    is that of the parent with a variation. Raises SSDError if parent and mask do not fit together.
    """
    own = fitted(library.current.backbone, history, drawing, parent)
    path = parent_of(history, parent)
    loaded = library.as_now()

    def work(job: Job) -> DrawResult:
        backbone = loaded().backbone
        tokens, how = rows_of(history, path, backbone.resized(size_of(path, backbone)))
        tokens = with_more_rows(tokens, backbone.resized(own.size).grid.rows)
        worded = with_words_of(history, path, own)
        if not varies(own):
            worded = replace(worded, keep=tokens, keep_pixels=pixels_of(path, own.size))
        drawn = draw(library, history, worded, metadata, history.id_of(path), drafts=drafts)(job)
        same = drawn.tokens.cpu().eq(tokens.cpu()).flatten(1).all(1)
        return replace(drawn, how=how, unchanged=bool(same.all()))

    return work


def pixels_of(path: Path, size: tuple[int, int] | None) -> torch.Tensor:
    """The pixels [1, H, W, 3] of a picture; at a taller size its last line is repeated below."""
    pixels = picture_files.pixels_of(path)[None]
    more = 0 if size is None else size[1] - pixels.shape[1]
    return torch.cat((pixels, pixels[:, -1:].expand(-1, more, -1, -1)), 1)


def fitted(backbone: Backbone, history: History, drawing: Drawing, parent: str) -> Drawing:
    """The drawing with the size that the mask has. `expand` fills the prompt in as the parent's own
    one was, and adds nothing else. An edit by words is drawn by `exact` where the method cannot.

    Raises SSDError if there is no such size, or if the mask keeps what was never drawn.
    """
    path, known = parent_of(history, parent), drawing.keep_mask
    if varies(drawing) and not drawing.sampling.variation:
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
    able = drawing.edit is None or drawing.method.takes_words
    return replace(completed(backbone, seen, drawing), size=(width, height),
                   method=drawing.method if able else Exact())


def completed(backbone: Backbone, seen: Redoable, drawing: Drawing) -> Drawing:
    """The drawing with its prompt filled in as that of the parent was; see `fitted`."""
    complete = own_additions(backbone, seen.typed, seen.drawn, seen.seed)
    if complete is None or not drawing.expand:
        return replace(drawing, expand=False)
    whole = Words(complete(drawing.prompt), drawing.negative)
    return replace(drawing, expand=False, fixed=(whole,))


def varies(drawing: Drawing) -> bool:
    """Whether nothing of the parent is kept: its own settings draw it again, with a variation."""
    return drawing.keep_mask is None and drawing.edit is None


def parent_of(history: History, parent: str) -> Path:
    """The file of the picture to edit, by its id."""
    if not parent:
        raise SSDError("parent: missing: name the picture to edit by its id")
    return history.entry(parent).path


def with_parent(backbone: Backbone, history: History, drawing: Drawing, parent: str) -> Drawing:
    """The drawing with the tokens of the picture to edit, zeros in rows that are new."""
    path = parent_of(history, parent)
    tokens, _ = rows_of(history, path, backbone.resized(size_of(path, backbone)))
    return replace(drawing, keep=with_more_rows(tokens, backbone.resized(drawing.size).grid.rows))


def sized_as(backbone: Backbone, size: tuple[int, int], mask: torch.Tensor) -> tuple[int, int]:
    """The size of the mask: the picture's own, or a taller one of the same width."""
    sizes = [each for each in backbone.sizes if each[0] == size[0] and each[1] >= size[1]]
    for each in sizes:
        grid = backbone.resized(each).grid
        if tuple(mask.shape) == (grid.rows, grid.columns):
            return each
    raise SSDError(f"keep_mask: {mask.shape[0]} x {mask.shape[1]} cells do not fit a picture of "
                   f"{size[0]}x{size[1]} pixels")


def edited_again(history: History, entry: Entry, drawing: Drawing) -> tuple[Drawing, str]:
    """What draws an edited picture again, and the id of its parent: its source, or else itself.

    What a mask keeps is the same in both. An edit by words needs its source.
    """
    source = known(history, entry.source)
    if drawing.edit is not None and not source:
        return anew(drawing), ""
    return drawing, "" if varies(drawing) else source or entry.id


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
