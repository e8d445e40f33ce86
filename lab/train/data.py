"""Painted postcards on disk, as pixels or as tokens; captions are drawn again for every use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tqdm import tqdm

from ssd_core.backbones.codecs.codec import PictureCodec
from ssd_core.backbones.postcard import Postcard
from ssd_core.backbones.postcard.words.world import SIZE, SQUARE, TALL, WIDE, Frame, scene_of
from ssd_core.files import atomic_write

from ..postcards.painter import paint

HELD_OUT = 1_000_000_000  # seeds from here on are never trained on


def prompt_batch(backbone: Postcard, captions: list[str], drop: torch.Tensor) -> torch.Tensor:
    """Ids [B, P] of captions in their own words; those whose `drop` is True get the ids of a prompt
    without text."""
    prompts = [backbone.ids_of(backbone.known_words(caption)) for caption in captions]
    return torch.tensor([backbone.unconditional(ids) if dropped else ids
                         for ids, dropped in zip(prompts, drop.tolist(), strict=True)])


def paint_chunk(seeds: range, frame: Frame, scale: int = 1) -> np.ndarray:
    """uint8 [n, scale * H, scale * W, 3] of the postcards with these seeds."""
    return np.stack([paint(scene_of(seed), frame, scale) for seed in seeds])


def painted(count: int, first_seed: int, frame: Frame = SQUARE,
            scale: int = 1) -> Iterator[np.ndarray]:
    """Pictures of `count` seeds, painted on all cores, up to 64 at a time."""
    end = first_seed + count
    chunks = [range(a, min(a + 64, end)) for a in range(first_seed, end, 64)]
    with ProcessPoolExecutor() as pool:
        blocks = pool.map(partial(paint_chunk, frame=frame, scale=scale), chunks)
        yield from tqdm(blocks, "paint", len(chunks), mininterval=2.0)


def pictures(count: int, folder: Path, first_seed: int = 0, frame: Frame = SQUARE,
             scale: int = 1) -> np.ndarray:
    """uint8 [count, scale * H, scale * W, 3]; saved in `folder` for later stages."""
    times = "" if scale == 1 else f"-x{scale}"
    path = Path(folder) / f"pictures-{first_seed}-{count}{suffix_of(frame)}{times}.npy"
    if not path.exists():
        with atomic_write(path) as temporary:
            shape = (count, scale * frame.height, scale * frame.width, 3)
            out = np.lib.format.open_memmap(temporary, "w+", np.uint8, shape)
            done = 0
            for block in painted(count, first_seed, frame, scale):
                out[done : done + len(block)] = block
                done += len(block)
            out.flush()
    return np.load(path, mmap_mode="r")


def counts_by_shape(count: int, others: float) -> dict[Frame, int]:
    """How many of `count` pictures have each shape; WIDE and TALL share `others` (0..1)."""
    each = round(count * others / 2)
    return {SQUARE: count - 2 * each, **({WIDE: each, TALL: each} if each else {})}


def suffix_of(frame: Frame) -> str:
    """What the names of files of a shape end with; nothing for the square."""
    return "" if frame == SQUARE else f"-{frame.name}"


@torch.no_grad()
def painted_tokens(codec: PictureCodec, count: int, folder: Path, first_seed: int = 0,
                   size: int = SIZE, frame: Frame = SQUARE) -> torch.Tensor:
    """int64 [count, R*C]: pictures as tokens, saved in `folder`; their pixels would fill disks.

    size: pixels along a side; square pictures are reduced to it first.
    """
    small = frame == SQUARE and size != SIZE
    ending = f"-{size}px" if small else suffix_of(frame)
    path = Path(folder) / f"tokens-{first_seed}-{count}{ending}.npy"
    if not path.exists():
        goal = (size, size) if small else (frame.height, frame.width)
        blocks = (at_size(to_signed(block), goal) for block in painted(count, first_seed, frame))
        tokens = [codec.encode(block).flatten(1).to(torch.int16).numpy() for block in blocks]
        with atomic_write(path) as temporary, open(temporary, "wb") as file:
            np.save(file, np.concatenate(tokens))
    return torch.from_numpy(np.load(path)).long()


def at_size(pixels: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Resize pixels [B, 3, H, W] to (height, width); each new pixel is a mean over its area."""
    return F.interpolate(pixels, size=size, mode="area")


def to_signed(batch: np.ndarray) -> torch.Tensor:
    """uint8 [B, H, W, 3] -> float32 [B, 3, H, W] in -1..1."""
    return torch.from_numpy(np.array(batch)).permute(0, 3, 1, 2).float() / 127.5 - 1
