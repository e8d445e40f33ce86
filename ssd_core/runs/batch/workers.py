"""The interface to whatever runs tasks: this process, or other workers (ray_workers.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...weights.free import free_bytes
from ...weights.model_size import stored_dtype
from .task import LoadedModels, Task


@dataclass(frozen=True)
class Place:
    """Where tasks are computed.

    device: its type. dtype: of the weights. free: bytes after loading; None: unknown.
    """

    device: str
    dtype: str
    free: int | None

    @classmethod
    def of(cls, loaded: LoadedModels) -> Place:
        backbone = loaded.backbone
        return cls(backbone.device.type, stored_dtype(backbone), free_bytes(backbone.device))


class WorkerPool(Protocol):
    """Takes tasks and returns their files, in any order."""

    @property
    def place(self) -> Place:
        """The same for all workers, except the free memory, which is the first worker's."""

    @property
    def has_room(self) -> bool:
        """Whether a worker is free for another task."""

    @property
    def busy(self) -> bool:
        """Whether a task is running."""

    def take(self, task: Task) -> None:
        """Start a task."""

    def next_done(self) -> tuple[Task, dict[str, bytes]]:
        """Wait for a task; return it with the bytes of its files by name. Raises SSDError."""


class LocalWorker:
    """This process as the only worker. A task runs in `next_done`."""

    def __init__(self, loaded: LoadedModels) -> None:
        self.loaded = loaded
        self.task: Task | None = None

    @property
    def place(self) -> Place:
        return Place.of(self.loaded)

    @property
    def has_room(self) -> bool:
        return self.task is None

    @property
    def busy(self) -> bool:
        return self.task is not None

    def take(self, task: Task) -> None:
        self.task = task

    def next_done(self) -> tuple[Task, dict[str, bytes]]:
        task, self.task = self.task, None
        assert task is not None
        return task, task.run(self.loaded)
