"""The tasks of workers. Knows nothing about processes, nor who writes the files.

A task is a batch of work. It is small, because it is sent to the worker. The worker returns the
bytes of its files, and the process that handed out the task writes them. A machine that draws
therefore needs the weights, but no access to the folder of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...backbones.base import Backbone
from ...engine.heads import DraftHeads

if TYPE_CHECKING:
    from typing_extensions import Self

Exists = Callable[[str], bool]  # whether a file of this name is in the folder
T = TypeVar("T")


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


@dataclass(frozen=True)
class PicturesTask:
    """Base of tasks that write a file for each picture.

    `name` is the same when some of the files exist already.
    """

    name: str
    pictures: tuple[Any, ...]  # each with the attribute `file`

    @property
    def count(self) -> int:
        return len(self.pictures)

    def left(self, exists: Exists) -> Self | None:
        pictures = tuple(picture for picture in self.pictures if not exists(picture.file))
        return replace(self, pictures=pictures) if pictures else None


def in_groups(items: Iterable[T], follows: Callable[[T, T], bool]) -> list[list[T]]:
    """The items in groups; one begins wherever `follows(item, next item)` is false."""
    groups: list[list[T]] = []
    for item in items:
        if groups and follows(groups[-1][-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def fitting_batch(most: int, free: float, needed: Callable[[int], float]) -> int:
    """The largest of most, most / 2, ... 1 for which needed(pictures) is at most `free`; else 1."""
    pictures = most
    while pictures > 1 and needed(pictures) > free:
        pictures //= 2
    return pictures


def batches(count: int, most: int) -> list[range]:
    """0 .. count-1 in ranges of at most `most`."""
    return [range(a, min(a + most, count)) for a in range(0, count, most)]
