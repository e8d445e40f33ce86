"""Pictures in memory that are on no disk: those that could not be saved, and those just deleted.

Knows PNGs and ids, not why they are here.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict

MOST, MOST_BYTES = 64, 256 << 20  # in memory at once; the latest
PLACE = "unsaved"  # how ids begin; no folder of the history has this name


class Pictures:
    """PNGs by id, each with the time of its file in ns; only the latest."""

    def __init__(self) -> None:
        self._pngs: OrderedDict[str, tuple[bytes, int]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, id_: str, png: bytes, stamp: int = 0) -> None:
        with self._lock:
            self._pngs[id_] = png, stamp
            while len(self._pngs) > MOST or (self._bytes() > MOST_BYTES and len(self._pngs) > 1):
                self._pngs.popitem(last=False)

    def get(self, id_: str) -> bytes | None:
        return self._pngs.get(id_, (None, 0))[0]

    def take(self, id_: str) -> tuple[bytes, int] | None:
        """A picture with its time; it is no longer here then."""
        with self._lock:
            return self._pngs.pop(id_, None)

    def _bytes(self) -> int:
        return sum(len(png) for png, _ in self._pngs.values())


class Unsaved(Pictures):
    """Pictures by an id that ends with the name the file would have had."""

    def add(self, name: str, png: bytes) -> str:
        """Keep a picture; returns its id."""
        id_ = f"{PLACE}/{uuid.uuid4().hex}/{name}.png"
        self.put(id_, png)
        return id_
