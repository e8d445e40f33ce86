"""Rows of which only a colour for each cell is known, as soft colours instead of squares.

The same as `web/preview/coarse.js` paints on the page.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

REACH = 2  # cells over which colours blend
# Places within REACH of a cell, the nearest first.
AROUND = sorted(((y, x) for y in range(-REACH, REACH + 1) for x in range(-REACH, REACH + 1)),
                key=lambda place: place[0] ** 2 + place[1] ** 2)


class SoftCells:
    """The cells of a picture: colours uint8 [R, C, 3], known and sharp (decoded) bool [R, C]."""

    def __init__(self, rows: int, columns: int) -> None:
        self.colours = np.zeros((rows, columns, 3), np.uint8)
        self.known, self.sharp = (np.zeros((rows, columns), bool) for _ in range(2))
        self.changed = False

    def note(self, strip: np.ndarray, first: int, last: int, sharp: bool) -> None:
        """Take the cells of rows first..last-1 from a strip uint8 [h, w, 4] of any scale."""
        size = (self.known.shape[1], last - first)
        cells = np.asarray(Image.fromarray(strip).resize(size, Image.Resampling.BOX))
        opaque = cells[..., 3] > 127
        rows = slice(first, last)
        self.colours[rows][opaque] = cells[opaque][:, :3]
        self.known[rows] |= opaque
        self.sharp[rows] |= opaque & sharp
        self.changed = True

    def paint(self, pixels: np.ndarray) -> None:
        """Paint the known cells that are not sharp on a picture uint8 [H, W, 3]."""
        soft = self.known & ~self.sharp
        if not self.changed or not soft.any():
            return
        self.changed = False
        height, width, _ = pixels.shape
        tall, wide = height // len(soft), width // soft.shape[1]
        blended = np.asarray(Image.fromarray(self._grown()).resize(
            (width, height), Image.Resampling.BILINEAR))
        where = soft.repeat(tall, 0).repeat(wide, 1)
        pixels[where] = blended[where]

    def _grown(self) -> np.ndarray:
        """The colours, where unknown cells look like the nearest known ones."""
        rows, columns = self.known.shape
        pad = ((REACH, REACH), (REACH, REACH))
        colours, known = np.pad(self.colours, (*pad, (0, 0))), np.pad(self.known, pad)
        grown, filled = np.zeros_like(self.colours), np.zeros_like(self.known)
        for y, x in AROUND:
            place = (slice(REACH - y, REACH - y + rows), slice(REACH - x, REACH - x + columns))
            new = known[place] & ~filled
            grown[new] = colours[place][new]
            filled |= new
        return grown
