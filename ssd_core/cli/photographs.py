"""Pictures of any size and kind as PNGs that a backbone can keep cells of."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..output.foreign import texts_of, told_by
from ..output.picture_files import Size, fitted, opened, upright
from ..output.recipe import recipe_of


def recipe_in(path: Path) -> dict | None:
    """The recipe in a picture, if it has one."""
    with opened(path) as image:
        return recipe_of(path, image)


def told_in(path: Path) -> dict[str, str]:
    """prompt, negative and seed, as far as another program wrote them into a picture."""
    with opened(path) as image:
        return {} if recipe_of(path, image) else told_by(texts_of(image))


@contextmanager
def drawable(path: Path, sizes: Sequence[Size]) -> Iterator[tuple[Path, str]]:
    """A picture of one of these sizes, for the block, and a phrase on how it was made.

    One of such a size is taken as it is, another one is cut to its middle and scaled.
    """
    with opened(path) as image:
        picture = upright(image)
    if picture.size in sizes:
        yield path, ""
        return
    picture = fitted(picture, sizes)
    with tempfile.TemporaryDirectory(prefix="ssd-") as folder:
        png = Path(folder, "picture.png")
        picture.save(png)
        yield png, f"cut and scaled to {picture.width}x{picture.height}, "
