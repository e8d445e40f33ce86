"""Figures that a process measures, and a file that stores them if a host names a folder."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, ClassVar

from ..errors import SSDError
from ..files import atomic_write

MOST_KEYS = 64  # entries in a file


class StoredFigures:
    """Base of measured figures. Nothing is written before `keep_in` names a folder."""

    file: ClassVar[str]

    def __init__(self) -> None:
        self.path: Path | None = None

    def keep_in(self, folder: str | Path | None) -> None:
        """Load the figures from this folder, and save them there from now on; None: stop saving.

        An unreadable file counts as empty.
        """
        self.path = None if folder is None else Path(folder) / self.file
        if self.path is None:
            return
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            self.load(json.loads(self.path.read_text(encoding="utf-8")))

    def load(self, raw: Any) -> None:
        """Restore the figures that `to_json` returned."""
        raise NotImplementedError

    def to_json(self) -> Any:
        """The figures as values that JSON can store."""
        raise NotImplementedError

    def save(self) -> None:
        """Write the file; a failure to write is ignored."""
        if self.path is not None:
            with contextlib.suppress(SSDError, OSError), atomic_write(self.path) as temporary:
                temporary.write_text(json.dumps(self.to_json()), encoding="utf-8")


def drop_oldest(entries: dict) -> None:
    """Remove the oldest entries until MOST_KEYS are left."""
    while len(entries) > MOST_KEYS:
        entries.pop(next(iter(entries)))
