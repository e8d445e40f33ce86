"""Which saved pictures are favourites: their ids in a file beside them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from pathlib import Path

from ssd_core import SSDError
from ssd_core.files import json_of, require_regular, small_text, write_text

NAME = "favourites.json"


class Favourites:
    """Ids of the pictures below `folder` that somebody marked, kept in NAME there.

    A file that cannot be read counts as empty; it is replaced at the next change.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / NAME, threading.Lock()

    @property
    def ids(self) -> frozenset[str]:
        try:
            require_regular(self._path)
            ids = json_of(small_text(self._path))
        except (OSError, ValueError, SSDError):
            return frozenset()
        return frozenset(id_ for id_ in ids if isinstance(id_, str)) if isinstance(
            ids, list) else frozenset()

    def mark(self, ids: Iterable[str], marked: bool) -> None:
        """Mark these pictures, or take their marks away."""
        with self._lock:
            changed = self.ids | set(ids) if marked else self.ids - set(ids)
            write_text(self._path, json.dumps(sorted(changed), indent=1) + "\n")
