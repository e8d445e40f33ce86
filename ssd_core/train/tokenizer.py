"""Stage 1: the picture tokenizer. Principal components, k-means, then a decoder that repairs.

Squared error alone would average strokes away. So the encoder is not trained by gradients: a code
is the mean of similar patches and stays sharp, and the decoder only learns corrections from
neighbouring patches. Half of the patches for k-means show things, which cover few cells of a
postcard and decide most of its claims.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..backbones.codecs.vq import PATCH, VQTokenizer
from ..files import write_safetensors
from ..postcards import SIZE, check, claims, postcard
from ..postcards.things import cells_of
from .checkpoints import Checkpoint, training_steps
from .common import cosine, descend, mixed_precision, remember_rates, set_rate
from .data import HELD_OUT, pictures, scene_of, to_signed

FORMAT = "ssd-vq/2"
WHITENING = 0.12  # components are divided by their variance to this power


@dataclass(frozen=True)
class TokenizerRecipe:
    out: Path
    steps: int = 3000
    pictures: int = 3000
    patches: int = 240_000
    rounds: int = 12
    batch: int = 32
    crop: int = 96
    rate: float = 2e-3
    held_out: int = 200
    seed: int = 0
    device: str = "cpu"


def patches_of(painted: np.ndarray, count: int, generator: torch.Generator) -> torch.Tensor:
    """float32 [count, 3 * PATCH**2] in -1..1; half of the patches show things."""
    groups: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])
    each = -(-count // len(painted) // 2)
    for seed, picture in enumerate(painted):
        signed = to_signed(picture[None])
        cells = F.pixel_unshuffle(signed, PATCH)[0].flatten(1).T
        shows = torch.from_numpy(cells_of(scene_of(seed))).flatten() >= 0
        for group, mask in zip(groups, (shows, ~shows), strict=True):
            of_group = cells[mask]
            group.append(of_group[torch.randperm(len(of_group), generator=generator)[:each]])
    things, others = (torch.cat(group) for group in groups)
    return torch.cat((things, others))[torch.randperm(len(things) + len(others),
                                                      generator=generator)]


def principal_components(patches: torch.Tensor, dim: int
                         ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The mean [pixels] of patches [n, pixels], their components [pixels, dim] and variances [dim],
    the largest first."""
    centre = patches.mean(0)
    values, vectors = torch.linalg.eigh(torch.cov(patches.T))
    return centre, vectors[:, -dim:].flip(1), values[-dim:].flip(0).clamp(min=1e-8)


def kmeans(latents: torch.Tensor, codes: int, rounds: int,
           generator: torch.Generator) -> torch.Tensor:
    """Means [codes, dim] of latents [n, dim]; a mean without members moves to a random latent."""
    def pick(count: int) -> torch.Tensor:
        return latents[torch.randperm(len(latents), generator=generator)[:count]]

    book = pick(codes)
    for _ in range(rounds):
        owner = torch.cat([torch.cdist(part, book).argmin(-1) for part in latents.split(8192)])
        count = torch.bincount(owner, minlength=codes)
        book = torch.zeros_like(book).index_add_(0, owner, latents) / count.clamp(min=1)[:, None]
        book[count == 0] = pick(int((count == 0).sum()))
    return book


@torch.no_grad()
def start(model: VQTokenizer, patches: torch.Tensor, rounds: int,
          generator: torch.Generator) -> None:
    """Set components and codes from patches [n, pixels]; the decoder starts as a plain mosaic."""
    codes, dim = model.codebook.shape
    centre, components, variances = principal_components(patches, dim)
    scale = variances ** WHITENING
    project = (components / scale).T
    set_convolution(model.encoder[1], project, -project @ centre)
    set_convolution(model.mosaic, components * scale, centre)
    model.codebook.copy_(kmeans((patches - centre) @ project.T, codes, rounds, generator))
    for weight in model.repair[-1].parameters():
        nn.init.zeros_(weight)


