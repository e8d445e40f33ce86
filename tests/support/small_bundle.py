"""The bundled postcard with fewer cells: the same weights, a ninth of the work.

Without `double` its codec lacks the head for twice the size; in `write_single_bundle` it does so,
and all cells are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from ssd_core.backbones import postcard
from ssd_core.engine import heads as heads_file
from ssd_core.files import ASSETS, read_safetensors, sha256_of, write_safetensors
from ssd_core.weights.find import BACKBONE_FILE, HEADS_FILE
from ssd_lab.postcards import SIZE, check
from ssd_lab.postcards.claims import Claim

SIDE = 8  # cells
PIXELS = SIDE * 16
# Where the bundle is looked for.
READERS = ("weights.find",)


def write_small_bundle(folder: Path, double: bool = False) -> Path:
    """Write `postcard` into the folder: the first rows and columns, and heads for them."""
    tensors, metadata = bundled(double)
    for name in ("row_position", "column_position"):
        tensors[name] = tensors[name][:SIDE].clone()
    return write_bundle(folder, tensors, metadata)


def write_single_bundle(folder: Path) -> Path:
    """Write `postcard` into the folder with all its shapes, without the head for twice the size."""
    return write_bundle(folder, *bundled(double=False))


def bundled(double: bool) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Tensors and metadata of `postcard`, with the head for twice the size or without it."""
    tensors, metadata = read_safetensors(ASSETS / "postcard" / BACKBONE_FILE, postcard.FORMAT)
    return {name: tensor for name, tensor in tensors.items()
            if double or not name.startswith(f"{postcard.CODEC}upsample.")}, metadata


def write_bundle(folder: Path, tensors: dict[str, torch.Tensor],
                 metadata: dict[str, str]) -> Path:
    place = folder / "postcard"
    place.mkdir(parents=True)
    write_safetensors(tensors, place / BACKBONE_FILE, metadata)
    drafts, about = read_safetensors(ASSETS / "postcard" / HEADS_FILE, heads_file.FORMAT)
    write_safetensors(drafts, place / HEADS_FILE,
                      {**about, "backbone_sha256": sha256_of(tensors)})
    return folder


def check_enlarged(picture: np.ndarray, said: Iterable[Claim]) -> tuple[bool, ...]:
    """`checker.check` of a picture of fewer cells, at the size that it reads."""
    times = SIZE // len(picture)
    return check(picture.repeat(times, axis=0).repeat(times, axis=1), said)


@contextmanager
def small_bundle(assets: Path):
    """Within the block, `postcard` is the one that `write_small_bundle` wrote to this folder."""
    with ExitStack() as stack:
        for name in READERS:
            stack.enter_context(patch(f"ssd_core.{name}.ASSETS", assets))
        yield
