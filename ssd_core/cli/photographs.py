"""Pictures of any size and kind as PNGs that a backbone can keep cells of."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..output.recipe import recipe_of
from ..output.source_pictures import fitted, opened_picture, upright


def recipe_in(path: Path) -> dict | None:
    """The recipe in a picture, if it has one."""
    with opened_picture(path) as image:
        return recipe_of(path, image)


@contextmanager
def drawable(path: Path, sizes: Sequence[tuple[int, int]]) -> Iterator[tuple[Path, str]]:
    """A PNG of one of these sizes, for the block, and a phrase on how it was made.

    A PNG of such a size is taken as it is; another picture is cut to its middle and scaled.
    """
    with opened_picture(path) as image:
        if image.format == "PNG" and image.size in sizes:
            yield path, ""
            return
        picture = fitted(upright(image), sizes)
    with tempfile.TemporaryDirectory(prefix="ssd-") as folder:
        png = Path(folder, "picture.png")
        picture.save(png)
        yield png, f"cut and scaled to {picture.width}x{picture.height}, "
