"""The kept rows or cells of a picture as text, for the node that puts them into a workflow.

A workflow inside a PNG cannot refer to a file on another machine, so it contains the tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..errors import SSDError
from .drawing import Drawing, drawing_of

KEPT = ("keep", "keep_rows", "keep_mask")  # of a drawing's JSON


def written(recipe: Mapping) -> str:
    """The rows or cells that the picture of a checked recipe kept from another picture."""
    drawing = drawing_of(recipe)
    if drawing.keep is not None and drawing.keep_rows:
        drawing.keep[:, drawing.keep_rows :] = 0  # not needed, and zeros are short
    raw = drawing.to_json()
    return json.dumps({"backbone": recipe["backbone"], **{name: raw[name] for name in KEPT
                                                          if name in raw}}, separators=(",", ":"))


def read(text: str) -> tuple[Drawing, dict[str, str]]:
    """A drawing that keeps what `written` has told, and name and sha256 of the backbone.

    SSDError for any other text.
    """
    try:
        raw = json.loads(text)
        drawing = Drawing.from_json({name: raw[name] for name in KEPT if name in raw})
        keep, mask, rows = drawing.keep, drawing.keep_mask, drawing.keep_rows
        if keep is None or rows > keep.shape[1] or (
                mask is not None and mask.shape != keep[0].shape):
            raise ValueError("rows and mask do not fit the tokens")
        return drawing, {key: str(raw["backbone"][key]) for key in ("name", "sha256")}
    except (ValueError, TypeError, KeyError, RecursionError, SSDError) as error:
        raise SSDError("text: this is not the text of tokens: drop a picture that kept a part of "
                       "another one onto the page, which fills it in") from error
