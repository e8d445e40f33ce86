"""The kept rows or cells of a picture as text, for the node that puts them into a workflow.

A workflow inside a PNG cannot refer to a file on another machine, so it contains the tokens.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from ..errors import SSDError
from ..model.grid import LONGEST_SIDE
from .kept_cells import kept_of
from .packed import pack, pack_mask, unpack, unpack_mask

KIND, WIDTH = "<i4", 4  # of a token in a recipe, and its bytes


@dataclass(frozen=True)
class KeptRows:
    """tokens [R, C], zeros below the first `rows`; name and hash of their backbone.

    redrawn: bool [R, C] if cells were kept by a mask; then all tokens are the parent's.
    """

    tokens: torch.Tensor
    rows: int
    backbone: str
    sha256: str
    redrawn: torch.Tensor | None = None


def written(recipe: Mapping) -> str:
    """The rows or cells that the picture of a checked recipe kept from another picture."""
    if "keep_mask" in recipe:
        cells = kept_of(recipe)
        return json.dumps({"backbone": recipe["backbone"], "parent": pack(cells["keep"][0]),
                           "keep_mask": pack_mask(cells["keep_mask"])}, separators=(",", ":"))
    shape = recipe["tokens"]["shape"]
    top = base64.b64decode(recipe["tokens"]["data"])[: WIDTH * shape[1] * recipe["keep_rows"]]
    return json.dumps({"backbone": recipe["backbone"], "shape": shape,
                       "rows": base64.b64encode(top).decode("ascii")}, separators=(",", ":"))


def read(text: str) -> KeptRows:
    """Parse a text made by `written`; SSDError for any other."""
    try:
        saved = json.loads(text)
        if "keep_mask" in saved:
            return with_mask(saved)
        (rows, columns), backbone = saved["shape"], saved["backbone"]
        codes = np.frombuffer(base64.b64decode(saved["rows"], validate=True), KIND)
        top = torch.from_numpy(codes.astype(np.int64)).view(-1, columns)
        tokens = torch.zeros(min(rows, LONGEST_SIDE), columns, dtype=torch.long)
        tokens[: len(top)] = top
        return KeptRows(tokens, len(top), str(backbone["name"]), str(backbone["sha256"]))
    except (ValueError, TypeError, KeyError, RuntimeError, RecursionError) as error:
        raise SSDError("text: this is not the text of tokens: drop a picture that kept a part of "
                       "another one onto the page, which fills it in") from error


def with_mask(saved: Mapping) -> KeptRows:
    """ValueError, TypeError or KeyError if it is malformed."""
    tokens, known = unpack(saved["parent"]), unpack_mask(saved["keep_mask"])
    if tokens.shape != known.shape:
        raise ValueError("the mask does not fit the tokens")
    backbone = saved["backbone"]
    return KeptRows(tokens, 0, str(backbone["name"]), str(backbone["sha256"]), ~known)
