"""Which saved pictures are favourites: their ids in a file beside them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ssd_core import SSDError
from ssd_core.state_files import StateFile

NAME = "favourites.json"


class Favourites:
    """Ids of the pictures below `folder` that somebody marked, kept in NAME there.

    problems: gets a line while that file cannot be read; it is put aside at the next change.
    """

    def __init__(self, folder: Path, problems: dict[str, str]) -> None:
        self._file = StateFile(folder / NAME, parsed, frozenset, sorted)
        self._problems = problems

    @property
    def ids(self) -> frozenset[str]:
        try:
            ids = self._file.stored()
        except SSDError as error:
            self._problems[NAME] = str(error)
            return frozenset()
        self._problems.pop(NAME, None)
        return ids

    def mark(self, ids: Iterable[str], marked: bool) -> None:
        """Mark these pictures, or take their marks away."""
        change = frozenset(ids)
        self._file.change(lambda known: known | change if marked else known - change)


def parsed(raw: object) -> frozenset[str]:
    if not isinstance(raw, list):
        raise ValueError("not a list")
    return frozenset(id_ for id_ in raw if isinstance(id_, str))
