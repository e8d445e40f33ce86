"""Stage 4: draft heads, by smooth L1 to the frozen backbone's own hidden states (SSD Eq. 3).

All heads learn from the same teacher pass but are independent of one another. A tenth of the
captions is dropped, so that the branch without text drafts as well.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import torch
import torch.nn.functional as F

from ..backbones.base import Backbone
from ..heads import HORIZONTAL, VERTICAL, DraftHeads, save_heads
from ..load import load_backbone
from ..sampling import guide
from .backbone import hidden_states
from .common import Checkpoint, cosine, remember_rates, set_rate, training_steps
from .data import prompt_batch
from .self_distill import load_pictures


@dataclass(frozen=True)
class HeadsRecipe:
    """The paper's Table 8 but for the rate, which suits a small hidden size (1e-4 at d = 4096)."""

    out: Path
    backbone: str = ""
    k_h: int = 5
    k_v: int = 3
    epochs: int = 3
    batch: int = 16
    rate: float = 1e-3
    floor: float = 0.1
    drop_text: float = 0.1
    held_out: int = 64
    seed: int = 0
    device: str = "auto"


def offsets(heads: DraftHeads, columns: int):
    """(name, head, raster distance) of every head."""
    for d, head in enumerate(heads.horizontal, 1):
        yield f"{HORIZONTAL}+{d}", head, d
    for d, head in enumerate(heads.vertical, 1):
        yield f"{VERTICAL}+{d}", head, d * columns


def loss_of(heads: DraftHeads, hidden: torch.Tensor, embedding: torch.Tensor,
            columns: int) -> torch.Tensor:
    """Eq. 3 summed over heads; hidden, embedding [B, R*C, d] of the same cells."""
    return sum(F.smooth_l1_loss(head(hidden[:, :-step], embedding[:, :-step]), hidden[:, step:])
               for _, head, step in offsets(heads, columns))


@torch.no_grad()
def teacher(backbone: Backbone, prompts: torch.Tensor, tokens: torch.Tensor):
    """h_pre and e [B, R*C, d] of pictures with these prompts."""
    prompts, tokens = prompts.to(backbone.device), tokens.to(backbone.device)
    return hidden_states(backbone, prompts, tokens), backbone.embed(tokens)


def train(recipe: HeadsRecipe) -> dict:
    """Train, save `heads.safetensors` in recipe.out and return held-out acceptance by offset."""
    backbone = load_backbone(recipe.backbone or recipe.out, recipe.device)
    tokens, captions = load_pictures(recipe.out, backbone)
    learn = len(tokens) - min(recipe.held_out, len(tokens) // 4)
    generator = torch.Generator().manual_seed(recipe.seed)
    heads = DraftHeads(backbone.hidden_size, recipe.k_h, recipe.k_v)
    for _, head, _ in offsets(heads, backbone.grid.columns):
        head.initialise(generator)
    heads.to(backbone.device)
    optimizers = remember_rates([torch.optim.AdamW(
        heads.parameters(), recipe.rate, betas=(0.9, 0.95), weight_decay=0.01)])
    checkpoint = Checkpoint(recipe.out / "heads.ckpt", heads, optimizers, generator)
    steps, recent, scale = recipe.epochs * learn // recipe.batch, deque(maxlen=100), 0.0
    for step in training_steps("heads", steps, checkpoint,
                               report=lambda: f"loss {mean(recent):.3f}"):
        pick = torch.randint(learn, (recipe.batch,), generator=generator)
        drop = torch.rand(recipe.batch, generator=generator) < recipe.drop_text
        prompts = prompt_batch(backbone, [captions[i] for i in pick.tolist()], drop)
        hidden, embedding = teacher(backbone, prompts, tokens[pick])
        set_rate(optimizers, cosine(step, steps, warmup=20, floor=recipe.floor))
        loss = loss_of(heads, hidden, embedding, backbone.grid.columns)
        optimizers[0].zero_grad(set_to_none=True)
        loss.backward()
        optimizers[0].step()
        scale = hidden.abs().mean().item()
        recent.append(loss.item())
    summary = {"scale": scale, "loss": "smooth_l1", "pictures": learn, "steps": steps}
    save_heads(heads, recipe.out / "heads.safetensors", backbone, summary)
    return {"stage": "heads", **summary, "train_loss": mean(recent),
            "acceptance": acceptance(heads.eval(), backbone, tokens[learn:], captions[learn:])}


@torch.no_grad()
def acceptance(heads: DraftHeads, backbone: Backbone, tokens: torch.Tensor,
               captions: list[str], batch: int = 8) -> dict[str, float]:
    """Mean over cells of sum(min(p, q)), the chance that a sampled draft stands, by offset."""
    sums: dict[str, float] = {}
    parts = range(0, len(tokens), batch)
    for a in parts:
        part = tokens[a : a + batch]
        text = torch.zeros(len(part), dtype=torch.bool)
        prompts = torch.cat([prompt_batch(backbone, captions[a : a + batch], drop)
                             for drop in (text, ~text)])
        hidden, embedding = teacher(backbone, prompts, part.repeat(2, 1))
        target_probs = guided_probs(backbone, hidden)
        for name, head, step in offsets(heads, backbone.grid.columns):
            draft_probs = guided_probs(backbone, head(hidden[:, :-step], embedding[:, :-step]))
            overlap = torch.minimum(draft_probs, target_probs[:, step:]).sum(-1).mean().item()
            sums[name] = sums.get(name, 0.0) + overlap / len(parts)
    return sums


def guided_probs(backbone: Backbone, hidden: torch.Tensor) -> torch.Tensor:
    """h [2B, n, d] of both branches -> probabilities [B, n, V] under the preset's guidance."""
    return guide(backbone.logits(hidden), backbone.preset.cfg).softmax(-1)
