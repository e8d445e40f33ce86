"""Names of picture files, and checks, before any work, that they can be written."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import SSDError

_files: list[Path] = []  # reserved
_folders: list[Path] = []  # made for them, the inner ones first


def batch_paths(out: Path, count: int) -> list[Path]:
    """FILE.png, or FILE-0.png, FILE-1.png, ... for a batch."""
    if out.suffix.lower() != ".png":
        raise SSDError(f"out {out}: pictures are saved as PNG; end the name with .png")
    if count == 1:
        return [out]
    return [out.with_name(f"{out.stem}-{i}{out.suffix}") for i in range(count)]


def free(named: Callable[[str], list[Path]]) -> list[Path]:
    """New files: those with the first ending of "", "_2", "_3", ... where none exists.

    They are created, so that no other program takes their names; `tidy` removes what stays empty.
    """
    endings = itertools.chain([""], (f"_{n}" for n in itertools.count(2)))
    return next(paths for paths in map(named, endings) if reserve(paths))


def reserve(paths: Sequence[Path]) -> bool:
    """Create these files, or none if one of them exists; whether they were created."""
    for folder in {nearest_folder(path) for path in paths}:
        check_folder(folder)
    for path in paths:
        made = [folder for folder in path.absolute().parents if not folder.exists()]
        # Noted before they are made: a signal between the two would leave them behind.
        _folders.extend(made)
        path.parent.mkdir(parents=True, exist_ok=True)
        _files.append(path)
        try:
            path.open("xb").close()
        except FileExistsError:
            _files.remove(path)  # another program's
            tidy()
            return False
    return True


def tidy() -> None:
    """Remove the files that were reserved and are still empty, and the folders made for them."""
    for path in _files:
        with suppress(OSError):
            if not path.stat().st_size:
                path.unlink()
    for folder in _folders:
        with suppress(OSError):  # it holds something
            folder.rmdir()
    _files.clear()
    _folders.clear()


def check_writable(paths: Sequence[Path]) -> None:
    """Raise SSDError unless these files can be created; creates nothing."""
    for path in paths:
        if path.is_dir():
            raise SSDError(f"cannot write {path}: it is a folder; name a file")
    for folder in {nearest_folder(path) for path in paths}:
        check_folder(folder)


def check_folder(folder: Path) -> None:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise SSDError(f"cannot write to {folder}: {error.strerror}; choose another place"
                       ) from error


def nearest_folder(path: Path) -> Path:
    """The folder of `path`, or the closest existing one above it."""
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise SSDError(f"cannot write {path}: {above} is a file; choose another place")
    return above
