"""Trains draft heads by smooth L1 to the frozen backbone's hidden states (stage 4; SSD Eq. 3).

A tenth of the prompts is dropped, so that the branch without text drafts as well. The recipe offers
other losses and the other predictors of the paper's Table 3. With `kind` "row" the row drafter
learns instead (train/row.py); each kind leaves the other's weights in the file unchanged. Several
processes share every batch (train/processes.py) and reach the same weights as a single process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import nn

from ..backbones.base import Backbone
from ..engine.heads import (
    DraftHeads,
    HeadFeatures,
    heads_to_start_from,
    save_heads,
    stored_heads,
)
from ..errors import SSDError
from ..weights.find import HEADS_FILE, find_path
from ..weights.load import auto_dtype, load_backbone, pick_device
from ..weights.quantize import unquantise_image_head
from . import draft_heads, row
from .checkpoints import Checkpoint, training_steps
from .common import Say, cosine, remember_rates, set_rate, silent, take_step
from .head_quality import acceptance, mean_size, variance
from .heads_recipe import HeadsRecipe, check, cost, require_room, steps_of
from .picture_files import KEPT_PROMPTS, Pictures, load_pictures
from .processes import Team, joined

LARGE = 512  # hidden size from which the paper's rate suits
Learn = Callable[[Pictures, list[bool]], float]  # adds a batch's gradients, returns its loss


@dataclass(frozen=True)
class Run:
    """A training run that is ready to start."""

    recipe: HeadsRecipe
    backbone: Backbone
    heads: DraftHeads
    shown: Pictures
    held_out: Pictures
    learn: Learn
    summary: dict  # for the file
    checkpoint: Checkpoint
    start: int
    steps: int

    @property
    def team(self) -> Team:
        return self.checkpoint.team


def train(recipe: HeadsRecipe, say: Say = silent) -> dict:
    """Train, save the recipe's file and return held-out acceptance by offset."""
    with joined(recipe.device) as team:
        with team.agreeing() as facts:
            run = prepare(recipe, team, say)
            facts |= {"the backbone": run.backbone.sha256, "the number of pictures":
                      len(run.shown) + len(run.held_out), "the step to go on from": run.start}
        descend(run)
        return save_and_measure(run)


def prepare(recipe: HeadsRecipe, team: Team, say: Say) -> Run:
    """Load and check everything; SSDError if something does not fit."""
    check(recipe)
    if recipe.batch < team.size:
        raise SSDError(f"batch {recipe.batch}: {team.size} processes need a picture each; raise "
                       "--batch")
    folder = recipe.file.parent
    backbone = load_teacher(recipe, team)
    backbone.cache_prompts(Path(recipe.data or folder) / KEPT_PROMPTS)
    drawn = load_pictures(Path(recipe.data or folder), backbone)
    backbone = backbone.resized(drawn.size)
    available = len(drawn) - min(recipe.held_out, len(drawn) // 4)
    shown = min(recipe.pictures or available, available)
    held_out = drawn.pick(range(available, len(drawn)))
    generator, steps = torch.Generator().manual_seed(recipe.seed), steps_of(recipe, shown)
    recipe = replace(recipe, rate=recipe.rate or (1e-4 if backbone.hidden_size >= LARGE else 1e-3))
    heads = start(recipe, backbone, generator)
    checkpoint = checkpoint_of(recipe, heads, generator, team)
    parameters = sum(weight.numel() for weight in checkpoint.model.parameters())
    say(cost(recipe, heads, parameters, backbone, shown, steps))
    if first := checkpoint.resume():
        say(f"{checkpoint.path}: goes on from step {first:,}; processes then {checkpoint.wrote}, "
            f"now {team.size}")
    learn, summary = learner(recipe, heads, backbone, drawn, checkpoint,
                             {"pictures": shown, "steps": steps})
    return Run(recipe, backbone, heads, drawn.pick(range(shown)), held_out, learn, summary,
               checkpoint, first, steps)


def load_teacher(recipe: HeadsRecipe, team: Team) -> Backbone:
    """Load the teacher backbone; auto does not choose int8, which is for drawing."""
    source, dtype = recipe.backbone or recipe.file.parent, recipe.dtype
    if dtype == "auto" and auto_dtype(source, pick_device(team.device)) == "int8":
        dtype = "fp32"
    backbone = load_backbone(source, team.device, dtype)
    unquantise_image_head(backbone)
    return backbone


def learner(recipe: HeadsRecipe, heads: DraftHeads, backbone: Backbone, drawn: Pictures,
            checkpoint: Checkpoint, counts: dict[str, int]) -> tuple[Learn, dict]:
    """Return the function that learns from a batch, and the file's metadata."""
    if recipe.kind == "row":
        learn = partial(row.learn, heads, backbone, generator=checkpoint.generator,
                        team=checkpoint.team)
        return learn, {**training_metadata(heads), **{f"row_{key}": n for key, n in counts.items()}}
    scale = mean_size(backbone, drawn.pick(range(min(8, len(drawn)))), checkpoint.team)
    measure = partial(draft_heads.distance, loss=recipe.loss, scale=scale, heads=heads,
                      backbone=backbone)
    learn = partial(draft_heads.learn, heads, backbone, measure=measure, team=checkpoint.team)
    return learn, {"scale": scale, "loss": recipe.loss, **counts}


def training_metadata(heads: DraftHeads) -> dict[str, str]:
    """Return the metadata of an earlier run of `train heads`."""
    return {key: heads.metadata[key] for key in ("scale", "loss", "pictures", "steps")
            if key in heads.metadata}


def start(recipe: HeadsRecipe, backbone: Backbone, generator: torch.Generator) -> DraftHeads:
    """Return heads or a row drafter to train, in float32, with the other part from the file."""
    earlier = earlier_heads(recipe, backbone)
    if recipe.kind == "row":
        heads = earlier or DraftHeads(backbone.hidden_size, 0, 0)
        heads.row = row.fresh_drafter(backbone.hidden_size, generator)
    else:
        require_room(recipe, backbone.grid)
        heads = DraftHeads(backbone.hidden_size, recipe.k_h, recipe.k_v,
                           space=HeadFeatures(recipe.source, recipe.target))
        heads.row = earlier.row if earlier else None
        for _, head, _ in draft_heads.offsets(heads, backbone.grid.columns):
            head.initialise(generator)
    if recipe.start_from:
        copy_weights(recipe, backbone, heads)
    return heads.to(backbone.device)


def copy_weights(recipe: HeadsRecipe, backbone: Backbone, heads: DraftHeads) -> None:
    """Copy the part that learns from the heads to start from; SSDError if they lack it."""
    source = heads_to_start_from(find_path(recipe.start_from, HEADS_FILE), backbone)
    goal, found = trained_part(heads, recipe.kind), trained_part(source, recipe.kind)
    same_space = recipe.kind == "row" or (heads.space.source, heads.space.target) == (
        source.space.source, source.space.target)
    if goal is None or found is None or not same_space or shapes_of(goal) != shapes_of(found):
        raise SSDError(f"start_from {recipe.start_from}: has no {recipe.kind} of this kind and "
                       "number; give the flags with which they were trained, or leave it out")
    goal.load_state_dict(found.state_dict())


def shapes_of(model: nn.Module) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in model.state_dict().items()}


