"""Stage 1: the picture tokenizer. Autoencode, then quantise with a codebook that k-means starts.

The codebook follows its latents by exponential moving average, and codes that fall out of use
are put back on random latents, so that all of them earn their place.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import torch
import torch.nn.functional as F

from ..backbones.codecs.vq import PATCH, VQTokenizer
from ..files import write_safetensors
from ..postcards import SIZE, check, claims, postcard
from .common import Checkpoint, cosine, descend, remember_rates, set_rate, training_steps
from .data import HELD_OUT, pictures, to_signed

FORMAT = "ssd-vq/1"


@dataclass(frozen=True)
class TokenizerRecipe:
    out: Path
    steps: int = 2000
    pictures: int = 6000
    batch: int = 32
    crop: int = 96
    rate: float = 2e-3
    held_out: int = 200
    seed: int = 0
    device: str = "cpu"


class Codebook:
    """EMA statistics of a VQTokenizer's codes (decay 0.99, as in VQ-VAE-2's appendix)."""

    def __init__(self, model: VQTokenizer, decay: float = 0.99) -> None:
        self.model, self.decay = model, decay
        self.usage = torch.ones(len(model.codebook), device=model.codebook.device)
        self.sums = model.codebook.detach().clone()
        model.register_buffer("usage", self.usage)  # so that they come back with a checkpoint
        model.register_buffer("sums", self.sums)

    @torch.no_grad()
    def start(self, latents: torch.Tensor, generator: torch.Generator) -> None:
        """Ten rounds of k-means over latents [n, dim]."""
        pick = torch.randperm(len(latents), generator=generator)[: len(self.model.codebook)]
        book = latents[pick]
        for _ in range(10):
            owner = torch.cdist(latents, book).argmin(-1)
            count = torch.bincount(owner, minlength=len(book)).float()[:, None]
            book = torch.where(count > 0, torch.zeros_like(book).index_add_(0, owner, latents)
                               / count.clamp(min=1), book)
        self.model.codebook.copy_(book)
        self.usage.fill_(1.0)
        self.sums.copy_(book)

    @torch.no_grad()
    def follow(self, latents: torch.Tensor, owner: torch.Tensor, revive: bool,
               generator: torch.Generator) -> None:
        """Move every code towards the mean of the latents [n, dim] it owns."""
        count = torch.bincount(owner, minlength=len(self.usage)).float()
        self.usage.lerp_(count, 1 - self.decay)
        self.sums.lerp_(torch.zeros_like(self.sums).index_add_(0, owner, latents), 1 - self.decay)
        dead = self.usage < 0.05
        if revive and dead.any():
            pick = torch.randint(len(latents), (int(dead.sum()),), generator=generator)
            self.sums[dead], self.usage[dead] = latents[pick], 1.0
        self.model.codebook.copy_(self.sums / self.usage.clamp(min=1e-3)[:, None])


def crops(painted: np.ndarray, recipe: TokenizerRecipe, generator: torch.Generator) -> torch.Tensor:
    """float32 [batch, 3, crop, crop] at random whole-patch places of random pictures."""
    def draw(n: int) -> list[int]:
        return torch.randint(n, (recipe.batch,), generator=generator).tolist()
    c, places = recipe.crop, (SIZE - recipe.crop) // PATCH + 1
    corners = zip(draw(len(painted)), draw(places), draw(places), strict=True)
    return to_signed(np.stack([
        painted[i, y * PATCH : y * PATCH + c, x * PATCH : x * PATCH + c] for i, y, x in corners]))


def loss_of(model: VQTokenizer, batch: torch.Tensor, book: Codebook | None, revive: bool,
            generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared error, and what to add to it once the codebook is in use: the commitment term."""
    z = model.encoder(batch)
    if book is None:
        return F.mse_loss(model.decoder(z), batch), z.new_zeros(())
    tokens = model.nearest(z)
    quantised = model.quantised(tokens)
    commit = F.mse_loss(z, quantised.detach())
    error = F.mse_loss(model.decoder(z + (quantised - z).detach()), batch)
    book.follow(z.detach().permute(0, 2, 3, 1).flatten(0, 2), tokens.flatten(), revive, generator)
    return error, 0.1 * commit


def train(recipe: TokenizerRecipe) -> dict:
    """Train, save `tokenizer.safetensors` in recipe.out and return the held-out metrics."""
    torch.manual_seed(recipe.seed)
    generator = torch.Generator().manual_seed(recipe.seed)
    painted = pictures(recipe.pictures, recipe.out)
    model = VQTokenizer().to(recipe.device)
    model.codebook.requires_grad_(False)
    book = Codebook(model)
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizers = remember_rates([torch.optim.AdamW(weights, recipe.rate, weight_decay=0.0)])
    checkpoint = Checkpoint(recipe.out / "tokenizer.ckpt", model, optimizers, generator)
    free = recipe.steps // 8
    recent: deque[float] = deque(maxlen=100)
    for step in training_steps("tokenizer", recipe.steps, checkpoint,
                               report=lambda: f"psnr {psnr_of(mean(recent)):.2f}"):
        batch = crops(painted, recipe, generator).to(recipe.device)
        if step == free:
            book.start(latents_of(model, painted, recipe, generator), generator)
        set_rate(optimizers, cosine(step, recipe.steps, warmup=100))
        error, commitment = loss_of(model, batch, book if step >= free else None,
                                    step < 0.8 * recipe.steps, generator)
        descend(error + commitment, optimizers, weights)
        recent.append(error.item())
    save(model, recipe.out / "tokenizer.safetensors")
    return held_out_metrics(model.cpu(), recipe.held_out)


@torch.no_grad()
def latents_of(model: VQTokenizer, painted: np.ndarray, recipe: TokenizerRecipe,
               generator: torch.Generator) -> torch.Tensor:
    """[n, dim] latents of enough crops to start the codebook from."""
    batches = (crops(painted, recipe, generator).to(recipe.device) for _ in range(8))
    return torch.cat([model.encoder(b).permute(0, 2, 3, 1).flatten(0, 2) for b in batches])


def save(model: VQTokenizer, path: Path) -> None:
    names = [n for n, _ in model.named_parameters()]
    state = model.state_dict()
    write_safetensors({n: state[n].float().cpu().contiguous() for n in names}, path,
                      {"format": FORMAT})


def psnr_of(mse_signed: float) -> float:
    """dB, from a mean squared error on -1..1 pixels (peak-to-peak 2)."""
    return 10 * math.log10(4 / max(mse_signed, 1e-12))


@torch.no_grad()
def held_out_metrics(model: VQTokenizer, count: int) -> dict:
    """PSNR in dB (of the mean error), share of claims that survive, codes in use."""
    errors: list[float] = []
    kept: list[bool] = []
    used: set[int] = set()
    for seed in range(HELD_OUT, HELD_OUT + count):
        picture, caption, _ = postcard(seed)
        signed = to_signed(picture[None])
        tokens = model.encode(signed)
        rebuilt = model.decode(tokens).clamp(-1, 1)
        errors.append(F.mse_loss(rebuilt, signed).item())
        pixels = ((rebuilt[0].permute(1, 2, 0) + 1) * 127.5).round().byte().numpy()
        kept.extend(check(pixels, claims(caption)))
        used.update(tokens.flatten().tolist())
    return {"stage": "tokenizer", "held_out": count, "psnr_db": psnr_of(sum(errors) / count),
            "claims_kept": sum(kept) / len(kept), "codes_used": len(used)}
