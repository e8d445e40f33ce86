"""What determines the pictures of a request. Knows no host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..weights.figures import stored_dtype

if TYPE_CHECKING:
    from .request import Request


def identity(request: Request) -> tuple:
    """Equal for requests that draw the same pictures by the same method.

    Different objects may hold the weights.
    """
    top = None if request.keep is None else request.keep[:, : request.keep_rows]
    tables = [each if each is None else each.tolist()
              for each in (top, request.parent, request.keep_mask)]
    return (request.backbone.sha256, stored_dtype(request.backbone),
            request.heads and request.heads.sha256, request.recorded, request.sampling,
            request.words, request.size, request.pictures, request.keep_rows, request.edit,
            str(tables))
