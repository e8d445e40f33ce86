"""Soft shapes: curves, drifts, blends and spots, from which a picture is painted.

Nothing follows the cells of the tokenizer, so that a picture shows no grid.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from PIL import Image

from ssd_core.backbones.postcard.words.world import GLEAM, SHADOW, Frame


def axes(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The column [W] and row [H, 1] of every px, float32."""
    return (np.arange(frame.width, dtype=np.float32),
            np.arange(frame.height, dtype=np.float32)[:, None])


def curve(rng: np.random.Generator, at: np.ndarray, *waves: tuple[float, float]) -> np.ndarray:
    """A sum of waves (length, height) at random phases, evaluated at positions, px."""
    total = np.zeros_like(at)
    for length, height in waves:
        length *= rng.uniform(0.8, 1.25)
        total += height * np.sin(2 * np.pi * (at / length + rng.random()))
    return total.astype(np.float32)


def drift(rng: np.random.Generator, shape: tuple[int, int], wide: int, high: int) -> np.ndarray:
    """A smooth random field of about -1..1 whose features are `wide` x `high` px, float32."""
    rows, columns = shape
    few = rng.normal(0, 0.7, (rows // high + 3, columns // wide + 3)).astype(np.float32)
    smooth = Image.fromarray(few).resize((columns + 2 * wide, rows + 2 * high),
                                         Image.Resampling.BICUBIC)
    return np.asarray(smooth)[high : high + rows, wide : wide + columns]


def below(row: np.ndarray, line: np.ndarray | float, soft: float = 1.0) -> np.ndarray:
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


def paste(canvas: np.ndarray, colour: np.ndarray, alpha: np.ndarray, x: int, y: int) -> None:
    """Blend colour [h, w, 3] by alpha [h, w, 1] with its corner at (x, y), clipped, in place."""
    top, left = max(0, -y), max(0, -x)
    bottom = min(alpha.shape[0], canvas.shape[0] - y)
    right = min(alpha.shape[1], canvas.shape[1] - x)
    if top < bottom and left < right:
        part = canvas[y + top : y + bottom, x + left : x + right]
        part += (colour[top:bottom, left:right] - part) * alpha[top:bottom, left:right]


def spot(canvas: np.ndarray, colour: object, mask: np.ndarray, x: int, y: int) -> None:
    """Blend one colour by a mask [h, w, 1] with its middle at (x, y), in place."""
    rows, columns = mask.shape[:2]
    solid = np.broadcast_to(np.asarray(colour, dtype=np.float32), (rows, columns, 3))
    paste(canvas, solid, mask, x - columns // 2, y - rows // 2)


@cache
def ellipse(half_width: int, half_height: int, edge: float) -> np.ndarray:
    """Coverage [2 * half_height + 1, 2 * half_width + 1, 1] of an ellipse with a soft edge."""
    x = np.linspace(-1, 1, 2 * half_width + 1, dtype=np.float32)
    y = np.linspace(-1, 1, 2 * half_height + 1, dtype=np.float32)[:, None]
    return np.clip((1 - np.hypot(x, y)) / edge, 0, 1)[..., None]


@cache
def lens(half_width: int, half_height: int) -> np.ndarray:
    """Coverage of a lens that is soft all around, pointed at both ends."""
    x = np.linspace(-1, 1, 2 * half_width + 1, dtype=np.float32)
    y = np.linspace(-1, 1, 2 * half_height + 1, dtype=np.float32)[:, None]
    return np.clip(1 - (y / np.maximum(1 - x**2, 1e-3)) ** 2, 0, 1)[..., None]
