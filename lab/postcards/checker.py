"""Read what a postcard shows from its pixels, and check a caption's claims by it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ssd_core.backbones.postcard.scenery import at_frame_size, coarse, read_scenery
from ssd_core.backbones.postcard.words.world import TIMES, frame_of

from .claims import Claim
from .reading import Reading, which_hold
from .silhouettes import FoundThing, find_things


def read(picture: np.ndarray) -> Reading:
    """Read a picture, uint8 [H, W, 3] RGB, of one of the FRAMES or twice its size."""
    picture = at_frame_size(picture)
    scenery, frame = read_scenery(picture), frame_of(*picture.shape[:2])
    assert frame is not None  # or the scenery could not be read
    lit = scenery.time if scenery.time in TIMES else "day"
    found = find_things(coarse(picture), lit, scenery.ground, frame)
    if balloons := [place for place, thing in found.items() if thing.kind == "balloon"]:
        scenery = read_scenery(picture, balloons)
    things = {place: (thing.kind, thing.colour) for place, thing in found.items()}
    return Reading(**vars(scenery), things=things)


def outlined(picture: np.ndarray) -> dict[str, FoundThing]:
    """The thing at each occupied place of a picture, uint8 [H, W, 3] RGB, of one of the FRAMES or
    twice its size.
    """
    picture = at_frame_size(picture)
    scenery, frame = read_scenery(picture), frame_of(*picture.shape[:2])
    assert frame is not None
    lit = scenery.time if scenery.time in TIMES else "day"
    return find_things(coarse(picture), lit, scenery.ground, frame)


def check(image: np.ndarray, claims: Iterable[Claim]) -> tuple[bool, ...]:
    """Whether each claim holds, in order, from a picture uint8 [H, W, 3] alone."""
    return which_hold(read(image), claims)