def trained_part(heads: DraftHeads, kind: str) -> nn.Module | None:
    """Return what a run of this kind trains; None for a row drafter that is not there."""
    return heads.row if kind == "row" else nn.ModuleList((heads.horizontal, heads.vertical))


def earlier_heads(recipe: HeadsRecipe, backbone: Backbone) -> DraftHeads | None:
    """Read the heads of an earlier run for this backbone from the recipe's file, in float32.

    New draft heads replace a file of another backbone; a row drafter raises SSDError for it.
    """
    if not recipe.file.exists():
        return None
    with suppress(SSDError) if recipe.kind == "heads" else nullcontext():
        return stored_heads(recipe.file, backbone).float()
    return None


def checkpoint_of(recipe: HeadsRecipe, heads: DraftHeads, generator: torch.Generator,
                  team: Team) -> Checkpoint:
    """Return a checkpoint of the part that this run trains, and of its optimizer."""
    model = trained_part(heads, recipe.kind)
    assert model is not None
    model.requires_grad_()
    optimizers = remember_rates([torch.optim.AdamW(model.parameters(), recipe.rate,
                                                   betas=(0.9, 0.95), weight_decay=0.01)])
    suffix = ".row.ckpt" if recipe.kind == "row" else ".ckpt"
    return Checkpoint(recipe.file.with_suffix(suffix), model, optimizers, generator, team)


def descend(run: Run) -> None:
    """Run all steps. Every process draws the same batches and computes its share of each."""
    recipe, checkpoint = run.recipe, run.checkpoint
    weights, generator = list(checkpoint.model.parameters()), checkpoint.generator
    for step in training_steps("heads", run.steps, checkpoint, start=run.start,
                               report=lambda: f"loss {checkpoint.mean:.3f}"):
        pick = torch.randint(len(run.shown), (recipe.batch,), generator=generator)
        drop = torch.rand(recipe.batch, generator=generator) < recipe.drop_text
        set_rate(checkpoint.optimizers, cosine(step, run.steps, warmup=20, floor=recipe.floor))
        loss = run.learn(run.shown.pick(pick.tolist()), drop.tolist())
        checkpoint.recent.append(run.team.total(loss, weights[0].device))
        run.team.sum_gradients(weights)
        take_step(checkpoint.optimizers, weights)


def save_and_measure(run: Run) -> dict:
    """Save the file and return its measurements."""
    recipe, backbone, heads = run.recipe, run.backbone, run.heads.requires_grad_(False).eval()
    if recipe.target == "e" and len(run.held_out):
        heads.space = replace(heads.space, variance=variance(heads, backbone, run.held_out,
                                                          run.team))
    if run.team.first:
        save_heads(heads, recipe.file, backbone, run.summary)
    last = {"last_loss": run.checkpoint.mean} if run.checkpoint.recent else {}
    return {"stage": "heads", "kind": recipe.kind, "processes": run.team.size, **last,
            **asdict(heads.space), **run.summary,
            **acceptance(heads, backbone, run.held_out, run.team)}
