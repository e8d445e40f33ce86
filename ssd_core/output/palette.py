"""One colour per code of a backbone, to preview rows without running its decoder."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.weak import WeakIdKeyDictionary

from ..backbones.base import Backbone
from ..weights.out_of_memory import empty_caches, is_out_of_memory

MOST_PICTURES = 32  # decoded to make a palette; larger codebooks use smaller patches
LARGE, SAMPLED = 50_000, 2  # codes from which on so many pictures of some codes must do
GREY = 128


@dataclass(frozen=True)
class Palette:
    """colours uint8 [codes, 3]; seconds: the measured time to decode one picture."""

    colours: np.ndarray
    seconds: float


_MADE = WeakIdKeyDictionary()  # keyed by a weight, which all sizes of a backbone share


def palette(backbone: Backbone) -> Palette:
    """The backbone's palette, made once while it is loaded; grey if memory runs out."""
    try:
        if backbone.norm not in _MADE:
            _MADE[backbone.norm] = make_palette(backbone)
        return _MADE[backbone.norm]
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        empty_caches()
        return Palette(np.full((backbone.codes, 3), GREY, np.uint8), math.inf)


def make_palette(backbone: Backbone) -> Palette:
    """Decode patchworks of all codes, and average the pixels of each code's patch.

    Of a large codebook some codes are decoded; the others' colours are fitted to their vectors.
    """
    make = scattered if backbone.codes >= LARGE else patchwork
    codes = make(backbone.grid.rows, backbone.grid.columns, backbone.codes)
    sums, counts = np.zeros((backbone.codes, 3)), np.zeros((backbone.codes, 1))
    begin = time.perf_counter()
    for picture in codes:
        tokens = torch.from_numpy(picture)[None].to(backbone.device)
        with torch.inference_mode():
            pixels = backbone.decode(tokens)[0].float().cpu()
        colours = cell_means(pixels.numpy(), *picture.shape)
        np.add.at(sums, picture.ravel(), colours.reshape(-1, 3))
        np.add.at(counts, picture.ravel(), 1)
    seconds = (time.perf_counter() - begin) / len(codes)
    means = sums / np.maximum(counts, 1)
    if not (seen := counts[:, 0] > 0).all():
        vectors = backbone.picture_codec.code_vectors[: backbone.codes].detach().float().cpu()
        means[~seen] = fitted(vectors.numpy(), means, seen)
    return Palette((means * 255).round().astype(np.uint8), seconds)


def fitted(vectors: np.ndarray, colours: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Colours of the unseen codes by least squares in their vectors [codes, d] and squares."""
    terms = np.concatenate((np.ones((len(vectors), 1)), vectors, vectors**2), axis=1)
    weights = np.linalg.lstsq(terms[seen], colours[seen], rcond=None)[0]
    return (terms[~seen] @ weights).clip(0, 1)


def scattered(rows: int, columns: int, codes: int) -> np.ndarray:
    """SAMPLED token pictures int64 [n, R, C] of codes from all over the codebook, a cell each."""
    step = int(codes * 0.618)
    while math.gcd(step, codes) > 1:
        step += 1
    return (np.arange(SAMPLED * rows * columns) * step % codes).reshape(-1, rows, columns)


def patchwork(rows: int, columns: int, codes: int) -> np.ndarray:
    """Token pictures int64 [n, R, C] in which every code fills a square patch."""
    for side in (4, 3, 2, 1):
        across, down = max(1, columns // side), max(1, rows // side)
        pictures = -(-codes // (across * down))
        if pictures <= MOST_PICTURES:
            break
    y = np.minimum(np.arange(rows) // side, down - 1)[:, None]
    x = np.minimum(np.arange(columns) // side, across - 1)[None]
    patch = y * across + x
    return (np.arange(pictures)[:, None, None] * across * down + patch) % codes


def cell_means(pixels: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Mean colour of each cell: [H, W, 3] -> [R, C, 3]."""
    height, width, _ = pixels.shape
    cells = pixels.reshape(rows, height // rows, columns, width // columns, 3)
    return cells.mean((1, 3))
