"""Stage 2: the backbone, next-token prediction over pictures given captions.

Captions are drawn anew at every use; one in ten is dropped, so that the branch without text exists
for guidance. Matrices inside the decoder learn by Muon, everything else by AdamW.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import torch
import torch.nn.functional as F

from ..backbones import postcard
from ..backbones.postcard import PROMPT_LENGTH, Postcard
from ..backbones.vq import VQTokenizer
from ..files import read_safetensors, written_whole
from ..postcards import WORDS
from . import tokenizer as tokenizer_stage
from .common import Checkpoint, cosine, remember_rates, set_rate, training_steps
from .data import HELD_OUT, fresh_caption, pictures, to_signed


@dataclass(frozen=True)
class BackboneRecipe:
    out: Path
    steps: int = 1500
    pictures: int = 16000
    batch: int = 16
    rate: float = 3e-3
    drop_text: float = 0.1
    held_out: int = 128
    seed: int = 0
    device: str = "cpu"


def load_codec(folder: Path) -> VQTokenizer:
    """The tokenizer that stage 1 left in `folder`."""
    tensors, _ = read_safetensors(Path(folder) / "tokenizer.safetensors", tokenizer_stage.FORMAT)
    codec = VQTokenizer(*tensors["codebook"].shape)
    codec.load_state_dict(tensors)
    return codec.requires_grad_(False).eval()


@torch.no_grad()
def tokenised(codec: VQTokenizer, painted: np.ndarray, path: Path) -> torch.Tensor:
    """int64 [n, R*C] tokens of painted pictures, kept in `path`."""
    if not path.exists():
        rows = [codec.encode(to_signed(painted[a : a + 64])).flatten(1).to(torch.int16).numpy()
                for a in range(0, len(painted), 64)]
        with written_whole(path) as temporary, open(temporary, "wb") as file:
            np.save(file, np.concatenate(rows))
    return torch.from_numpy(np.load(path)).long()


def hidden_states(backbone: Postcard, prompts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """h_pre [B, R*C, d] of teacher-forced pictures: element c predicts cell c.

    prompts: [B, P] ids; tokens: [B, R*C].
    """
    x = torch.cat((backbone.embed_prompt(prompts), backbone.embed(tokens[:, :-1])), dim=1)
    return backbone(x)[:, PROMPT_LENGTH - 1 :]


def prompt_batch(backbone: Postcard, captions: list[str], drop: torch.Tensor) -> torch.Tensor:
    """[B, P] ids; captions whose `drop` is True lose their text."""
    ids = [backbone.tokenize(caption) for caption in captions]
    return torch.tensor([backbone.unconditional(row) if gone else row
                         for row, gone in zip(ids, drop.tolist(), strict=True)])


def muon_and_adamw(backbone: Postcard, rate: float) -> list[torch.optim.Optimizer]:
    trained = {n: p for n, p in backbone.named_parameters() if p.requires_grad}
    matrices = [p for n, p in trained.items() if n.startswith("decoder") and p.dim() == 2]
    others = [p for n, p in trained.items() if not (n.startswith("decoder") and p.dim() == 2)]
    return remember_rates([
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)])


def loss_of(backbone: Postcard, prompts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy, nats a token."""
    logits = backbone.logits(hidden_states(backbone, prompts, tokens))
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def train(recipe: BackboneRecipe) -> dict:
    """Train, save `backbone.safetensors` in recipe.out and return the held-out metrics."""
    generator = torch.Generator().manual_seed(recipe.seed)
    codec = load_codec(recipe.out)
    tokens = tokenised(codec, pictures(recipe.pictures, recipe.out),
                       recipe.out / f"tokens-0-{recipe.pictures}.npy")
    backbone = Postcard(WORDS, len(codec.codebook))
    backbone.initialise(generator)
    backbone.picture_codec.load_state_dict(codec.state_dict())
    backbone.picture_codec.requires_grad_(False)
    backbone.to(recipe.device)
    optimizers = muon_and_adamw(backbone, recipe.rate)
    checkpoint = Checkpoint(recipe.out / "backbone.ckpt", backbone, optimizers, generator)
    recent = deque(maxlen=100)
    for step in training_steps("backbone", recipe.steps, checkpoint, every=100,
                               report=lambda: f"nll {mean(recent):.3f}"):
        pick = torch.randint(len(tokens), (recipe.batch,), generator=generator)
        drop = torch.rand(recipe.batch, generator=generator) < recipe.drop_text
        captions = [fresh_caption(seed, step) for seed in pick.tolist()]
        set_rate(optimizers, cosine(step, recipe.steps, warmup=50))
        backbone.refresh_tables()
        loss = loss_of(backbone, prompt_batch(backbone, captions, drop).to(recipe.device),
                       tokens[pick].to(recipe.device))
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(backbone.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        recent.append(loss.item())
    postcard.save(backbone, recipe.out / "backbone.safetensors")
    return {"stage": "backbone", "steps": recipe.steps, "pictures": recipe.pictures,
            "parameters": sum(p.numel() for n, p in backbone.named_parameters()
                              if not n.startswith("picture_codec")),
            "train_nll": mean(recent),
            **held_out_metrics(backbone, codec, recipe.out, recipe.held_out)}


@torch.no_grad()
def held_out_metrics(backbone: Postcard, codec: VQTokenizer, folder: Path,
                     count: int) -> dict:
    """NLL in nats a token on postcards never trained on, with their captions."""
    painted = pictures(count, folder, HELD_OUT)
    tokens = tokenised(codec, painted, folder / f"tokens-held-out-{count}.npy")
    backbone.refresh_tables()
    losses = []
    for a in range(0, count, 32):
        captions = [fresh_caption(HELD_OUT + i, 0) for i in range(a, min(a + 32, count))]
        prompts = prompt_batch(backbone, captions, torch.zeros(len(captions), dtype=torch.bool))
        device = backbone.device
        losses.append(loss_of(backbone, prompts.to(device), tokens[a : a + 32].to(device)).item())
    return {"held_out_pictures": count, "held_out_nll": sum(losses) / len(losses)}
