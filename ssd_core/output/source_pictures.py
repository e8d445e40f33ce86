"""Source pictures: what a picture is drawn from besides its words. Their codes are in recipes.

Only some models take them (`Backbone.read_sources`). Knows no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from .packed import pack, unpack


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
