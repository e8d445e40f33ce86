"""The loop over tasks: lock one, hand it to a worker, write its files.

It is the same for one process and for many workers. An interrupted run continues with the files
that are missing.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from tqdm import tqdm

from ...errors import SSDError
from ...files import atomic_write
from .workers import Task, WorkerPool

POLL = 0.5  # seconds between two attempts to lock a task of another process


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


class TaskLocks:
    """The locks that this process holds in a folder, so that no two draw the same batch.

    A lock is a locked file beside the results. The system unlocks it when its process ends, even
    by a crash, so no lock outlives its process.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.locks: dict[str, FileLock] = {}

    def path(self, name: str) -> Path:
        return self.folder / f".{name.replace('/', '-')}.claim"

    def take(self, name: str, wait: bool = False) -> bool:
        """Lock a task; False if another process has it. wait: wait until that process is done."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path(name))
            lock.acquire(timeout=-1 if wait else 0, poll_interval=POLL)
        except Timeout:
            return False
        except (OSError, NotImplementedError) as error:
            raise SSDError(f"{self.folder}: tasks cannot be locked there ({error}): choose a "
                           "folder that can be written to and whose disk locks files") from error
        self.locks[name] = lock
        return True

    def release(self, name: str) -> None:
        """Release a lock and remove its file: before that, so that nobody locks a removed file."""
        lock = self.locks.pop(name)
        if os.name != "nt":
            self.path(name).unlink(missing_ok=True)
        lock.release()
        if os.name == "nt":  # which removes no open file
            with contextlib.suppress(OSError):
                self.path(name).unlink()

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Wait for a lock and hold it for the block."""
        self.take(name, wait=True)
        try:
            yield
        finally:
            self.release(name)

    def release_all(self) -> None:
        for name in list(self.locks):
            self.release(name)


def claimed(folder: Path) -> bool:
    """Whether a process is doing a task in the folder."""
    for path in folder.glob(".*.png.claim"):
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):
            return True
        lock.release()
    return False
