"""After `blend`: the head of the tokenizer's decoder that draws twice the size.

The painter paints the same scene at twice the size; from what the decoder makes of a painted
picture's tokens the head learns to draw that. Nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from ssd_core.backbones import postcard
from ssd_core.backbones.codecs.vq import Upsample, VQTokenizer
from ssd_core.backbones.postcard.words.world import Frame
from ssd_core.errors import SSDError
from ssd_core.model.knobs import flag
from ssd_core.train.checkpoints import Checkpoint, training_steps
from ssd_core.train.common import (
    REQUIRED,
    cosine,
    descend,
    mixed_precision,
    remember_rates,
    require_least,
    set_rate,
)
from ssd_core.weights.load import load_backbone

from .backbone import require_postcard
from .blend import AT_ONCE, loss_of, near_things
from .data import HELD_OUT, counts_by_shape, painted, pictures, to_signed
from .tokenizer import PATCH, psnr_of


@dataclass(frozen=True)
class UpsampleRecipe:
    """How the head of a postcard's tokenizer learns to draw twice the size."""

    out: Path = flag(REQUIRED, "Folder of the finished backbone; its tokenizer gets the head.")
    backbone: str = flag("", "Bundled name, file or folder. Default: --out.")
    channels: int = flag(64, "Channels of a new head.")
    pictures: int = flag(600, "Pictures painted at twice the size.")
    shapes: float = flag(0.5, "Share of the pictures that are 32 x 18 or 18 x 32 cells.")
    steps: int = flag(2000, "Batches seen.")
    batch: int = flag(8, "Crops of a step.")
    crop: int = flag(96, "Pixels along a side of a crop of the smaller picture, whole cells.")
    rate: float = flag(2e-3, "Peak learning rate.")
    held_out: int = flag(48, "Pictures for measurement only.")
    seed: int = 0


class Pairs(NamedTuple):
    """Pictures of one shape as decoded, painted at twice the size, and which px are near things."""

    small: torch.Tensor  # float16 [n, 3, H, W] in -1..1
    large: np.ndarray  # uint8 [n, 2 H, 2 W, 3]
    near: torch.Tensor  # bool [n, H, W]


def train(recipe: UpsampleRecipe) -> dict:
    """Train, save the backbone in recipe.out and return held-out metrics."""
    require_least(recipe, pictures=1, steps=1, batch=1, channels=1, held_out=1)
    if recipe.crop % PATCH or not 0 < recipe.crop <= 288:
        raise SSDError(f"crop {recipe.crop}: must be a multiple of {PATCH}, at most 288")
    finished = require_postcard(load_backbone(recipe.backbone or recipe.out, "cpu", "fp32"))
    codec = finished.picture_codec
    assert isinstance(codec, VQTokenizer)
    pairs = [pairs_of(codec, pictures(count, recipe.out, frame=frame, scale=2), frame)
             for frame, count in counts_by_shape(recipe.pictures, recipe.shapes).items()]
    head = codec.upsample or Upsample(recipe.channels)
    learn_to_enlarge(head.requires_grad_(True), pairs, recipe)
    codec.set_upsample(head.eval())
    postcard.save(finished, recipe.out / "backbone.safetensors")
    return {"stage": "upsample", "steps": recipe.steps, **held_out_metrics(codec, recipe.held_out)}


@torch.no_grad()
def pairs_of(codec: VQTokenizer, large: np.ndarray, frame: Frame) -> Pairs:
    small = []
    for first in range(0, len(large), AT_ONCE):
        block = F.avg_pool2d(to_signed(large[first : first + AT_ONCE]), 2)
        small.append(codec.decode(codec.encode(block)).half())
    near = [near_things(seed, (frame.height, frame.width)) for seed in range(len(large))]
    return Pairs(torch.cat(small), large, torch.stack(near))


def crops(pairs: Pairs, recipe: UpsampleRecipe, generator: torch.Generator
          ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Crops of whole cells: small [B, 3, s, s], large [B, 3, 2 s, 2 s], near [B, 2 s, 2 s]."""
    def draw(n: int) -> int:
        return int(torch.randint(n, (), generator=generator))

    small, large, near = [], [], []
    side = recipe.crop
    for _ in range(recipe.batch):
        n = draw(len(pairs.small))
        y, x = (PATCH * draw((whole - side) // PATCH + 1) for whole in pairs.small.shape[2:])
        small.append(pairs.small[n, :, y : y + side, x : x + side].float())
        large.append(pairs.large[n, 2 * y : 2 * (y + side), 2 * x : 2 * (x + side)])
        near.append(pairs.near[n, y : y + side, x : x + side])
    wide = torch.stack(near).repeat_interleave(2, 1).repeat_interleave(2, 2)
    return torch.stack(small), to_signed(np.stack(large)), wide


def learn_to_enlarge(head: Upsample, pairs: list[Pairs], recipe: UpsampleRecipe) -> None:
    """Run all steps, from a checkpoint if there is one."""
    generator = torch.Generator().manual_seed(recipe.seed)
    weights = list(head.parameters())
    optimizers = remember_rates([torch.optim.AdamW(weights, recipe.rate, weight_decay=0.0)])
    checkpoint = Checkpoint(recipe.out / "upsample.ckpt", head, optimizers, generator)
    counts = torch.tensor([len(shape.small) for shape in pairs], dtype=torch.float)
    for step in training_steps("upsample", recipe.steps, checkpoint,
                               report=lambda: f"loss {checkpoint.mean:.4f}"):
        shape = pairs[int(torch.multinomial(counts, 1, generator=generator))]
        small, large, near = crops(shape, recipe, generator)
        set_rate(optimizers, cosine(step, recipe.steps, warmup=50, floor=0.02))
        with mixed_precision("cpu"):
            drawn = head(small)
        loss = loss_of(drawn.float(), large, near, 2 * PATCH)
        descend(loss, optimizers, weights)
        checkpoint.recent.append(loss.item())


@torch.no_grad()
def held_out_metrics(codec: VQTokenizer, count: int) -> dict:
    """PSNR in dB (of the mean error) against pictures painted at twice the size, and the mean step
    between neighbouring px against theirs; of the head, and of the smaller picture enlarged."""
    errors: dict[str, list[float]] = {"head": [], "bilinear": []}
    steps: dict[str, list[float]] = {"head": [], "bilinear": [], "painted": []}
    for block in painted(count, HELD_OUT, scale=2):
        large = to_signed(block)
        small = codec.decode(codec.encode(F.avg_pool2d(large, 2)))
        shown = {"head": codec.enlarged(small, 2), "painted": large,
                 "bilinear": F.interpolate(small, scale_factor=2.0, mode="bilinear")}
        for name, pixels in shown.items():
            steps[name].append(pixels.clamp(-1, 1).diff(dim=-1).abs().mean().item())
            if name in errors:
                errors[name].append(F.mse_loss(pixels.clamp(-1, 1), large).item())
    psnr = {f"psnr_db_{name}": psnr_of(sum(of) / len(of)) for name, of in errors.items()}
    return {**psnr, **{f"gradient_{name}": sum(steps[name]) / sum(steps["painted"])
                       for name in errors}}
