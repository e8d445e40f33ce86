"""The part of another picture that a sampler keeps: its top rows, or what a mask leaves black."""

from __future__ import annotations

import torch

from ..ssd_core.errors import SSDError
from ..ssd_core.model.grid import Grid
from ..ssd_core.output.picture_files import redrawn_cells
from ..ssd_core.output.words import Words, inherited
from .types import LoadedModel, TokenPictures


def picked(picture: TokenPictures | None, place: int) -> TokenPictures | None:
    """The picture of a batch with this number; all of them for 0."""
    return picture.picked(place) if picture is not None and place else picture


def fields_of(picture: TokenPictures | None, rows: int, mask: torch.Tensor | None,
              model: LoadedModel, pictures: int) -> tuple[dict, list[str]]:
    """The fields of Request that say what is kept, and a note if something has no effect.

    Raises SSDError if something is to be kept of no picture.
    """
    if picture is None:
        if rows or mask is not None:
            raise SSDError(f"{f'keep_rows {rows}' if rows else 'mask'}: there is no picture to "
                           "keep a part of: connect its run to 'picture'")
        return {}, []
    if mask is None and rows == 0:
        return {}, ["picture is not used: keep_rows, among the advanced inputs, is 0, and no mask "
                    "is connected"]
    tokens = picture.for_backbone(model.module)
    fields = {"keep": tokens, "keep_pixels": picture.pixels}
    if mask is None:
        return {**fields, "keep_rows": rows}, []
    known = keep_mask(mask, Grid(*tokens.shape[1:]), rows, pictures)
    if not known.any():
        return {}, ["picture is not used: the mask is white everywhere, so all is redrawn"]
    return {**fields, "keep_mask": known}, []


def keep_mask(mask: torch.Tensor, grid: Grid, rows: int, pictures: int) -> torch.Tensor:
    """bool [B, R, C], True for cells that stay: those that are black, and the first rows.

    Masks are repeated for all pictures, as ComfyUI does.
    """
    known = ~redrawn_cells(mask, grid)
    known[:, :rows] = True
    return known if len(known) == 1 else known[torch.arange(pictures) % len(known)]


def words_of_known(picture: TokenPictures | None, fields: dict, typed: Words,
                  pictures: int) -> tuple[tuple[Words, ...], list[str]]:
    """The words of the kept pictures, if their typed prompt is the same, and a note.

    () if they cannot be used: then the prompt is expanded anew.
    """
    recipes = picture.recipes if picture is not None and fields else ()
    words = tuple(drawn for recipe in recipes for drawn in inherited(recipe, typed))
    if len(words) != len(recipes) or len(words) not in (1, pictures):
        return (), []
    note = "the prompt is that of the kept picture: it is drawn with the words of that one"
    return words, [note] if any(drawn != typed for drawn in words) else []
