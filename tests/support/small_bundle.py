"""The bundled postcard with fewer cells: the same weights, a ninth of the work.

With `double` its codec has a head for twice the size; `write_double_bundle` keeps all its cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from ssd_core.backbones import postcard
from ssd_core.backbones.codecs.vq import Upsample
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
    tensors, metadata = read_safetensors(ASSETS / "postcard" / BACKBONE_FILE, postcard.FORMAT)
    for name in ("row_position", "column_position"):
        tensors[name] = tensors[name][:SIDE].clone()
    return write_bundle(folder, {**tensors, **(double_head() if double else {})}, metadata)


def write_double_bundle(folder: Path) -> Path:
    """Write `postcard` with all its shapes, and a head for twice the size, into the folder."""
    tensors, metadata = read_safetensors(ASSETS / "postcard" / BACKBONE_FILE, postcard.FORMAT)
    return write_bundle(folder, {**tensors, **double_head()}, metadata)


def double_head() -> dict[str, torch.Tensor]:
    """A head for twice the size: smooth enlargement, and fine noise by the picture."""
    head = Upsample()
    generator = torch.Generator().manual_seed(0)
    for weight in head.parameters():
        torch.nn.init.normal_(weight, std=0.02, generator=generator)
    return {f"{postcard.CODEC}upsample.{name}": value.detach().half()
            for name, value in head.state_dict().items()}


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
