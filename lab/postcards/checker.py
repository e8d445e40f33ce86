"""Read what a postcard shows from its pixels, and check a caption's claims by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ssd_core.backbones.postcard.scenery import (
    STEP,
    Scenery,
    at_frame_size,
    coarse,
    read_scenery,
)
from ssd_core.backbones.postcard.words.world import FLYING, GROUNDS, TIMES, frame_of

from .claims import Claim
from .reading import Reading, which_hold
from .silhouettes import FoundThing, find_things


def read(picture: np.ndarray) -> Reading:
    """Read a picture, uint8 [H, W, 3] RGB, of one of the FRAMES or twice its size."""
    picture = at_frame_size(picture)
    _, found = _seen(picture)
    flying = [place for place, thing in found.items() if thing.kind in FLYING]
    scenery = read_scenery(picture, flying, _hiding(found, picture))
    things = {place: (thing.kind, thing.colour) for place, thing in found.items()}
    return Reading(**vars(scenery), things=things)


def outlined(picture: np.ndarray) -> dict[str, FoundThing]:
    """The thing at each occupied place of a picture, uint8 [H, W, 3] RGB, of one of the FRAMES or
    twice its size.
    """
    return _seen(at_frame_size(picture))[1]


def _hiding(found: dict[str, FoundThing], picture: np.ndarray) -> np.ndarray:
    """The columns of the coarse picture in which things hide the ridge, bool."""
    frame = frame_of(*picture.shape[:2])
    assert frame is not None
    covers = [thing.cover(frame)[frame.horizon // 2 : frame.horizon] for thing in found.values()]
    cover = np.maximum.reduce(covers) if covers else np.zeros((1, frame.width), dtype=np.float32)
    return cover.max(0).reshape(-1, STEP).max(1) > 0.5


def _seen(picture: np.ndarray) -> tuple[Scenery, dict[str, FoundThing]]:
    scenery, frame = read_scenery(picture), frame_of(*picture.shape[:2])
    assert frame is not None  # or the scenery could not be read
    time = scenery.time if scenery.time in TIMES else "day"
    ground = scenery.ground if scenery.ground in GROUNDS else "meadow"
    shown = replace(scenery, time=time, ground=ground)
    return scenery, find_things(coarse(picture), shown, frame)


def check(image: np.ndarray, claims: Iterable[Claim]) -> tuple[bool, ...]:
    """Whether each claim holds, in order, from a picture uint8 [H, W, 3] alone."""
    return which_hold(read(image), claims)
