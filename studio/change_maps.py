"""The cells that other words would change, while somebody types them."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

import torch

from ssd_core import SSDError
from ssd_core.engine.edits.look import Changes
from ssd_core.output.drawing import Drawing

from .edits import completed, parent_of
from .entries import key_of
from .history import History
from .library import Library, Loaded
from .runs import look, rows_of, size_of

MOST_BYTES = 1 << 28  # of what is kept of a picture between two changes of its words


class ChangeMaps:
    """Maps of changes, read one at a time; the last picture under its old words is kept."""

    def __init__(self) -> None:
        self._reading = Lock()
        self._last: tuple[tuple, Changes] | None = None
        self._map: tuple[tuple, torch.Tensor] | None = None

    def of(self, library: Library, history: History, drawing: Drawing,
           parent: str) -> list[list[float]]:
        """How much the new words change each cell of the parent, 0..1, row by row."""
        return [[round(share, 2) for share in row]
                for row in self.shares(library, history, drawing, parent).tolist()]

    def shares(self, library: Library, history: History, drawing: Drawing,
               parent: str) -> torch.Tensor:
        """The same, float32 [R, C]."""
        path, loaded, sampling = parent_of(history, parent), library.current, drawing.sampling
        if drawing.edit is None:
            raise SSDError("old_prompt: missing: say what the picture was drawn from")
        old, knobs = drawing.edit.old_prompt, {"guidance": sampling.cfg, "min_p": sampling.min_p}
        key = (loaded.identity, key_of(path), old, *knobs.values())
        whole = completed(loaded.backbone, look(history, path, loaded.backbone), drawing)
        prompt = next((words.prompt for words in whole.fixed), drawing.prompt)
        with self._reading:
            if self._map is None or self._map[0] != (key, prompt):
                changes = self._changes(loaded, history, old, path, key, knobs)
                self._map = (key, prompt), changes.by(prompt)
            return self._map[1]

    def _changes(self, loaded: Loaded, history: History, old: str, path: Path,
                 key: tuple, knobs: dict[str, Any]) -> Changes:
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        self._last = None
        sized = loaded.backbone.resized(size_of(path, loaded.backbone))
        changes = Changes(sized, rows_of(history, path, sized)[0], old, **knobs)
        if changes.before.cache.nbytes <= MOST_BYTES:
            self._last = key, changes
        return changes

    def drop(self) -> None:
        """Keep nothing of the backbone that is loaded now."""
        with self._reading:
            self._last = None
