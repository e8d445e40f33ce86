"""Stage 4: draft heads, by smooth L1 to the frozen backbone's own hidden states (SSD Eq. 3).

All heads learn from the same teacher pass but are independent of one another. A tenth of the
captions is dropped, so that the branch without text drafts as well. Other losses and the other
predictors of the paper's Table 3 are choices of the recipe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev

import torch
import torch.nn.functional as F

from ..backbones.base import Backbone
from ..errors import SSDError
from ..heads import HORIZONTAL, VERTICAL, DraftHeads, Space, save_heads
from ..load import load_backbone
from ..sampling import guide
from .backbone import hidden_states
from .common import (
    Checkpoint,
    cosine,
    descend,
    mixed_precision,
    remember_rates,
    set_rate,
    training_steps,
)
from .data import prompt_batch
from .self_distill import load_pictures

LOSSES = ("smooth_l1", "scaled", "kl", "scaled+kl")


@dataclass(frozen=True)
class HeadsRecipe:
    """The paper's Table 8 but for the rate, which suits a small hidden size (1e-4 at d = 4096).

    source, target: the predictor (Space). loss: smooth_l1 is Eq. 3; scaled divides the states by
    their mean size first; kl compares distributions. pictures 0 takes all that were drawn.
    """

    out: Path
    backbone: str = ""
    drawn: str = ""
    k_h: int = 5
    k_v: int = 3
    source: str = "h_pre+e"
    target: str = "h_pre"
    loss: str = "smooth_l1"
    pictures: int = 0
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


def distance(estimate: torch.Tensor, goal: torch.Tensor, loss: str, scale: float, heads: DraftHeads,
             backbone: Backbone) -> torch.Tensor:
    """One head's loss, estimate and goal [B, n, d]; `loss` names what the sum is made of."""
    total = estimate.new_zeros(())
    for part in loss.split("+"):
        if part == "kl":
            target_probs = heads.space.logits(backbone, goal).softmax(-1)
            draft = heads.space.logits(backbone, estimate).log_softmax(-1)
            total = total + F.kl_div(draft, target_probs, reduction="none").sum(-1).mean()
        else:
            by = scale if part == "scaled" else 1.0
            total = total + F.smooth_l1_loss(estimate / by, goal / by)
    return total


