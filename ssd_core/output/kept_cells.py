"""The cells that a picture kept from its parent, in its recipe.

`keep_rows` counts whole rows at the top. `keep_mask` marks single cells, and `parent` holds the
tokens of the picture they come from, which first guesses may use, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from .packed import pack, pack_mask, unpack, unpack_mask


def kept_keys(keep: torch.Tensor | None, keep_mask: torch.Tensor | None) -> dict:
    """The recipe's keys for keep [R, C] and keep_mask [R, C]; none of them for None."""
    parent = {} if keep is None else {"parent": pack(keep)}
    return parent if keep_mask is None else {**parent, "keep_mask": pack_mask(keep_mask)}


def kept_of(recipe: Mapping) -> dict:
    """The arguments keep, keep_rows and keep_mask of `prepare` that a checked recipe describes.

    The first keep_rows rows are the picture's own, other kept cells the parent's.
    """
    rows = recipe["keep_rows"]
    if "parent" not in recipe:
        return {"keep": unpack(recipe["tokens"])[None], "keep_rows": rows} if rows else {}
    keep = unpack(recipe["parent"])
    keep[:rows] = unpack(recipe["tokens"])[:rows]
    if "keep_mask" not in recipe:
        return {"keep": keep[None], "keep_rows": rows}
    mask = unpack_mask(recipe["keep_mask"])
    mask[:rows] = True
    return {"keep": keep[None], "keep_mask": mask}


def check_kept(recipe: Mapping) -> None:
    """Raise ValueError unless mask and parent have the shape of the picture and fit each other."""
    shape = unpack(recipe["tokens"]).shape
    if "parent" in recipe and unpack(recipe["parent"], "parent").shape != shape:
        raise ValueError("parent has another shape than tokens")
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
