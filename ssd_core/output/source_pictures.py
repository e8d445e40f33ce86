"""Source pictures: what a picture is drawn from besides its words. Their codes are in recipes.

Only some models take them (`Backbone.read_sources`). Knows no model.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from ..errors import SSDError
from ..files import require_file
from .packed import pack, unpack

FORMATS = ("PNG", "JPEG", "WEBP")
Size = tuple[int, int]


@contextmanager
def opened_picture(path: Path) -> Iterator[Image.Image]:
    """Open a picture of FORMATS; only its header is read. Errors, also of the block, are SSDError.
    """
    require_file(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as image:
                yield image
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise SSDError(f"{path}: not a whole PNG, JPEG or WebP picture ({type(error).__name__}): "
                       "give a picture that other programs open") from error


def upright(image: Image.Image) -> Image.Image:
    """A picture as its camera held it, in colours."""
    return ImageOps.exif_transpose(image).convert("RGB")


def fitted(image: Image.Image, sizes: Sequence[Size]) -> Image.Image:
    """A picture at the size that cuts off least of it, cut to its middle and scaled."""
    size = min(sizes, key=lambda size: misfit(image.size, size))
    return ImageOps.fit(image, size, Image.Resampling.LANCZOS)


def misfit(own: Size, size: Size) -> tuple[float, int]:
    """How much of a picture a size cuts off; then how far its pixels are from the picture's."""
    ratio = own[0] * size[1] / (own[1] * size[0])
    return max(ratio, 1 / ratio), abs(own[0] * own[1] - size[0] * size[1])


def pixels_of(path: Path) -> torch.Tensor:
    """The pixels [H, W, 3] of a picture, float 0..1, upright; SSDError if it cannot be read."""
    with opened_picture(path) as image:
        return torch.from_numpy(np.array(upright(image))).float() / 255


def source_keys(sources: Iterable[torch.Tensor]) -> dict:
    """A recipe's key for the codes [r, c] of source pictures; none without any."""
    packed = [pack(codes) for codes in sources]
    return {"sources": packed} if packed else {}


def sources_of(recipe: Mapping) -> tuple[torch.Tensor, ...]:
    """The codes [r, c] of a recipe's source pictures; ValueError if they are malformed."""
    packed: Sequence = recipe.get("sources", [])
    if not isinstance(packed, list):
        raise ValueError("sources are not a list")
    return tuple(unpack(codes, "sources") for codes in packed)
