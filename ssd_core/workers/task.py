"""What workers do. Knows nothing about processes or about who writes the files.

A task is one batch of work. It is small, because it travels to the worker, and it ends in files:
the worker returns their bytes, and the process that gave the task writes them. A machine that draws
therefore needs the weights, but no access to the folder of the results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads

There = Callable[[str], bool]  # whether a file of this name is in the folder


@dataclass(frozen=True, eq=False)
class Loaded:
    """The models that a worker keeps for all its tasks."""

    backbone: Backbone
    heads: DraftHeads | None = None


class Task(Protocol):
    """One batch; a frozen dataclass of plain values."""

    @property
    def name(self) -> str:
        """The same for the same work in every process; it may serve as a file name."""

    @property
    def count(self) -> int:
        """Number of pictures."""

    def left(self, there: There) -> Task | None:
        """The part whose files are not there yet; None if all are."""

    def run(self, loaded: Loaded) -> dict[str, bytes]:
        """Bytes by file name, relative to the folder. Pictures do not depend on the worker."""


def batches(count: int, most: int) -> list[range]:
    """0 .. count-1 in ranges of `most`, the same in every process."""
    return [range(a, min(a + most, count)) for a in range(0, count, most)]
