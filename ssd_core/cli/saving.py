"""Save pictures; what their folder refuses, as on a full disk, is saved in another one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import SSDError

Write = Callable[[Path], None]
MEMORY = Path("/dev/shm")  # of Linux; it has room where no disk has


@contextmanager
def saving() -> Iterator[Callable[[Path, Write], None]]:
    """Yields save(path, write). What was drawn is kept: where a path cannot be written, it goes to
    another folder, which the SSDError that ends the block names.
    """
    folder: Path | None = None
    refused: SSDError | None = None

    def save(path: Path, write: Write) -> None:
        nonlocal folder, refused
        try:
            write(path)
        except SSDError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            refused, folder = refused or error, saved_elsewhere(path.name, write, folder) or folder
    yield save
    if refused is not None:
        raise SSDError(f"{refused}; what was drawn is in {folder}") if folder else refused


def saved_elsewhere(name: str, write: Write, known: Path | None) -> Path | None:
    """Write a file to a folder of its own, or to the known one; the folder, None if none has room.
    """
    if known is not None:
        with suppress(SSDError):
            write(known / name)
            return known
    for place in (Path(tempfile.gettempdir()), Path.home(), MEMORY):
        with suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="ssd-", dir=place))
            try:
                write(folder / name)
                return folder
            except SSDError:
                shutil.rmtree(folder, ignore_errors=True)
    return None
