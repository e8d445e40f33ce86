"""What a request keeps of another picture: cells, and their own pixels. Knows no host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

from ..output.kept_cells import of_picture
from ..output.kept_pixels import with_kept_pixels
from .edited import Edited
from .fields import Keeping


def kept_by(request: Keeping) -> torch.Tensor | None:
    """bool [B or 1, R, C]: the cells that retain their own pixels; None if there are none.

    Rows that are kept by number retain theirs only if the request has the pixels: the rest of
    their picture may not be drawn, and the codec also reads the cells below them.
    """
    if request.keep is None or request.keep_mask is None and request.keep_pixels is None:
        return None
    known = ~request.region.mask
    return known if known.any() else None


def finished_pictures(request: Keeping, edit: Edited | None,
                      drawn: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The decoded pictures [H, W, 3] of a run, one after the other, kept cells with their own
    pixels. Every host passes its pictures through here. edit: the outcome of an edit by words.
    """
    known = kept_by(request) if edit is None else edit.untouched
    if known is None or request.keep is None:
        return iter(drawn)
    return with_kept_pixels(request.sized, drawn, known, request.keep, request.keep_pixels)


def kept_of_picture(request: Keeping, n: int) -> dict:
    """The fields of a request for picture n alone."""
    keep, own = request.keep, request.keep_pixels
    return {"keep": None if keep is None else keep[n % len(keep)][None],
            "keep_mask": of_picture(request.keep_mask, n),
            "keep_pixels": None if own is None else own[n % len(own)][None],
            "fixed": request.fixed[n : n + 1] if len(request.fixed) > 1 else request.fixed}