def set_convolution(layer: nn.Module, weight: torch.Tensor, bias: torch.Tensor) -> None:
    """Set weight [out, in] and bias [out] of a 1 x 1 convolution."""
    layer.get_parameter("weight").copy_(weight[..., None, None])
    layer.get_parameter("bias").copy_(bias)


def crops(painted: np.ndarray, recipe: TokenizerRecipe, generator: torch.Generator) -> torch.Tensor:
    """float32 [batch, 3, crop, crop] at random whole-patch places of random pictures."""
    def draw(n: int) -> list[int]:
        return torch.randint(n, (recipe.batch,), generator=generator).tolist()
    c, places = recipe.crop, (SIZE - recipe.crop) // PATCH + 1
    corners = zip(draw(len(painted)), draw(places), draw(places), strict=True)
    return to_signed(np.stack([
        painted[i, y * PATCH : y * PATCH + c, x * PATCH : x * PATCH + c] for i, y, x in corners]))


def train(recipe: TokenizerRecipe) -> dict:
    """Train, save `tokenizer.safetensors` in recipe.out and return the held-out metrics."""
    torch.manual_seed(recipe.seed)
    generator = torch.Generator().manual_seed(recipe.seed)
    painted = pictures(recipe.pictures, recipe.out)
    model = VQTokenizer()
    checkpoint = recipe.out / "tokenizer.ckpt"
    if not checkpoint.exists():
        start(model, patches_of(painted, recipe.patches, generator), recipe.rounds, generator)
    learn_to_repair(model.to(recipe.device), painted, recipe, checkpoint, generator)
    save(model, recipe.out / "tokenizer.safetensors")
    return held_out_metrics(model.cpu(), recipe.held_out)


def learn_to_repair(model: VQTokenizer, painted: np.ndarray, recipe: TokenizerRecipe, path: Path,
                    generator: torch.Generator) -> None:
    """Train the decoder by squared error; codebook and encoder do not change."""
    weights = [*model.mosaic.parameters(), *model.repair.parameters()]
    optimizers = remember_rates([torch.optim.AdamW(weights, recipe.rate, weight_decay=0.0)])
    checkpoint = Checkpoint(path, model, optimizers, generator)
    for step in training_steps("tokenizer", recipe.steps, checkpoint,
                                report=lambda: f"psnr {psnr_of(checkpoint.mean):.2f}"):
        batch = crops(painted, recipe, generator).to(recipe.device)
        set_rate(optimizers, cosine(step, recipe.steps, warmup=100))
        with torch.no_grad():
            vectors = model.quantised(model.encode(batch))
        with mixed_precision(recipe.device):
            rebuilt = model.pixels(vectors)
        error = F.mse_loss(rebuilt.float(), batch)
        descend(error, optimizers, weights)
        checkpoint.recent.append(error.item())


def save(model: VQTokenizer, path: Path) -> None:
    write_safetensors({name: tensor.float().cpu().contiguous()
                       for name, tensor in model.state_dict().items()}, path, {"format": FORMAT})


def psnr_of(mse_signed: float) -> float:
    """Convert a mean squared error of pixels in -1..1 (peak-to-peak 2) to dB."""
    return 10 * math.log10(4 / max(mse_signed, 1e-12))


@torch.no_grad()
def held_out_metrics(model: VQTokenizer, count: int) -> dict:
    """PSNR in dB (of the mean error), share of claims that still hold, number of codes used."""
    errors: list[float] = []
    held: list[bool] = []
    used: set[int] = set()
    for seed in range(HELD_OUT, HELD_OUT + count):
        picture, caption, _ = postcard(seed)
        signed = to_signed(picture[None])
        tokens = model.encode(signed)
        rebuilt = model.decode(tokens).clamp(-1, 1)
        errors.append(F.mse_loss(rebuilt, signed).item())
        pixels = ((rebuilt[0].permute(1, 2, 0) + 1) * 127.5).round().byte().numpy()
        held.extend(check(pixels, claims(caption)))
        used.update(tokens.flatten().tolist())
    return {"stage": "tokenizer", "held_out": count, "psnr_db": psnr_of(sum(errors) / count),
            "claims_kept": sum(held) / len(held), "codes_used": len(used)}
