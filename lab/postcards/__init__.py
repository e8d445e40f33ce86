"""Painted landscape postcards: scenes, pictures in three shapes, captions and their checker."""

from __future__ import annotations

import numpy as np

from ssd_core.backbones.postcard.words.captions import (
    MAX_TOKENS,
    WORDS,
    describe,
    fresh_prompt,
    plain_caption,
)
from ssd_core.backbones.postcard.words.world import (
    FRAMES,
    SIZE,
    SQUARE,
    TALL,
    WIDE,
    Frame,
    Scene,
    SceneObject,
    frame_of,
    is_valid,
    sample_scene,
)

from .checker import check, read
from .claims import Claim, claims
from .painter import paint
from .reading import Reading

__all__ = [
    "FRAMES",
    "MAX_TOKENS",
    "SIZE",
    "SQUARE",
    "TALL",
    "WIDE",
    "WORDS",
    "Claim",
    "Frame",
    "Reading",
    "Scene",
    "SceneObject",
    "check",
    "claims",
    "describe",
    "frame_of",
    "fresh_prompt",
    "is_valid",
    "paint",
    "plain_caption",
    "postcard",
    "read",
    "sample_scene",
]


def postcard(seed: int) -> tuple[np.ndarray, str, Scene]:
    """The postcard of a seed: picture uint8 [384, 384, 3], caption, scene."""
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng)
    return paint(scene), describe(scene, rng), scene
