"""Procedural landscape postcards: scenes, pictures, captions and a checker of captions."""

from __future__ import annotations

import numpy as np

from .captions import MAX_TOKENS, WORDS, Claim, claims, describe
from .checker import Reading, check, read
from .painter import paint
from .world import SIZE, Scene, Thing, is_valid, sample_scene

__all__ = [
    "MAX_TOKENS",
    "SIZE",
    "WORDS",
    "Claim",
    "Reading",
    "Scene",
    "Thing",
    "check",
    "claims",
    "describe",
    "is_valid",
    "paint",
    "postcard",
    "read",
    "sample_scene",
]


def postcard(seed: int) -> tuple[np.ndarray, str, Scene]:
    """The postcard of a seed: picture uint8 [192, 192, 3], caption, scene."""
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng)
    return paint(scene), describe(scene, rng), scene
