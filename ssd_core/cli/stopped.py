"""Save pictures after Ctrl-C: whole ones, and the finished rows of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ..output.pixels import tops
from ..output.recipe import save_png
from ..runs.request import Result
from .output import note
from .saving import saving


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
