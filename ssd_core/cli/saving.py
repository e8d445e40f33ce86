"""Save pictures; what their folder refuses, as on a full disk, is saved in another one.

After Ctrl-C whole pictures are saved, and the finished rows of the others.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from ..errors import SSDError
from ..output.pixels import tops
from ..output.recipe import save_png
from ..runs.request import Result
from .output import note

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


@contextmanager
def kept_when_stopped(runs: Sequence[tuple[Result, list[Path]]]) -> Iterator[None]:
    """If Ctrl-C ends the block, save what the runs have drawn. runs: each with its files."""
    try:
        yield
    except KeyboardInterrupt:
        for result, paths in runs:
            keep(result, paths)
        raise


def keep(result: Result, paths: Sequence[Path]) -> None:
    """Save whole pictures, or their finished rows with grey below; nothing without rows."""
    rows, grid = result.stopped_rows, result.request.grid
    if rows == 0:
        return
    pictures = tops(result.request.sized, result.tokens, grid.rows if rows is None else rows)
    with saving() as save:
        for path, picture, recipe in zip(paths, pictures, result.recipes(), strict=True):
            save(path, partial(save_png, picture=picture, recipe=recipe))
    for path in paths:
        note(f"{path} is whole" if rows is None else
             f"{path} has the first {rows} of {grid.rows} rows: --keep {path} --keep-rows {rows} "
             "draws the rest")
