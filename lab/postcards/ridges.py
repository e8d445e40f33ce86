"""The ridges on a postcard's horizon: hills, mountains with or without snow, a forest."""

from __future__ import annotations

import numpy as np

from ssd_core.backbones.postcard.scenery import HAZE, NIGHT_HAZE, sky_rows
from ssd_core.backbones.postcard.words.world import (
    AUTUMN,
    CAP,
    CLIFF,
    HILL,
    ROCK,
    WOOD,
    Frame,
    Scene,
)

from .brush import axes, below, blend, curve, shade

_EDGE = 6  # px below the horizon to which ridges reach, behind the ground's edge
_BARE = 0.36  # of a snowy mountain's height, below which it is bare
# Layers of hills: height px, waves (length, height) px, from the far colour to the near one, haze.
_HILLS = ((56, ((330, 17), (150, 7)), 0.0, 0.34), (34, ((260, 14), (120, 6)), 0.55, 0.27),
          (13, ((210, 8), (90, 3)), 1.0, 0.2))


def _pair(table: dict, scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    far, near = (np.asarray(c, dtype=np.float32) for c in table[scene.time])
    return far, near


def _hazy(colour: np.ndarray, rows: np.ndarray, scene: Scene, frame: Frame,
          haze: float) -> np.ndarray:
    """Colours [h, n, 3] of rows [h, 1] that fade into the air towards the horizon."""
    haze *= NIGHT_HAZE if scene.time == "night" else 1.0
    share = haze * np.clip((rows - frame.horizon + HAZE) / HAZE, 0, 1)[..., None] ** 2
    return colour + (sky_rows(scene.time, scene.sky, frame)[frame.horizon] - colour) * share


def _lay(canvas: np.ndarray, skyline: np.ndarray, colour: np.ndarray, scene: Scene, frame: Frame,
         haze: float, crest: float = 0.0) -> None:
    """Paint a colour below a skyline [W], a row for each column. crest: how light its edge is."""
    top = max(0, int(skyline.min()) - 2)
    lines = slice(frame.scale * top, frame.scale * (frame.horizon + _EDGE))
    part, rows = canvas[lines], axes(frame)[1][lines]
    cover = below(rows, skyline, 1.5 / frame.scale)
    blend(part, np.broadcast_to(_hazy(colour, rows, scene, frame, haze), part.shape), cover)
    if crest:
        shade(part, crest * np.exp(-np.clip(rows - skyline, 0, None) / 14) * cover, scene.time)


def _paint_hills(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    far, near = _pair(HILL, scene)
    for height, waves, nearness, haze in _HILLS:
        skyline = frame.horizon - frame.lift * (height + curve(rng, axes(frame)[0], *waves))
        _lay(canvas, skyline, far + (near - far) * nearness, scene, frame, haze, 0.16)


def _mountain(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator,
              middle: float, height: float, haze: float) -> None:
    """Paint one mountain: a lit and a shaded side that meet in a line down from its top."""
    half = height * rng.uniform(1.1, 1.5)
    top, left = frame.horizon - height, max(0, round(middle - half))
    right, fine = max(left, round(middle + half)), frame.scale
    columns = slice(fine * left, fine * right)
    lines = slice(fine * max(0, int(top) - 14), fine * (frame.horizon + _EDGE))
    x, y = axes(frame)[0][columns], axes(frame)[1][lines]
    side = np.clip(1 - np.abs(x - middle) / half, 0, 1)
    rough = curve(rng, x, (58, 5), (27, 3)) * np.sin(np.pi * side) ** 0.5
    skyline = frame.horizon - height * side**1.12 - rough * (height / 110)
    down = np.clip(y - top, 0, None)
    crease = middle + down * rng.uniform(-0.25, 0.25) + curve(rng, down, (70, 8), (33, 4)) * (
        np.clip(down / 24, 0, 1))
    facets = 0.13 * np.sin((x - crease) / rng.uniform(13, 18) + down / 34)
    leeward = (x - crease) * (-1 if scene.light_place == "right" else 1)
    dark = np.clip(np.clip(leeward / 5 + 0.5, 0, 1) * 0.85 + 0.08 + facets, 0, 1)[..., None]
    lit, shaded = _pair(ROCK, scene)
    colour = lit + (shaded - lit) * dark
    line = frame.horizon - height * _BARE + curve(rng, x, (52, 6), (23, 2.5))
    if scene.ridge == "snowy":
        lit, shaded = _pair(CAP, scene)
        colour += (lit + (shaded - lit) * dark - colour) * below(-y, -line, 7.0)[..., None]
    blend(canvas[lines, columns], _hazy(colour, y, scene, frame, haze),
          below(y, skyline, 1.5 / fine))


def _range(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator,
           apart: int, heights: tuple[int, int], haze: float) -> None:
    """Paint mountains about `apart` px from each other, in any order."""
    count = round(frame.width / apart) + 1
    middles = (np.arange(count) + rng.uniform(-0.4, 0.4)) * apart
    for middle in rng.permutation(middles):
        _mountain(canvas, scene, frame, rng, middle + rng.uniform(-0.16, 0.16) * apart,
                  frame.lift * rng.uniform(*heights), haze)


def _paint_mountains(canvas: np.ndarray, scene: Scene, frame: Frame,
                     rng: np.random.Generator) -> None:
    _range(canvas, scene, frame, rng, 140, (106, 146), 0.55)
    _range(canvas, scene, frame, rng, 136, (58, 84), 0.3)
    foothills = frame.horizon - 15 - curve(rng, axes(frame)[0], (190, 6), (80, 3))
    _lay(canvas, foothills, _pair(HILL, scene)[1], scene, frame, 0.2)


def _paint_forest(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    x = axes(frame)[0]
    leaves = np.asarray(AUTUMN[scene.time], dtype=np.float32)
    for nearness, apart, height in ((0, 15, 58), (1, 21, 34)):
        skyline = frame.horizon - frame.lift * (height - 16) - curve(rng, x, (200, 5))
        for middle in np.arange(-apart, frame.width + apart, apart) + rng.uniform(0, apart):
            tree = rng.uniform(0.7, 1.25)
            off = np.abs(x - middle - rng.uniform(-0.3, 0.3) * apart) / (0.8 * apart * tree**0.5)
            crown = np.sqrt(np.clip(1 - off**2, 0, 1)) - 0.3 if nearness else 1 - off
            reach = frame.horizon - frame.lift * (height - 20 + 28 * tree * crown)
            skyline = np.where(off < 1, np.minimum(skyline, reach), skyline)
        colour = _pair(WOOD, scene)[nearness]
        if scene.ridge == "autumn":
            colour = leaves[nearness] + (leaves[2] - leaves[nearness]) * np.clip(
                0.3 + curve(rng, x, (1.7 * apart, 0.3), (2.9 * apart, 0.3)), 0, 0.8
                - 0.45 * nearness)[:, None]
        _lay(canvas, skyline, colour, scene, frame, 0.15, 0.15)


def _paint_cliffs(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """A steep coast that steps down to one side, with grass on top."""
    x, side = axes(frame)[0], bool(rng.random() < 0.5)
    along = (frame.width - x if side else x) / frame.width
    height = np.full_like(x, 104)
    for at, lower in ((rng.uniform(0.3, 0.42), 30), (rng.uniform(0.56, 0.66), 20),
                      (rng.uniform(0.78, 0.86), 16)):
        height -= lower * below(along, at, 0.035)
    height = frame.lift * (height + curve(rng, x, (150, 3.5), (52, 2.0)))
    top = frame.horizon - height
    lit, shaded = _pair(CLIFF, scene)
    _lay(canvas, top, shaded, scene, frame, 0.2)
    lines = slice(frame.scale * max(0, int(top.min()) - 2), frame.scale * (frame.horizon + _EDGE))
    rows, part = axes(frame)[1][lines], canvas[lines]
    down = np.clip((rows - top) / height, 0, 1)
    bent = x + 4 * np.sin(down * 3 + x / 60)
    folds = curve(rng, bent, (38, 0.5), (17, 0.3), (90, 0.3))
    layers = curve(rng, rows - top / 3 + 0.04 * x, (19, 0.1), (8, 0.07))
    share = np.clip(0.55 + 0.8 * folds - 0.3 * down + layers, 0, 1)
    inside = below(rows, top, 1.5 / frame.scale)
    blend(part, np.broadcast_to(lit, part.shape), share * inside * (1 - 0.25 * down))
    grass = below(-rows, -top - 7 * frame.lift - curve(rng, x, (40, 2.0), (15, 1.5)), 2.0)
    blend(part, _pair(HILL, scene)[1], grass * inside)


_PAINTERS = {"hills": _paint_hills, "mountains": _paint_mountains, "snowy": _paint_mountains,
             "forest": _paint_forest, "autumn": _paint_forest, "cliffs": _paint_cliffs}


def paint_ridge(canvas: np.ndarray, scene: Scene, frame: Frame, rng: np.random.Generator) -> None:
    """Paint the scene's ridge over the sky, in place."""
    if scene.ridge != "none":
        _PAINTERS[scene.ridge](canvas, scene, frame, rng)
