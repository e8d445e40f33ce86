"""The tasks of workers. Knows nothing about processes, nor who writes the files.

A task is a batch of work. It is small, because it is sent to the worker. The worker returns the
bytes of its files, and the process that handed out the task writes them. A machine that draws
therefore needs the weights, but no access to the folder of the results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...backbones.base import Backbone
from ...engine.heads import DraftHeads

Exists = Callable[[str], bool]  # whether a file of this name is in the folder


@dataclass(frozen=True, eq=False)
class LoadedModels:
    """The models of a worker, for all its tasks."""

    backbone: Backbone
    heads: DraftHeads | None = None


class Task(Protocol):
    """A batch of work; a frozen dataclass of plain values."""

    @property
    def name(self) -> str:
        """A name that the same work has in every process; valid as a file name."""

    @property
    def count(self) -> int:
        """Number of pictures."""

    def left(self, exists: Exists) -> Task | None:
        """The part whose files do not exist yet; None if all do."""

    def run(self, loaded: LoadedModels) -> dict[str, bytes]:
        """Bytes by file name, relative to the folder; the same from every worker."""


def batches(count: int, most: int) -> list[range]:
    """0 .. count-1 in ranges of at most `most`."""
    return [range(a, min(a + most, count)) for a in range(0, count, most)]
