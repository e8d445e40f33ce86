"""Locks on tasks, so that processes that share a folder never draw the same batch twice.

A lock is a locked file beside the results. The system unlocks it when its process ends, even by a
crash, so no lock outlives its process.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from filelock import FileLock, Timeout

from ...errors import SSDError

POLL = 0.5  # seconds between two attempts to lock a task of another process


class TaskLocks:
    """The locks that this process holds in a folder."""

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

    def release(self, name: str, finished: bool = True) -> None:
        """Release a lock. finished: the results exist, so the locked file is removed as well."""
        self.locks.pop(name).release()
        if finished:
            with contextlib.suppress(OSError):  # another process has it open and removes it
                self.path(name).unlink()

    def release_all(self) -> None:
        for name in list(self.locks):
            self.release(name, finished=False)
