"""Paint a scene."""

from __future__ import annotations

import numpy as np

from .brush import grain
from .land import paint_land
from .sky import paint_fog, paint_rain, paint_sky
from .things import paint_things
from .world import SIZE, Scene


def paint(scene: Scene) -> np.ndarray:
    """The picture of a scene, uint8 [384, 384, 3] RGB; the same scene gives the same picture."""
    rng = np.random.default_rng(scene.jitter)
    canvas = np.empty((SIZE, SIZE, 3), dtype=np.float32)
    paint_sky(canvas, scene, rng)
    paint_land(canvas, scene, rng)
    if scene.sky == "fog":
        paint_fog(canvas, scene)
    paint_things(canvas, scene, rng)
    if scene.sky == "rain":
        paint_rain(canvas, scene, rng)
    grain(canvas)
    return np.clip(canvas + 0.5, 0, 255).astype(np.uint8)
