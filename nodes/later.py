"""Modules that only a run, or a question of ComfyUI's page, needs.

`from .later import running` gives a module that is imported when it is first used, so that ComfyUI
starts without the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..ssd_core.engine.edits import look
    from ..ssd_core.output import changed_words, heatmap, kept_rows, labels, recipe, replay
    from ..ssd_core.runs import comparison, request
    from ..ssd_core.train import own_pictures
    from ..ssd_core.weights import advice, model_size
    from . import (
        decoding,
        downloads,
        draft_heads,
        facts,
        finished,
        fitting,
        keeping,
        learning,
        outcome,
        panels,
        report,
        requests,
        running,
        schedules,
        sources,
        things,
        unfinished,
        weights,
    )

ROOMS = {"changed_words": "output", "heatmap": "output", "kept_rows": "output", "labels": "output",
         "recipe": "output", "replay": "output", "comparison": "runs", "request": "runs",
         "look": "engine.edits", "own_pictures": "train", "advice": "weights",
         "model_size": "weights"}


class Later:
    """A module, imported when something of it is asked for."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._path, __package__), name)


if not TYPE_CHECKING:  # a type checker sees the modules themselves

    def __getattr__(name: str) -> Later:
        if name.startswith("_"):
            raise AttributeError(name)
        return Later(f"..ssd_core.{ROOMS[name]}.{name}" if name in ROOMS else f".{name}")
