"""A picture that is being drawn: the pixels on its canvas against the tokens that were told so far.

Soft is allowed; gaps, stripes and shifts are not.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from PIL import Image

from ssd_core.output.pixels import pixels
from ssd_core.output.recipe import to_bytes

from .preview_run import ROOT

SOFT = 40.0  # of 255: how far soft colours are from the decoded ones in half a row, on average
HALVES = 20.0  # how much further the lower half of a row may be from them than the upper one
COARSE = "**/coarse.js*"
# The painter that made a venetian blind of every run: colours faded into unknown cells, and a row
# was not painted anew once the next one was known.
BLINDS = (("const REACH = 2;", "const REACH = 0;"), ("first - tall, this", "first, this"))
STILL = """async (selector) => {
  const seen = [""];
  while (seen.length < 4) {
    const now = document.querySelector(selector)?.toDataURL() ?? null; // it may not be there yet
    if (now && now === seen[0]) seen.push(now); else seen.splice(0, seen.length, now);
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  return seen[0];
}"""


def blinds(route) -> None:
    """Serve the painter with the fault that it once had."""
    source = (ROOT / "web" / "preview" / "coarse.js").read_text(encoding="utf-8")
    for ours, theirs in BLINDS:
        assert ours in source, ours
        source = source.replace(ours, theirs)
    route.fulfill(body=source, content_type="text/javascript")


def canvas_of(page, selector: str) -> np.ndarray:
    """uint8 [H, W, 4] of a canvas, once nothing changes on it any more."""
    return rgba(page.evaluate(STILL, selector).partition(",")[2])


def rgba(png: str) -> np.ndarray:
    return np.array(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA"))


def known(messages: Iterable[Mapping]) -> np.ndarray:
    """bool [R, C]: the cells that these messages of one run told so far."""
    told = np.zeros((0, 0), bool)
    for message in messages:
        if message["kind"] == "started":
            told = np.zeros((message["rows"], message["columns"]), bool)
        if message["kind"] in ("rows", "cells"):
            rows = slice(message["first"], message["last"])
            told[rows] |= cells_of(rgba(message["strips"][0])[..., 3] == 255, told[rows].shape)
    return told


def cells_of(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The means of each cell, [R, C, ...]; of truths whether all are true."""
    rows, columns = shape
    height, width = values.shape[:2]
    cells = values.reshape(rows, height // rows, columns, width // columns, *values.shape[2:])
    return cells.all((1, 3)) if values.dtype == bool else cells.mean((1, 3))


def decoded(backbone, tokens: torch.Tensor) -> np.ndarray:
    """uint8 [H, W, 3] of tokens [R, C]."""
    return to_bytes(next(iter(pixels(backbone, tokens[None]))))


def faults(canvas: np.ndarray, told: np.ndarray, picture: np.ndarray) -> list[str]:
    """What is wrong with a canvas on which the cells `told` of a picture [H, W, 3] are painted."""
    found = []
    opaque = cells_of(canvas[..., 3] == 255, told.shape)
    if (told & ~opaque).any():
        found.append(f"gaps in rows {sorted(set(np.argwhere(told & ~opaque)[:, 0].tolist()))}")
    if cells_of(canvas[..., 3] > 0, told.shape)[~told].any():
        found.append("cells are painted that nobody knows")
    alpha = canvas[..., 3:].astype(float) / 255
    seen = canvas[..., :3] * alpha + 128 * (1 - alpha)  # on grey, as on the page
    halves = (2 * told.shape[0], told.shape[1])
    off = np.abs(cells_of(seen, halves) - cells_of(picture.astype(float), halves)).mean(-1)
    for row in np.flatnonzero(told.any(1)):
        upper, lower = (off[2 * row + n, told[row]].mean() for n in (0, 1))
        if max(upper, lower) > SOFT or lower > upper + HALVES:
            found.append(f"row {row} is off by {upper:.0f} above and {lower:.0f} below")
    return found + shifts(cells_of(seen, told.shape), cells_of(picture.astype(float), told.shape),
                          told)


def shifts(seen: np.ndarray, picture: np.ndarray, told: np.ndarray) -> list[str]:
    """Whether the cells look far more like others beside them than like themselves."""
    def off(down: int, right: int) -> float:
        moved = np.roll(picture, (down, right), (0, 1))
        return float(np.abs(seen - moved)[told].mean())

    own = off(0, 0)
    return [f"looks shifted by {down} rows, {right} columns" for down, right in
            ((1, 0), (-1, 0), (0, 1), (0, -1)) if off(down, right) < 0.8 * own]
