"""A disk that fails at a chosen write, and what a kill would leave there at each write.

Python tells an audit hook of every file that is opened for writing, linked or renamed. Below the
watched folder each of these, and each fsync, is one write. Files get their names by links and
renames, so nothing else changes what a name holds, except to open a file that has content: of that
a state is kept in which it is cut.
"""

import errno
import os
import sys
from contextlib import contextmanager
from pathlib import Path

WRITES = os.O_WRONLY | os.O_RDWR
_watching: list["Watch"] = []


class Watch:
    """fails: the number of the write that fails; states: the folder before each write, by path."""

    def __init__(self, folder: Path, fails: int | None) -> None:
        self.folder, self.fails, self.count, self.within = folder, fails, 0, False
        self.states: list[dict[str, bytes]] = []

    def write(self, path: object, cuts: bool = False) -> None:
        path = Path(os.fsdecode(path)).absolute() if isinstance(path, (str, bytes, Path)) else None
        if self.within or path is None or not path.is_relative_to(self.folder):
            return
        self.within = True
        state = contents(self.folder)
        self.within = False
        if cuts:
            state[path.relative_to(self.folder).as_posix()] = b""
        self.states.append(state)
        self.count += 1
        if self.fails == self.count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def contents(folder: Path) -> dict[str, bytes]:
    """The files below a folder that a person sees."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and not path.name.startswith(".")}


def hook(event: str, arguments: tuple) -> None:
    if not _watching:
        return
    if event == "open":
        path, _mode, flags = arguments
        if flags & WRITES and not str(path).endswith(".lock"):
            made = os.path.exists(path) if isinstance(path, (str, bytes, Path)) else False
            _watching[-1].write(path, cuts=made and flags & os.O_TRUNC and os.path.getsize(path))
    elif event in ("os.rename", "os.link"):
        _watching[-1].write(arguments[1])


sys.addaudithook(hook)


@contextmanager
def watched(folder: Path, monkeypatch, fails: int | None = None):
    watch, fsync = Watch(folder, fails), os.fsync

    def flushing(number):
        watch.write(os.readlink(f"/proc/self/fd/{number}"))
        fsync(number)

    with monkeypatch.context() as patch:
        if sys.platform == "linux":
            patch.setattr(os, "fsync", flushing)
        _watching.append(watch)
        try:
            yield watch
        finally:
            _watching.pop()
