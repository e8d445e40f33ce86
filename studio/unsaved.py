"""Finished pictures that could not be saved, in memory, so that the page can still download them.

Knows PNGs and ids, not why nothing could be written.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict

MOST, MOST_BYTES = 64, 256 << 20  # kept at once; the latest
PLACE = "unsaved"  # how ids begin; no folder of the history has this name


class Unsaved:
    """PNGs by an id that ends with the name the file would have had."""

    def __init__(self) -> None:
        self._pngs: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, name: str, png: bytes) -> str:
        """Keep a picture; returns its id."""
        id_ = f"{PLACE}/{uuid.uuid4().hex}/{name}.png"
        with self._lock:
            self._pngs[id_] = png
            while len(self._pngs) > MOST or self._bytes() > MOST_BYTES and len(self._pngs) > 1:
                self._pngs.popitem(last=False)
        return id_

    def get(self, id_: str) -> bytes | None:
        return self._pngs.get(id_)

    def _bytes(self) -> int:
        return sum(map(len, self._pngs.values()))
