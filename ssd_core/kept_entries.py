"""Entries by key in a file of the user's cache, or in memory where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from .errors import SSDError
from .files import json_of, small_text, write_text
from .kept_files import cache_folder

MOST = 16  # entries in a file
Entry = TypeVar("Entry")


class KeptEntries(Generic[Entry]):
    """When full, the entry that was stored first goes. An unreadable file counts as empty.

    parsed: an entry from JSON; raises TypeError, ValueError or AttributeError for impossible
    values. to_json: its values for JSON.
    """

    def __init__(self, file: str, parsed: Callable[[Any], Entry],
                 to_json: Callable[[Entry], Any]) -> None:
        self.file, self.parsed, self.to_json = file, parsed, to_json
        self.in_memory: dict[str, Entry] = {}

    def read(self) -> dict[str, Entry]:
        if (folder := cache_folder()) is None:
            return dict(self.in_memory)
        with suppress(OSError, ValueError, TypeError, AttributeError):
            raw = json_of(small_text(folder / self.file))
            return {key: self.parsed(entry) for key, entry in raw.items()}
        return {}

    def put(self, key: str, entry: Entry) -> None:
        """Store an entry in place of the earlier one; a failure to write is ignored."""
        entries = self.read()
        entries.pop(key, None)
        entries[key] = entry
        while len(entries) > MOST:
            entries.pop(next(iter(entries)))
        if (folder := cache_folder()) is None:
            self.in_memory = entries
            return
        raw = {key: self.to_json(entry) for key, entry in entries.items()}
        with suppress(SSDError):
            write_text(folder / self.file, json.dumps(raw, indent=1))
