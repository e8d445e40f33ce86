"""The loop over tasks: lock one, hand it to a worker, write its files.

It is the same for one process and for many workers. An interrupted run continues with the files
that are missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from ...files import atomic_write
from .locks import TaskLocks
from .task import Task
from .workers import WorkerPool


def missing(tasks: Sequence[Task], folder: Path) -> list[Task]:
    """The tasks, or parts of them, whose files are not in the folder."""
    left = (task.left(lambda name: (folder / name).exists()) for task in tasks)
    return [task for task in left if task is not None]


def work(tasks: Sequence[Task], folder: Path, crew: WorkerPool, label: str,
         quiet: bool | None = False) -> int:
    """Do all tasks whose files are not in the folder; return the number of pictures made here.

    Several processes may do the same tasks in the same folder: one of them makes each picture, and
    all return when every file exists. quiet: no progress bar (None: none without a terminal).
    """
    queue = TaskQueue(folder, crew)
    queue.waiting.extend(missing(tasks, folder))
    total = sum(task.count for task in tasks)
    existing = total - sum(task.count for task in queue.waiting)
    with tqdm(total=total, initial=existing, desc=label, unit="picture", disable=quiet) as bar:
        try:
            while queue.goes_on():
                bar.update(queue.step())
        finally:
            queue.locks.release_all()
    return queue.made


class TaskQueue:
    """The tasks of a run: waiting, or locked by other processes."""

    def __init__(self, folder: Path, crew: WorkerPool) -> None:
        self.folder, self.crew, self.locks = folder, crew, TaskLocks(folder)
        self.waiting: deque[Task] = deque()
        self.elsewhere: deque[Task] = deque()
        self.made = 0

    def goes_on(self) -> bool:
        return bool(self.waiting or self.elsewhere or self.crew.busy)

    def step(self) -> int:
        """Hand out tasks, then wait for an outcome; return how many more pictures exist."""
        seen = 0
        while self.waiting and self.crew.has_room:
            seen += self.begin(self.waiting.popleft())
        if self.crew.busy:
            return seen + self.write(*self.crew.next_done())
        if self.elsewhere:  # nothing else to do
            return seen + self.begin(self.elsewhere.popleft(), wait=True)
        return seen

    def begin(self, task: Task, wait: bool = False) -> int:
        """Lock a task and hand out what is missing; return how many pictures already exist."""
        if not self.locks.take(task.name, wait):
            self.elsewhere.append(task)
            return 0
        left = next(iter(missing([task], self.folder)), None)
        if left is None:
            self.locks.release(task.name)
            return task.count
        self.crew.take(left)
        return task.count - left.count

    def write(self, task: Task, made: dict[str, bytes]) -> int:
        for name, data in made.items():
            with atomic_write(self.folder / name) as temporary:
                temporary.write_bytes(data)
        self.locks.release(task.name)
        self.made += task.count
        return task.count
