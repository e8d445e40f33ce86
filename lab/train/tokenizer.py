"""Stage 1: the picture tokenizer. Principal components, k-means, then a decoder that repairs.

Squared error alone would average strokes away. So the encoder is not trained by gradients: a code
is the mean of similar patches and stays sharp, and the decoder only learns corrections from
neighbouring patches. Half of the patches for k-means show things, which cover few cells of a
postcard and decide most of its claims.

With `start_from`, the codes of another postcard stay as they are and only a decoder learns: tokens
keep their meaning, and a backbone goes on from its weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ssd_core.backbones.codecs.vq import PATCH, VQTokenizer
from ssd_core.backbones.postcard.words.world import scene_of
from ssd_core.errors import SSDError
from ssd_core.files import write_safetensors
from ssd_core.model.knobs import flag
from ssd_core.train.checkpoints import Checkpoint, training_steps
from ssd_core.train.common import (
    cosine,
    descend,
    mixed_precision,
    remember_rates,
    require_least,
    set_rate,
)
from ssd_core.weights.load import load_backbone

from ..postcards import check, postcard
from ..postcards.claims import claims
from ..postcards.objects import cells_of
from ..postcards.seams import grid_ratio
from .data import HELD_OUT, counts_by_shape, pictures, to_signed

FORMAT = "ssd-vq/1"
WORST = 12  # patches for each code that is moved
WHITENING = 0.12  # components are divided by their variance to this power


@dataclass(frozen=True)
class TokenizerRecipe:
    out: Path
    start_from: str = flag("", "A postcard whose codes stay as they are: a bundled name, a file "
                               "or a folder. A fresh decoder for them learns.")
    refill: int = flag(0, "With --start-from: move so many codes, those that painted pictures use "
                          "least, to the patches that codes reproduce worst. The backbone learns "
                          "these codes anew.")
    channels: int = flag(128, "Channels of the decoder, a multiple of 8.")
    blocks: int = flag(3, "Residual blocks of the decoder.")
    shapes: bool = flag(False, "Half of the pictures are 32 x 18 and 18 x 32 cells.")
    steps: int = 3000
    pictures: int = 3000
    patches: int = 240_000
    rounds: int = 12
    batch: int = 32
    crop: int = flag(96, "Pixels along a side of what a step sees of a picture, at most 288.")
    slopes: float = flag(0.0, "Weight of the error of differences between neighbouring pixels; "
                              "half of it is that of borders between patches.")
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

    if len(latents) < codes:
        raise SSDError(f"{len(latents)} patches for {codes} codes: raise --pictures and --patches")
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
    clear(model)


@torch.no_grad()
def clear(model: VQTokenizer) -> None:
    """Let the decoder add nothing to the mosaic."""
    for weight in model.repair[-1].parameters():
        nn.init.zeros_(weight)


def set_convolution(layer: nn.Module, weight: torch.Tensor, bias: torch.Tensor) -> None:
    """Set weight [out, in] and bias [out] of a 1 x 1 convolution."""
    layer.get_parameter("weight").copy_(weight[..., None, None])
    layer.get_parameter("bias").copy_(bias)


def crops(painted: Sequence[np.ndarray], recipe: TokenizerRecipe,
          generator: torch.Generator) -> torch.Tensor:
    """float32 [batch, 3, crop, crop] at random whole-patch places of random pictures.

    painted: the pictures of each shape, each a share of the batch that fits their number.
    """
    counts = torch.tensor([len(group) for group in painted], dtype=torch.float)
    groups = torch.multinomial(counts, recipe.batch, replacement=True, generator=generator)
    return to_signed(np.stack([crop_of(painted[group], recipe.crop, generator)
                               for group in groups.tolist()]))


def crop_of(painted: np.ndarray, side: int, generator: torch.Generator) -> np.ndarray:
    """A square of whole patches of one of pictures [n, H, W, 3]."""
    def draw(n: int) -> int:
        return int(torch.randint(n, (), generator=generator))
    y, x = (PATCH * draw((whole - side) // PATCH + 1) for whole in painted.shape[1:3])
    return painted[draw(len(painted)), y : y + side, x : x + side]


def train(recipe: TokenizerRecipe) -> dict:
    """Train, save `tokenizer.safetensors` in recipe.out and return the held-out metrics."""
    require_least(recipe, pictures=1, patches=1, rounds=0, refill=0, steps=1, batch=1, channels=1,
                  blocks=0, crop=1, held_out=1)
    if recipe.channels % 8:
        raise SSDError(f"channels {recipe.channels}: must be a multiple of 8")
    if recipe.crop % PATCH or recipe.crop > 288:
        raise SSDError(f"crop {recipe.crop}: must be a multiple of {PATCH}, at most 288")
    torch.manual_seed(recipe.seed)
    generator = torch.Generator().manual_seed(recipe.seed)
    painted = [pictures(count, recipe.out, frame=frame)
               for frame, count in counts_by_shape(recipe.pictures, 0.5 * recipe.shapes).items()]
    checkpoint = recipe.out / "tokenizer.ckpt"
    model = VQTokenizer(channels=recipe.channels, blocks=recipe.blocks)
    if recipe.start_from:
        model = with_codes_of(recipe)
        if recipe.refill and not checkpoint.exists():
            refill(model, patches_of(painted[0], recipe.patches, generator), recipe, generator)
    elif not checkpoint.exists():
        start(model, patches_of(painted[0], recipe.patches, generator), recipe.rounds, generator)
    learn_to_repair(model.to(recipe.device), painted, recipe, checkpoint, generator)
    save(model, recipe.out / "tokenizer.safetensors")
    return held_out_metrics(model.cpu(), recipe.held_out)


def with_codes_of(recipe: TokenizerRecipe) -> VQTokenizer:
    """The encoder, codes and mosaic of a postcard, with a fresh decoder."""
    source = load_backbone(recipe.start_from, "cpu", "fp32").picture_codec
    if not isinstance(source, VQTokenizer):
        raise SSDError(f"start_from {recipe.start_from}: not a postcard: name one")
    codes, dim = source.codebook.shape
    model = VQTokenizer(codes, dim, recipe.channels, recipe.blocks)
    unchanged = {name: tensor for name, tensor in source.state_dict().items()
                 if not name.startswith(("repair.", "residual.", "upsample."))}
    model.load_state_dict(model.state_dict() | unchanged)
    clear(model)
    return model


@torch.no_grad()
def refill(model: VQTokenizer, patches: torch.Tensor, recipe: TokenizerRecipe,
           generator: torch.Generator) -> None:
    """Move the least used codes to the patches [n, pixels] that the codes reproduce worst."""
    if recipe.refill > len(model.codebook):
        raise SSDError(f"refill {recipe.refill}: there are only {len(model.codebook)} codes")
    latents = model.encoder[1](patches[..., None, None]).flatten(1)
    nearest = [torch.cdist(part, model.codebook).min(-1) for part in latents.split(8192)]
    owners = torch.cat([found.indices for found in nearest])
    uses = torch.bincount(owners, minlength=len(model.codebook))
    count = min(WORST * recipe.refill, len(latents))
    worst = latents[torch.cat([found.values for found in nearest]).topk(count).indices]
    model.codebook[uses.argsort()[: recipe.refill]] = kmeans(worst, recipe.refill, recipe.rounds,
                                                            generator)


def learn_to_repair(model: VQTokenizer, painted: Sequence[np.ndarray], recipe: TokenizerRecipe,
                    path: Path, generator: torch.Generator) -> None:
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
        slopes = recipe.slopes * slope_error(rebuilt.float(), batch) if recipe.slopes else 0.0
        descend(error + slopes, optimizers, weights)
        checkpoint.recent.append(error.item())


def slope_error(rebuilt: torch.Tensor, painted: torch.Tensor) -> torch.Tensor:
    """Squared error of the differences between neighbouring px [B, 3, H, W].

    Those across borders of patches, where a grid would show, count as much as all others.
    """
    total = rebuilt.new_zeros(())
    for axis in (-1, -2):
        border = torch.arange(1, rebuilt.shape[axis], device=rebuilt.device) % PATCH == 0
        off = (rebuilt - painted).diff(dim=axis).square().movedim(axis, -1)
        total = total + off[..., border].mean() + off[..., ~border].mean()
    return total


def save(model: VQTokenizer, path: Path) -> None:
    write_safetensors({name: tensor.float().cpu().contiguous()
                       for name, tensor in model.state_dict().items()}, path, {"format": FORMAT})


def psnr_of(mse_signed: float) -> float:
    """Convert a mean squared error of pixels in -1..1 (peak-to-peak 2) to dB."""
    return 10 * math.log10(4 / max(mse_signed, 1e-12))


@torch.no_grad()
def held_out_metrics(model: VQTokenizer, count: int) -> dict:
    """PSNR in dB (of the mean error), grid ratio, share of claims that still hold, codes used."""
    errors: list[float] = []
    ratios: list[float] = []
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
        ratios.append(grid_ratio(pixels))
        used.update(tokens.flatten().tolist())
    return {"stage": "tokenizer", "held_out": count, "psnr_db": psnr_of(sum(errors) / count),
            "grid_ratio": sum(ratios) / count, "claims_kept": sum(held) / len(held),
            "codes_used": len(used)}
