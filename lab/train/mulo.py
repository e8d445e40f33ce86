"""The samplers of MuLo-SD, between a backbone and a smaller one of the same kind (stage 5).

They learn from pictures that the larger backbone drew: the codec's pixels and their reduction are
the same picture at both sizes. The loss compares code vectors, pixels after the codec and
differences of neighbouring pixels, and pulls the output towards the codebook (MuLo-SD, section 4.1,
without its perceptual and adversarial terms, which need further networks).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.codecs.codec import PictureCodec
from ssd_core.backbones.codecs.vqgan import nearest_codes
from ssd_core.backbones.drafter import BLOCKS, WIDTH, Downsampler, Drafter, Upsampler, save_samplers
from ssd_core.errors import SSDError
from ssd_core.model.knobs import flag
from ssd_core.train.checkpoints import Checkpoint, training_steps
from ssd_core.train.common import (
    REQUIRED,
    Say,
    cosine,
    descend,
    remember_rates,
    require_least,
    set_rate,
    silent,
)
from ssd_core.train.picture_files import load_pictures
from ssd_core.weights.find import find_path
from ssd_core.weights.load import SAMPLERS_FILE, load_backbone

from .data import at_size

PICTURES_AT_ONCE = 16


@dataclass(frozen=True)
class MuloRecipe:
    """The two backbones, and how the samplers between them learn."""

    out: Path = flag(REQUIRED, "Folder of the larger backbone, or of a copy of it.")
    drafter: str = flag(REQUIRED, "The smaller backbone: a file or folder in the folder of --out "
                                  "or beside that.")
    backbone: str = flag("", "The larger backbone: name, file or folder. Default: --out.")
    data: str = flag("", "Folder in which train self-distill drew with the larger backbone. "
                         "Default: --out.")
    pictures: int = flag(0, "Learn from so many; 0: from all that were drawn.")
    steps: int = flag(2000, "Batches seen.")
    batch: int = flag(8, "Pictures of a step.")
    width: int = flag(WIDTH, "Channels of the samplers.")
    blocks: int = flag(BLOCKS, "Residual blocks of each.")
    rate: float = flag(1e-3, "Peak learning rate.")
    held_out: int = flag(64, "Pictures that only measure; at most a quarter.")
    seed: int = 0
    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")


def check(recipe: MuloRecipe) -> None:
    """Raise SSDError for invalid numbers, before anything is loaded."""
    require_least(recipe, pictures=0, held_out=0, steps=1, batch=1, width=1, blocks=1)


def ratio_of(small: Backbone, large: Backbone) -> int:
    """Return how many cells of the larger grid make a cell of the smaller, per direction."""
    ratio = large.grid.rows // small.grid.rows
    if ratio < 2 or (small.grid.rows * ratio, small.grid.columns * ratio) != (
            large.grid.rows, large.grid.columns):
        raise SSDError(f"{small.name} draws {small.grid} cells, {large.name} {large.grid}: the "
                       "drafter needs a half, a third or a quarter as many in each direction")
    return ratio


@torch.no_grad()
def reduce_tokens(large: Backbone, small: Backbone, tokens: torch.Tensor) -> torch.Tensor:
    """Convert tokens [n, R, C] of the larger backbone to the smaller, by reducing the pictures."""
    parts = []
    for part in tokens.long().split(PICTURES_AT_ONCE):
        pixels = large.decode(part).permute(0, 3, 1, 2)
        width, height = small.size
        parts.append(small.encode(at_size(pixels, (height, width)).permute(0, 2, 3, 1)).cpu())
    return torch.cat(parts)


def differences(pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Differences between neighbours in pixels [B, 3, H, W], downwards and to the right."""
    return pixels.diff(dim=2), pixels.diff(dim=3)


