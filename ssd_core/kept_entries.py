"""Entries by key in a file of the user's cache, or in memory where there is none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from .errors import SSDError
from .kept_files import cache_folder
from .state_files import StateFile

MOST = 16  # entries in a file
Entry = TypeVar("Entry")


class KeptEntries(Generic[Entry]):
    """When full, the entry that was stored first goes. An unreadable file counts as empty.

    parsed: an entry from JSON; raises TypeError, ValueError or AttributeError for impossible
    values. to_json: its values for JSON.
    """

    def __init__(self, file: str, parsed: Callable[[Any], Entry],
                 to_json: Callable[[Entry], Any]) -> None:
        self.name, self.parsed, self.to_json = file, parsed, to_json
        self.in_memory: dict[str, Entry] = {}

    @property
    def file(self) -> StateFile[dict[str, Entry]] | None:
        if (folder := cache_folder()) is None:
            return None
        return StateFile(
            folder / self.name,
            lambda raw: {key: self.parsed(entry) for key, entry in raw.items()}, dict,
            lambda entries: {key: self.to_json(entry) for key, entry in entries.items()})

    def read(self) -> dict[str, Entry]:
        return dict(self.in_memory) if (file := self.file) is None else file.read()

    def put(self, key: str, entry: Entry) -> None:
        """Store an entry in place of the earlier one; a failure to write is ignored."""
        def changed(entries: dict[str, Entry]) -> dict[str, Entry]:
            entries.pop(key, None)
            longer = {**entries, key: entry}
            return dict(list(longer.items())[-MOST:])

        if (file := self.file) is None:
            self.in_memory = changed(self.in_memory)
        else:
            with suppress(SSDError):
                file.change(changed)
