"""Painted landscape postcards: scenes, pictures with brush strokes, captions and their checker.

This is the world that the next weights of `postcard` learn. Until they are bundled, nothing else in
the package uses it; `postcards/` is the world of the bundled weights.
"""

from __future__ import annotations

import numpy as np

from .captions import MAX_TOKENS, WORDS, Claim, claims, describe, fresh_prompt
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
    "fresh_prompt",
    "is_valid",
    "paint",
    "postcard",
    "read",
    "sample_scene",
]


def postcard(seed: int) -> tuple[np.ndarray, str, Scene]:
    """The postcard of a seed: picture uint8 [384, 384, 3], caption, scene."""
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng)
    return paint(scene), describe(scene, rng), scene
