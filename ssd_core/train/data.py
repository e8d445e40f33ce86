"""Painted postcards on disk, as pixels or as tokens; captions are drawn again for every use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tqdm import tqdm

from ..backbones.base import Backbone
from ..backbones.codecs.codec import PictureCodec
from ..files import atomic_write
from ..postcards.captions import describe
from ..postcards.painter import paint
from ..postcards.world import SIZE, Scene, sample_scene

HELD_OUT = 1_000_000_000  # seeds from here on are never trained on


def scene_of(seed: int) -> Scene:
    """The scene of postcard `seed`, unpainted."""
    return sample_scene(np.random.default_rng(seed))


def fresh_caption(seed: int, draw: int) -> str:
    """Return a caption of postcard `seed`; `draw` selects the wording."""
    return describe(scene_of(seed), np.random.default_rng((seed, draw)))


def prompt_batch(backbone: Backbone, captions: list[str], drop: torch.Tensor) -> torch.Tensor:
    """Ids [B, P] of captions; those whose `drop` is True get the ids of a prompt without text."""
    prompts = [backbone.tokenize(caption) for caption in captions]
    return torch.tensor([backbone.unconditional(ids) if dropped else ids
                         for ids, dropped in zip(prompts, drop.tolist(), strict=True)])


def paint_chunk(seeds: range) -> np.ndarray:
    """uint8 [n, SIZE, SIZE, 3] of the postcards with these seeds."""
    return np.stack([paint(scene_of(seed)) for seed in seeds])


def painted(count: int, first_seed: int) -> Iterator[np.ndarray]:
    """Pictures of `count` seeds, painted on all cores, up to 64 at a time."""
    end = first_seed + count
    chunks = [range(a, min(a + 64, end)) for a in range(first_seed, end, 64)]
    with ProcessPoolExecutor() as pool:
        yield from tqdm(pool.map(paint_chunk, chunks), "paint", len(chunks), mininterval=2.0)


def pictures(count: int, folder: Path, first_seed: int = 0) -> np.ndarray:
    """uint8 [count, SIZE, SIZE, 3]; saved in `folder` for later stages."""
    path = Path(folder) / f"pictures-{first_seed}-{count}.npy"
    if not path.exists():
        with atomic_write(path) as temporary:
            out = np.lib.format.open_memmap(temporary, "w+", np.uint8, (count, SIZE, SIZE, 3))
            done = 0
            for block in painted(count, first_seed):
                out[done : done + len(block)] = block
                done += len(block)
            out.flush()
    return np.load(path, mmap_mode="r")


@torch.no_grad()
def painted_tokens(codec: PictureCodec, count: int, folder: Path, first_seed: int = 0,
                   size: int = SIZE) -> torch.Tensor:
    """int64 [count, R*C]: pictures as tokens, saved in `folder`; their pixels would fill disks.

    size: pixels along a side; the pictures are reduced to it first.
    """
    name = f"tokens-{first_seed}-{count}" + (f"-{size}px" if size != SIZE else "")
    path = Path(folder) / f"{name}.npy"
    if not path.exists():
        blocks = (at_size(to_signed(block), (size, size)) for block in painted(count, first_seed))
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