def loss_of(heads: DraftHeads, hidden: torch.Tensor, embedding: torch.Tensor, columns: int,
            distance: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Eq. 3 summed over heads; hidden, embedding [B, R*C, d] of the same cells."""
    goal = heads.space.goal(hidden, embedding)
    return sum(distance(head(hidden[:, :-step], embedding[:, :-step]).float(), goal[:, step:])
               for _, head, step in offsets(heads, columns))


@torch.no_grad()
def teacher(backbone: Backbone, prompts: torch.Tensor, tokens: torch.Tensor):
    """h_pre and e [B, R*C, d] of pictures with these prompts."""
    prompts, tokens = prompts.to(backbone.device), tokens.to(backbone.device)
    return hidden_states(backbone, prompts, tokens), backbone.embed(tokens)


def start(recipe: HeadsRecipe, backbone: Backbone, generator: torch.Generator) -> DraftHeads:
    """Fresh heads; SSDError for a loss or a predictor that does not exist."""
    if recipe.loss not in LOSSES:
        raise SSDError(f"loss {recipe.loss!r}: choose one of {', '.join(LOSSES)}")
    heads = DraftHeads(backbone.hidden_size, recipe.k_h, recipe.k_v,
                       space=Space(recipe.source, recipe.target))
    for _, head, _ in offsets(heads, backbone.grid.columns):
        head.initialise(generator)
    return heads.to(backbone.device)


def train(recipe: HeadsRecipe) -> dict:
    """Train, save `heads.safetensors` in recipe.out and return held-out acceptance by offset."""
    backbone = load_backbone(recipe.backbone or recipe.out, recipe.device)
    tokens, captions = load_pictures(Path(recipe.drawn or recipe.out), backbone)
    drawn = len(tokens) - min(recipe.held_out, len(tokens) // 4)
    learn = min(recipe.pictures or drawn, drawn)
    generator = torch.Generator().manual_seed(recipe.seed)
    heads, columns = start(recipe, backbone, generator), backbone.grid.columns
    optimizers = remember_rates([torch.optim.AdamW(
        heads.parameters(), recipe.rate, betas=(0.9, 0.95), weight_decay=0.01)])
    checkpoint = Checkpoint(recipe.out / "heads.ckpt", heads, optimizers, generator)
    steps, recent = recipe.epochs * learn // recipe.batch, deque(maxlen=100)
    weights, precision = list(heads.parameters()), partial(mixed_precision, str(backbone.device))
    scale = mean_size(backbone, tokens[:8], captions[:8])
    measure = partial(distance, loss=recipe.loss, scale=scale, heads=heads, backbone=backbone)
    for step in training_steps("heads", steps, checkpoint,
                               report=lambda: f"loss {mean(recent):.3f}"):
        pick = torch.randint(learn, (recipe.batch,), generator=generator)
        drop = torch.rand(recipe.batch, generator=generator) < recipe.drop_text
        prompts = prompt_batch(backbone, [captions[i] for i in pick.tolist()], drop)
        set_rate(optimizers, cosine(step, steps, warmup=20, floor=recipe.floor))
        with precision():
            hidden, embedding = teacher(backbone, prompts, tokens[pick])
            loss = loss_of(heads, hidden, embedding, columns, measure)
        descend(loss, optimizers, weights)
        recent.append(loss.item())
    held_out = tokens[drawn:], captions[drawn:]
    if recipe.target == "e" and len(held_out[0]):
        heads.space = replace(heads.space, variance=variance(heads.eval(), backbone, *held_out))
    summary = {"scale": scale, "loss": recipe.loss, "pictures": learn, "steps": steps}
    save_heads(heads, recipe.out / "heads.safetensors", backbone, summary)
    return {"stage": "heads", **asdict(heads.space), **summary,
            **acceptance(heads.eval(), backbone, *held_out)}


def teacher_parts(backbone: Backbone, tokens: torch.Tensor, captions: list[str],
                  batch: int = 8) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """h_pre, e [2B, R*C, d] of held-out pictures with their captions, then without."""
    for a in range(0, len(tokens), batch):
        part = tokens[a : a + batch]
        text = torch.zeros(len(part), dtype=torch.bool)
        prompts = torch.cat([prompt_batch(backbone, captions[a : a + batch], drop)
                             for drop in (text, ~text)])
        yield teacher(backbone, prompts, part.repeat(2, 1))


@torch.no_grad()
def mean_size(backbone: Backbone, tokens: torch.Tensor, captions: list[str]) -> float:
    """Mean |h_pre| over a few pictures: the scale that the heads' files tell."""
    return mean(hidden.abs().mean().item()
                for hidden, _ in teacher_parts(backbone, tokens, captions))


@torch.no_grad()
def variance(heads: DraftHeads, backbone: Backbone, tokens: torch.Tensor,
             captions: list[str]) -> float:
    """Mean squared error a number of the last head, on held-out pictures."""
    *_, (_, head, step) = offsets(heads, backbone.grid.columns)
    errors = []
    for hidden, embedding in teacher_parts(backbone, tokens, captions):
        goal = heads.space.goal(hidden, embedding)[:, step:]
        errors.append(F.mse_loss(head(hidden[:, :-step], embedding[:, :-step]), goal).item())
    return mean(errors)


@torch.no_grad()
def acceptance(heads: DraftHeads, backbone: Backbone, tokens: torch.Tensor,
               captions: list[str]) -> dict[str, dict[str, float]]:
    """Mean over cells of sum(min(p, q)), the chance that a sampled draft stands, by offset.

    `acceptance_se`: standard errors over pictures.
    """
    each: dict[str, list[float]] = {}
    for hidden, embedding in teacher_parts(backbone, tokens, captions):
        target_probs = guided_probs(backbone, backbone.logits(hidden))
        for name, head, step in offsets(heads, backbone.grid.columns):
            estimate = head(hidden[:, :-step], embedding[:, :-step])
            draft_probs = guided_probs(backbone, heads.space.logits(backbone, estimate))
            overlap = torch.minimum(draft_probs, target_probs[:, step:]).sum(-1).mean(-1)
            each[name] = each.get(name, []) + overlap.tolist()
    return {"acceptance": {name: mean(values) for name, values in each.items()},
            "acceptance_se": {name: stdev(values) / len(values)**0.5 if len(values) > 1 else 0.0
                              for name, values in each.items()}}


def guided_probs(backbone: Backbone, logits: torch.Tensor) -> torch.Tensor:
    """Logits [2B, n, V] of both branches -> probabilities [B, n, V] at the preset's guidance."""
    return guide(logits, backbone.preset.cfg).softmax(-1)
