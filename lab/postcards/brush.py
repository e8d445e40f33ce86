"""Soft shapes: curves, drifts, blends and spots, from which a picture is painted.

Nothing follows the cells of the tokenizer, so that a picture shows no grid. Lengths and places are
in px of a picture of scale 1; a canvas and the masks on it have `scale` px for each of these.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from PIL import Image

from ssd_core.backbones.postcard.words.world import GLEAM, SHADOW, Frame


def steps(count: int, scale: int, middle: float = 0.0) -> np.ndarray:
    """The places of `count` px in a row at a scale, float32; `middle` is the place of the 0."""
    return (np.arange(scale * count, dtype=np.float32) + 0.5) / scale - 0.5 - middle


def axes(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The column [scale * W] and row [scale * H, 1] of every px, float32."""
    return steps(frame.width, frame.scale), steps(frame.height, frame.scale)[:, None]


def even(first: float, last: float, count: int, scale: int) -> np.ndarray:
    """Values from the middle of the first of `count` px to that of the last, float32."""
    over = (0.5 - 0.5 / scale) * (last - first) / (count - 1)
    return np.linspace(first - over, last + over, scale * count, dtype=np.float32)


def finer(rows: np.ndarray, scale: int) -> np.ndarray:
    """A table [n, ...] of one value a row, interpolated to [scale * n, ...]."""
    at = np.clip(steps(len(rows), scale), 0, len(rows) - 1)
    first = np.minimum(at.astype(int), len(rows) - 2)
    share = (at - first).astype(np.float32).reshape(-1, *[1] * (rows.ndim - 1))
    return rows[first] * (1 - share) + rows[first + 1] * share


def curve(rng: np.random.Generator, at: np.ndarray, *waves: tuple[float, float]) -> np.ndarray:
    """A sum of waves (length, height) at random phases, evaluated at positions, px."""
    total = np.zeros_like(at)
    for length, height in waves:
        length *= rng.uniform(0.8, 1.25)
        total += height * np.sin(2 * np.pi * (at / length + rng.random()))
    return total.astype(np.float32)


def drift(rng: np.random.Generator, shape: tuple[int, int], wide: int, high: int,
          scale: int = 1) -> np.ndarray:
    """A smooth random field of about -1..1 whose features are `wide` x `high` px, float32.

    shape: of the field, [scale * rows, scale * columns].
    """
    rows, columns = (side // scale for side in shape)
    few = rng.normal(0, 0.7, (rows // high + 3, columns // wide + 3)).astype(np.float32)
    size = scale * (columns + 2 * wide), scale * (rows + 2 * high)
    smooth = Image.fromarray(few).resize(size, Image.Resampling.BICUBIC)
    return np.asarray(smooth)[scale * high :, scale * wide :][: shape[0], : shape[1]]


def below(row: np.ndarray | float, line: np.ndarray | float, soft: float = 1.0) -> np.ndarray:
    """Coverage 0..1 of everything below a line; its edge is `soft` px wide."""
    return np.clip((row - line) / soft + 0.5, 0, 1)


def blend(canvas: np.ndarray, colour: object, share: np.ndarray | float) -> None:
    """Shift a canvas [H, W, 3] towards a colour by a share, a number or [H, W], in place."""
    weight = share[..., None] if isinstance(share, np.ndarray) else share
    canvas += (np.asarray(colour, dtype=np.float32) - canvas) * weight


def shade(canvas: np.ndarray, amount: np.ndarray, time: str) -> None:
    """Lighten a canvas [H, W, 3] where the amount [H, W] is positive, else darken it, in place."""
    blend(canvas, GLEAM[time], np.maximum(amount, 0))
    blend(canvas, SHADOW[time], np.maximum(-amount, 0))


def paste(canvas: np.ndarray, colour: np.ndarray, alpha: np.ndarray, x: int, y: int,
          scale: int = 1) -> None:
    """Blend colour [h, w, 3] by alpha [h, w, 1] with its corner at (x, y), clipped, in place."""
    x, y = scale * x, scale * y
    top, left = max(0, -y), max(0, -x)
    bottom = min(alpha.shape[0], canvas.shape[0] - y)
    right = min(alpha.shape[1], canvas.shape[1] - x)
    if top < bottom and left < right:
        part = canvas[y + top : y + bottom, x + left : x + right]
        part += (colour[top:bottom, left:right] - part) * alpha[top:bottom, left:right]


def spot(canvas: np.ndarray, colour: object, mask: np.ndarray, x: int, y: int,
         scale: int = 1) -> None:
    """Blend one colour by a mask [h, w, 1] with its middle at (x, y), in place."""
    rows, columns = mask.shape[:2]
    solid = np.broadcast_to(np.asarray(colour, dtype=np.float32), (rows, columns, 3))
    paste(canvas, solid, mask, x - columns // scale // 2, y - rows // scale // 2, scale)


@cache
def ellipse(half_width: int, half_height: int, edge: float, scale: int = 1) -> np.ndarray:
    """Coverage [2 * half_height + 1, 2 * half_width + 1, 1] of an ellipse with a soft edge."""
    x = even(-1, 1, 2 * half_width + 1, scale)
    y = even(-1, 1, 2 * half_height + 1, scale)[:, None]
    return np.clip((1 - np.hypot(x, y)) / edge, 0, 1)[..., None]


@cache
def lens(half_width: int, half_height: int, scale: int = 1) -> np.ndarray:
    """Coverage of a lens that is soft all around, pointed at both ends."""
    x = even(-1, 1, 2 * half_width + 1, scale)
    y = even(-1, 1, 2 * half_height + 1, scale)[:, None]
    return np.clip(1 - (y / np.maximum(1 - x**2, 1e-3)) ** 2, 0, 1)[..., None]
