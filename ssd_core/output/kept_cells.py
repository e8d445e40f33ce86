"""The cells that a picture kept from its parent, in its recipe.

`keep_rows` counts whole rows at the top. `keep_mask` marks single cells, and `parent` holds the
tokens of the picture they come from, which first guesses may use, too. `edit` holds that picture's
words, where new words decided which cells to keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields

import torch

from ..engine.edits.words import Edit
from ..errors import SSDError
from .packed import pack, pack_mask, unpack, unpack_mask


def kept_keys(keep: torch.Tensor | None, keep_mask: torch.Tensor | None,
              edit: Edit | None = None) -> dict:
    """The recipe's keys for keep [R, C], keep_mask [R, C] and an edit; none of them for None."""
    return {**({} if keep is None else {"parent": pack(keep)}),
            **({} if keep_mask is None else {"keep_mask": pack_mask(keep_mask)}),
            **({} if edit is None else {"edit": asdict(edit)})}


def kept_of(recipe: Mapping) -> dict:
    """The fields of a `Request` for kept cells and an edit that a checked recipe describes.

    The first keep_rows rows are the picture's own, other kept cells the parent's.
    """
    rows = recipe["keep_rows"]
    if "parent" not in recipe:
        return {"keep": unpack(recipe["tokens"])[None], "keep_rows": rows} if rows else {}
    keep = unpack(recipe["parent"])
    keep[:rows] = unpack(recipe["tokens"])[:rows]
    edit = asdict(edit_of(recipe["edit"])) if "edit" in recipe else {}
    if "keep_mask" not in recipe:
        return {"keep": keep[None], "keep_rows": rows, **edit}
    mask = unpack_mask(recipe["keep_mask"])
    mask[:rows] = True
    return {"keep": keep[None], "keep_mask": mask, **edit}


def edit_of(recorded: Mapping) -> Edit:
    """The edit that a recipe describes; raises SSDError for illegal values."""
    return Edit(**{f.name: recorded[f.name] for f in fields(Edit) if f.name in recorded})


def check_kept(recipe: Mapping) -> None:
    """Raise ValueError unless mask and parent have the shape of the picture and fit each other."""
    shape = unpack(recipe["tokens"]).shape
    if "parent" in recipe and unpack(recipe["parent"], "parent").shape != shape:
        raise ValueError("parent has another shape than tokens")
    if "edit" in recipe:
        try:
            edit_of(recipe["edit"])
        except SSDError as error:
            raise ValueError(str(error)) from error
        if "parent" not in recipe:
            raise ValueError("edit has no parent")
    if "keep_mask" not in recipe:
        return
    mask = unpack_mask(recipe["keep_mask"])
    if mask.shape != shape or "parent" not in recipe:
        raise ValueError("keep_mask does not fit tokens and parent")
    if mask.all() or not mask.any():
        raise ValueError("keep_mask must keep some cells, not all")


def of_picture(each: torch.Tensor | None, picture: int) -> torch.Tensor | None:
    """The part [R, C] of [R, C] or [B or 1, R, C] that belongs to one picture of a batch."""
    return each if each is None or each.dim() < 3 else each[picture % len(each)]
