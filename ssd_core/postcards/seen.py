"""What a postcard shows that nobody mentioned, so that an edit can keep it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import checker, spelling
from .captions import _PARTS
from .frame import frame_of
from .reading import Reading

# A clear sky gets stars at night, so neither is worth a word
_OPEN = ("clear", "starry")


def phrases_seen(picture: np.ndarray, prompts: Sequence[str]) -> list[str]:
    """Phrases for weather, ridge, ground and path of a picture that none of the prompts states.

    picture: uint8 [H, W, 3] RGB.
    """
    if frame_of(*picture.shape[:2]) is None:
        return []  # of a postcard with fewer cells
    shown = checker.read(picture)
    said = {name for prompt in prompts for name in spelling.read(prompt).scene}
    return [_PARTS[name, value][0] for name, value in _scene(shown)
            if name not in said and value not in _OPEN and (name, value) in _PARTS]


def _scene(shown: Reading) -> tuple[tuple[str, str], ...]:
    return tuple((name, getattr(shown, name)) for name in ("sky", "ridge", "ground", "path"))
