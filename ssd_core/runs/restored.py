"""The fields of a `Request` that draws the picture of a recipe again. Knows no host."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads
from ..errors import SSDError
from ..output.kept_cells import kept_of
from ..output.recipe import method_of, other_dtype, sampling_of
from ..output.source_pictures import sources_of
from ..output.words import drawn_words


def restored(recipe: Mapping, backbone: Backbone, heads: DraftHeads | None,
             device: torch.device | None) -> dict:
    """The fields; raises SSDError if backbone or heads are not those of the checked recipe.

    device: see `Request`.
    """
    require_models(recipe, backbone, heads)
    return {"backbone": backbone, "heads": None if recipe["heads"] is None else heads,
            "method": method_of(recipe), "sampling": sampling_of(recipe),
            "prompt": recipe["prompt"], "negative": recipe["negative"],
            "size": tuple(recipe["size"]), "fall_back": False, "device": device,
            "drawn_before": other_dtype(recipe, backbone), "fixed": (drawn_words(recipe),),
            "sources": sources_of(recipe), **kept_of(recipe)}


def require_models(recipe: Mapping, backbone: Backbone, heads: DraftHeads | None) -> None:
    """Raise SSDError if backbone or heads are not those of the recipe."""
    name = recipe["backbone"]["name"]
    if name == backbone.name and recipe["backbone"]["sha256"] != backbone.sha256:
        raise SSDError(f"the picture was drawn by other weights of {name} than those that are "
                       f"loaded; only its prompt can be drawn anew: {recipe['prompt']!r}")
    for what, loaded, wanted in (
            ("backbone", backbone.sha256, recipe["backbone"]["sha256"]),
            ("draft heads", heads and heads.sha256, recipe["heads"])):
        if wanted not in (loaded, None):
            raise SSDError(
                f"the recipe was made with {what} {wanted[:10]}, but {loaded[:10]} is loaded: "
                "load the recipe's own first" if loaded else
                f"the recipe was made with {what} {wanted[:10]}, and none are loaded: load the "
                "recipe's own first")
