"""Source pictures: what a picture is drawn from besides its words. Their codes are in recipes.

Only some models take them (`Backbone.read_sources`). Knows no model.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from ..errors import SSDError
from ..files import require_file
from .packed import pack, unpack

FORMATS = ("PNG", "JPEG", "WEBP")


def pixels_of(path: Path) -> torch.Tensor:
    """The pixels [H, W, 3] of a picture, float 0..1, upright; SSDError if it cannot be read."""
    require_file(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as image:
                upright = ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise SSDError(f"{path}: not a whole PNG, JPEG or WebP picture ({type(error).__name__}): "
                       "give a picture that other programs open") from error
    return torch.from_numpy(np.array(upright)).float() / 255


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