def loss_of(sampler: nn.Module, source: torch.Tensor, goal: torch.Tensor, codec: PictureCodec,
            codes: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
    """Distance of a sampler's output from the goal, in code vectors and in pixels.

    source, goal: code vectors [B, d, R, C] before and after. shown: pixels of the goal.
    """
    output = sampler(source)
    nearest = codes[nearest_codes(output.detach().permute(0, 2, 3, 1), codes)].permute(0, 3, 1, 2)
    pixels = codec.pixels(output + (nearest - output).detach())  # straight-through gradient
    size = goal.square().mean()
    total = (F.mse_loss(output, goal) + 0.25 * F.mse_loss(output, nearest)) / size
    total = total + F.l1_loss(pixels, shown)
    for difference, expected in zip(differences(pixels), differences(shown), strict=True):
        total = total + F.l1_loss(difference, expected)
    return total


def train(recipe: MuloRecipe, say: Say = silent) -> dict:
    """Train both samplers, save them in recipe.out and return held-out metrics."""
    check(recipe)
    path = find_path(recipe.drafter)
    if recipe.out.resolve() not in (path.resolve().parent, *path.resolve().parent.glob("*")):
        raise SSDError(f"drafter {path}: put it into {recipe.out} or beside that folder, where "
                       "it is looked for")
    large = load_backbone(recipe.backbone or recipe.out, recipe.device, "fp32")
    small = load_backbone(path, recipe.device, "fp32")
    drawn = load_pictures(Path(recipe.data or recipe.out), large)
    large, generator = large.resized(drawn.size), torch.Generator().manual_seed(recipe.seed)
    available = len(drawn) - min(recipe.held_out, len(drawn) // 4)
    shown = min(recipe.pictures or available, available)
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        shape = (large.picture_codec.code_vectors.shape[1], ratio_of(small, large), recipe.width,
                 recipe.blocks)
        drafter = Drafter(small, large, Upsampler(*shape), Downsampler(*shape)).to(large.device)
    parameters = sum(weight.numel() for weight in samplers_of(drafter).parameters())
    say(f"{parameters / 1e6:.1f}M parameters between {small.grid} and {large.grid} cells, "
        f"{recipe.steps:,} steps of {recipe.batch} pictures out of {shown:,}")
    coarse = reduce_tokens(large, small, drawn.tokens)
    learn(recipe, drafter, large, drawn.tokens[:shown].long(), coarse[:shown], generator)
    drafter.requires_grad_(False).eval()
    summary = {"pictures": shown, "steps": recipe.steps}
    save_samplers(drafter, large, recipe.out / SAMPLERS_FILE, path.name, summary)
    return {"stage": "mulo", **summary,
            **held_out_metrics(drafter, large, drawn.tokens[available:].long(), coarse[available:])}


def samplers_of(drafter: Drafter) -> nn.ModuleList:
    return nn.ModuleList((drafter.up, drafter.down))


def learn(recipe: MuloRecipe, drafter: Drafter, large: Backbone, fine: torch.Tensor,
          coarse: torch.Tensor, generator: torch.Generator) -> None:
    """Run all steps over tokens [n, R, C] of both sizes, from a checkpoint if there is one."""
    samplers, small = samplers_of(drafter), drafter.backbone
    for backbone in (large, small):
        backbone.requires_grad_(False)
    optimizers = remember_rates([torch.optim.AdamW(samplers.parameters(), recipe.rate)])
    checkpoint = Checkpoint(recipe.out / "samplers.ckpt", samplers, optimizers, generator)
    for step in training_steps("samplers", recipe.steps, checkpoint,
                               report=lambda: f"loss {checkpoint.mean:.3f}"):
        pick = torch.randint(len(fine), (recipe.batch,), generator=generator)
        set_rate(optimizers, cosine(step, recipe.steps, warmup=20))
        losses = []
        sides = ((large, fine, drafter.large), (small, coarse, drafter.small))
        vectors = [codes[tokens[pick].to(codes.device)].permute(0, 3, 1, 2)
                   for _, tokens, codes in sides]
        for sampler, to, source in ((drafter.up, 0, 1), (drafter.down, 1, 0)):
            codec = sides[to][0].ensure_on_device(sides[to][0].picture_codec)
            with torch.no_grad():
                shown = codec.pixels(vectors[to])
            losses.append(loss_of(sampler, vectors[source], vectors[to], codec, sides[to][2],
                                  shown))
        loss = torch.stack(losses).sum()
        descend(loss, optimizers, list(samplers.parameters()))
        checkpoint.recent.append(loss.item())


@torch.no_grad()
def held_out_metrics(drafter: Drafter, large: Backbone, fine: torch.Tensor,
         coarse: torch.Tensor) -> dict[str, float]:
    """Shares of right codes, and mean error of pixels in 0..1, on held-out pictures."""
    if not len(fine):
        return {}
    up, down = drafter.upsampled(coarse.to(large.device)), drafter.downsampled(
        fine.to(large.device))
    error = (large.decode(up) - large.decode(fine)).abs().mean().item()
    back = (drafter.backbone.decode(down) - drafter.backbone.decode(coarse)).abs().mean().item()
    return {"held_out_pictures": len(fine), "up_codes": (up.cpu() == fine).float().mean().item(),
            "down_codes": (down.cpu() == coarse).float().mean().item(), "up_pixels": error,
            "down_pixels": back}
