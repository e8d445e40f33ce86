"""What determines the pictures of a request. Knows no host."""

from __future__ import annotations

from ..weights.model_size import stored_dtype
from .fields import Determining


def identity(request: Determining) -> tuple:
    """Equal for requests that draw the same pictures by the same method.

    Different objects may hold the weights.
    """
    top = None if request.keep is None else request.keep[:, : request.keep_rows]
    tables = [each if each is None else each.tolist()
              for each in (top, request.parent, request.keep_mask, *request.sized.sources)]
    return (request.backbone.sha256, stored_dtype(request.backbone),
            request.heads and request.heads.sha256, request.recorded, request.sampling,
            request.words, request.size, request.pictures, request.keep_rows, request.edit,
            str(tables))
