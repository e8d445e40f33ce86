"""Paint a scene."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ssd_core.backbones.postcard.words.world import SQUARE, Frame, Scene

from .land import paint_land
from .objects import paint_objects
from .sky import paint_fog, paint_rain, paint_sky, paint_snowfall


def paint(scene: Scene, frame: Frame = SQUARE, scale: int = 1) -> np.ndarray:
    """The picture of a scene, uint8 [scale * H, scale * W, 3] RGB.

    The same scene gives the same picture; at another scale only its edges and textures are finer.
    """
    frame = replace(frame, scale=scale)
    rng = np.random.default_rng(scene.jitter)
    canvas = np.empty((scale * frame.height, scale * frame.width, 3), dtype=np.float32)
    paint_sky(canvas, scene, frame, rng)
    paint_land(canvas, scene, frame, rng)
    if scene.sky == "fog":
        paint_fog(canvas, scene, frame, rng)
    paint_objects(canvas, scene, frame)
    if scene.sky == "rain":
        paint_rain(canvas, scene, frame, rng)
    elif scene.sky == "snowfall":
        paint_snowfall(canvas, scene, frame, rng)
    return np.clip(canvas + 0.5, 0, 255).astype(np.uint8)
