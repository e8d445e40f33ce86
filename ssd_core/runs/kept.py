"""What a request keeps of another picture: cells, and their own pixels. Knows no host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch

from ..output.kept_cells import of_picture
from ..output.kept_pixels import with_kept_pixels

if TYPE_CHECKING:
    from .request import Request, Result


def kept_by(request: Request) -> torch.Tensor | None:
    """bool [B or 1, R, C]: the cells that retain their own pixels; None if there are none.

    Rows that are kept by number retain theirs only if the request has the pixels: the rest of
    their picture may not be drawn, and the codec also reads the cells below them.
    """
    if request.keep is None or request.keep_mask is None and request.keep_pixels is None:
        return None
    kept = ~request.region.free
    return kept if kept.any() else None


def finished_pictures(result: Result, drawn: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The decoded pictures [H, W, 3] of a run, one after the other, kept cells with their own
    pixels. Every host passes its pictures through here.
    """
    request = result.request
    kept = kept_by(request) if result.edit is None else result.edit.untouched
    if kept is None or request.keep is None:
        return iter(drawn)
    return with_kept_pixels(request.sized, drawn, kept, request.keep, request.keep_pixels)


def kept_of_picture(request: Request, n: int) -> dict:
    """The fields of a request for picture n alone."""
    keep, own = request.keep, request.keep_pixels
    return {"keep": None if keep is None else keep[n % len(keep)][None],
            "keep_mask": of_picture(request.keep_mask, n),
            "keep_pixels": None if own is None else own[n % len(own)][None],
            "fixed": request.fixed[n : n + 1] if len(request.fixed) > 1 else request.fixed}
