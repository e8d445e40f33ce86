"""Draft heads, by smooth L1 to the frozen backbone's own hidden states (stage 4; SSD Eq. 3).

All heads learn from the same teacher pass but are independent of one another. A tenth of the
prompts is dropped, so that the branch without text drafts as well. States are computed from tokens
batch by batch and never kept. Other losses and the other predictors of the paper's Table 3 are
choices of the recipe. With `kind` "row" the row drafter learns instead (train/row.py); each kind
leaves in the file what the other put there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev

import torch
import torch.nn.functional as F
from torch import nn

from ..backbones.base import Backbone
from ..engine.heads import HORIZONTAL, VERTICAL, DraftHeads, Space, save_heads, stored_heads
from ..errors import SSDError
from ..model.grid import Grid
from ..model.sampling import guide
from ..weights.load import HEADS_FILE, load_backbone
from . import row
from .common import (
    REQUIRED,
    Checkpoint,
    Say,
    cosine,
    gigabytes,
    mixed_precision,
    option,
    remember_rates,
    set_rate,
    silent,
    take_step,
    training_steps,
)
from .drawn import Pictures, load_pictures
from .teacher import branch, teach

KINDS = ("heads", "row")
LOSSES = ("smooth_l1", "scaled", "kl", "scaled+kl")
CELLS_AT_ONCE = 16 * 576  # of all pictures in a teacher pass; larger batches go in parts
NUMBERS_AT_ONCE = 1 << 27  # of a distribution over codes that is measured
LARGE = 512  # hidden size from which the paper's rate suits
DISK_BYTES, CHECKPOINT_BYTES, LEARNING_BYTES = 2, 12, 16  # of a parameter


@dataclass(frozen=True)
class HeadsRecipe:
    """The paper's Table 8, but for the rate of a small backbone and the batch of one device."""

    out: Path = option(REQUIRED, "Folder, or a file that ends with .safetensors.")
    backbone: str = option("", "Bundled name, file or folder. Default: --out.")
    data: str = option("", "Folder in which train self-distill drew. Default: --out.",
                       "--data", "--drawn")
    kind: str = option("heads", "heads: horizontal and vertical draft heads. row: the row drafter, "
                                "whose cells see their neighbours. Both fit in one file.")
    k_h: int = option(5, "Horizontal heads.")
    k_v: int = option(3, "Vertical heads.")
    source: str = option("h_pre+e", "What goes in: h_pre+e, h_pre, h_post+e, h_post, e.")
    target: str = option("h_pre", "What is guessed: h_pre, h_post, e.")
    loss: str = option("smooth_l1", "smooth_l1 (Eq. 3); scaled divides the states by their mean "
                                    "size first; kl compares distributions; scaled+kl.")
    pictures: int = option(0, "Learn from so many; 0: from all that were drawn.")
    epochs: int = option(3, "How often each picture is seen, on average.")
    batch: int = option(16, "Pictures of a step.")
    rate: float = option(0.0, "Peak learning rate. 0: 1e-3 for a small backbone, else 1e-4.")
    floor: float = option(0.1, "The last rate, as a share of the peak.")
    drop_text: float = option(0.1, "Share of pictures that are shown without their text.")
    held_out: int = option(64, "Pictures that only measure; at most a quarter.")
    seed: int = 0
    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    dtype: str = option("auto", "Of the backbone: auto, fp32, bf16, fp16, int8, int4. Heads "
                                "learn in fp32.")

    @property
    def file(self) -> Path:
        return self.out if self.out.suffix == ".safetensors" else self.out / HEADS_FILE


Measure = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Learn = Callable[[Pictures, list[bool]], float]  # adds a batch's gradients, returns its loss


def offsets(heads: DraftHeads, columns: int):
    """(name, head, distance in raster cells) of every head; row ends are no cells."""
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
            target_probs = code_logits(heads, backbone, goal).softmax(-1)
            draft = code_logits(heads, backbone, estimate).log_softmax(-1)
            total = total + F.kl_div(draft, target_probs, reduction="none").sum(-1).mean()
        else:
            by = scale if part == "scaled" else 1.0
            total = total + F.smooth_l1_loss(estimate / by, goal / by)
    return total


def code_logits(heads: DraftHeads, backbone: Backbone, estimate: torch.Tensor) -> torch.Tensor:
    """float32 [..., codes] from states of any dtype."""
    return heads.space.logits(backbone, estimate.to(backbone.dtype))


def check(recipe: HeadsRecipe) -> None:
    """SSDError for what makes no sense, before anything is loaded."""
    if recipe.loss not in LOSSES:
        raise SSDError(f"loss {recipe.loss!r}: choose one of {', '.join(LOSSES)}")
    if recipe.kind not in KINDS:
        raise SSDError(f"kind {recipe.kind!r}: choose one of {', '.join(KINDS)}")
    if recipe.kind == "row":
        require_defaults(recipe, "k_h", "k_v", "source", "target", "loss")
    Space(recipe.source, recipe.target)
    for name, least in (("k_h", 0), ("k_v", 0), ("pictures", 0), ("held_out", 0), ("rate", 0),
                        ("epochs", 1), ("batch", 1)):
        if getattr(recipe, name) < least:
            raise SSDError(f"{name} {getattr(recipe, name)}: must be at least {least}")
    if not recipe.k_h + recipe.k_v:
        raise SSDError("k_h and k_v are both 0: there is nothing to train")
    for name in ("floor", "drop_text"):
        if not 0 <= getattr(recipe, name) <= 1:
            raise SSDError(f"{name} {getattr(recipe, name)}: must lie in 0 .. 1")


def require_defaults(recipe: HeadsRecipe, *names: str) -> None:
    """SSDError for what was set though the row drafter has no such thing."""
    for field in fields(recipe):
        if field.name in names and getattr(recipe, field.name) != field.default:
            raise SSDError(f"{field.name} belongs to draft heads: leave it out with --kind row")


def require_room(recipe: HeadsRecipe, grid: Grid) -> None:
    """SSDError where a head would reach beyond the picture."""
    for name, most in (("k_h", grid.columns - 1), ("k_v", grid.rows - 1)):
        if getattr(recipe, name) > most:
            raise SSDError(f"{name} {getattr(recipe, name)}: pictures of {grid} have room for "
                           f"{most}")


def start(recipe: HeadsRecipe, backbone: Backbone, generator: torch.Generator) -> DraftHeads:
    """Fresh heads or a fresh row drafter in float32, beside what the recipe's file has already."""
    there = in_file(recipe, backbone)
    if recipe.kind == "row":
        heads = there or DraftHeads(backbone.hidden_size, 0, 0)
        heads.row = row.fresh_drafter(backbone.hidden_size, generator)
    else:
        require_room(recipe, backbone.grid)
        heads = DraftHeads(backbone.hidden_size, recipe.k_h, recipe.k_v,
                           space=Space(recipe.source, recipe.target))
        heads.row = there.row if there else None
        for _, head, _ in offsets(heads, backbone.grid.columns):
            head.initialise(generator)
    return heads.to(backbone.device)


def in_file(recipe: HeadsRecipe, backbone: Backbone) -> DraftHeads | None:
    """What an earlier run left in the recipe's file for this backbone, in float32.

    New draft heads replace a file of another backbone; a row drafter is not put into one.
    """
    if not recipe.file.exists():
        return None
    with suppress(SSDError) if recipe.kind == "heads" else nullcontext():
        return stored_heads(recipe.file, backbone).float()
    return None


def learning(recipe: HeadsRecipe, heads: DraftHeads) -> nn.Module:
    """The part that this run trains."""
    if recipe.kind == "row" and heads.row is not None:
        return heads.row.requires_grad_()
    return nn.ModuleList((heads.horizontal, heads.vertical)).requires_grad_()


def steps_of(recipe: HeadsRecipe, pictures: int) -> int:
    """Steps of all epochs; SSDError where the pictures do not make one."""
    if steps := recipe.epochs * pictures // recipe.batch:
        return steps
    raise SSDError(f"{pictures} pictures in {recipe.epochs} epochs are less than one batch of "
                   f"{recipe.batch}: draw more, or lower --batch")


def cost(recipe: HeadsRecipe, heads: DraftHeads, backbone: Backbone, pictures: int,
         steps: int) -> str:
    """One line on what training will take."""
    total = sum(weight.numel() for weight in learning(recipe, heads).parameters())
    number = heads.k_h + heads.k_v
    what = (f"a row drafter of {total / 1e6:.1f}M parameters" if recipe.kind == "row" else
            f"{number} heads of {total / number / 1e6:.1f}M parameters")
    cells = steps * recipe.batch * backbone.grid.cells
    return (f"{what} for {backbone.name}: "
            f"{steps:,} steps of {recipe.batch} pictures out of {pictures:,}, {cells:,} tokens "
            f"whose states the backbone computes again; about {gigabytes(LEARNING_BYTES * total)} "
            f"of memory beside the backbone, {gigabytes(DISK_BYTES * total)} in "
            f"{recipe.file.name} and {gigabytes(CHECKPOINT_BYTES * total)} in its checkpoint")


def train(recipe: HeadsRecipe, say: Say = silent) -> dict:
    """Train, save the recipe's file and return held-out acceptance by offset, or of rows."""
    check(recipe)
    folder = recipe.file.parent
    backbone = load_backbone(recipe.backbone or folder, recipe.device, recipe.dtype)
    drawn = load_pictures(Path(recipe.data or folder), backbone)
    backbone = backbone.resized(drawn.size)
    there = len(drawn) - min(recipe.held_out, len(drawn) // 4)
    shown, held_out = min(recipe.pictures or there, there), drawn.pick(range(there, len(drawn)))
    generator, steps = torch.Generator().manual_seed(recipe.seed), steps_of(recipe, shown)
    recipe = replace(recipe, rate=recipe.rate or (1e-4 if backbone.hidden_size >= LARGE else 1e-3))
    heads = start(recipe, backbone, generator)
    say(cost(recipe, heads, backbone, shown, steps))
    pictures = drawn.pick(range(shown))
    if recipe.kind == "row":
        descend(recipe, heads, pictures, steps, generator,
                partial(row.learn, heads, backbone, generator=generator))
        summary = {**training_of(heads), "row_pictures": shown, "row_steps": steps}
    else:
        scale = mean_size(backbone, drawn.pick(range(min(8, len(drawn)))))
        measure = partial(distance, loss=recipe.loss, scale=scale, heads=heads, backbone=backbone)
        descend(recipe, heads, pictures, steps, generator,
                partial(learn, heads, backbone, measure=measure))
        summary = {"scale": scale, "loss": recipe.loss, "pictures": shown, "steps": steps}
    heads.requires_grad_(False).eval()
    if recipe.target == "e" and len(held_out):
        heads.space = replace(heads.space, variance=variance(heads, backbone, held_out))
    save_heads(heads, recipe.file, backbone, summary)
    return {"stage": "heads", "kind": recipe.kind, **asdict(heads.space), **summary,
            **acceptance(heads, backbone, held_out)}


def training_of(heads: DraftHeads) -> dict[str, str]:
    """What an earlier run of `train heads` wrote about itself."""
    return {key: heads.metadata[key] for key in ("scale", "loss", "pictures", "steps")
            if key in heads.metadata}


def descend(recipe: HeadsRecipe, heads: DraftHeads, drawn: Pictures, steps: int,
            generator: torch.Generator, learn: Learn) -> None:
    """All steps, from where a checkpoint beside the file left off."""
    model = learning(recipe, heads)
    weights = list(model.parameters())
    optimizers = remember_rates([torch.optim.AdamW(weights, recipe.rate, betas=(0.9, 0.95),
                                                   weight_decay=0.01)])
    suffix = ".row.ckpt" if recipe.kind == "row" else ".ckpt"
    checkpoint = Checkpoint(recipe.file.with_suffix(suffix), model, optimizers, generator)
    recent: deque[float] = deque(maxlen=100)
    for step in training_steps("heads", steps, checkpoint,
                               report=lambda: f"loss {mean(recent):.3f}"):
        pick = torch.randint(len(drawn), (recipe.batch,), generator=generator)
        drop = torch.rand(recipe.batch, generator=generator) < recipe.drop_text
        set_rate(optimizers, cosine(step, steps, warmup=20, floor=recipe.floor))
        recent.append(learn(drawn.pick(pick.tolist()), drop.tolist()))
        take_step(optimizers, weights)


def learn(heads: DraftHeads, backbone: Backbone, batch: Pictures, drop: list[bool],
          measure: Measure) -> float:
    """Add a batch's gradients; its loss, Eq. 3 summed over heads.

    Pictures go in parts that fit, and every head lets go of its activations before the next.
    """
    total, without_text = 0.0, iter(drop)
    for part in batch.parts(most_at_once(backbone.grid)):
        prompts = [branch(backbone, ids.tolist(), next(without_text)) for ids in part.prompts]
        hidden, embedding = teach(backbone, prompts, part.tokens)
        goal = heads.space.goal(hidden, embedding)
        for _, head, step in offsets(heads, backbone.grid.columns):
            with mixed_precision(str(backbone.device)):
                estimate = head(hidden[:, :-step], embedding[:, :-step]).float()
                loss = measure(estimate, goal[:, step:]) * (len(part) / len(batch))
            loss.backward()
            total += loss.item()
    return total


def most_at_once(grid: Grid) -> int:
    """Pictures in one teacher pass."""
    return max(1, CELLS_AT_ONCE // grid.cells)


def teacher_parts(backbone: Backbone,
                  drawn: Pictures) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """h_pre, e [2B, R*C, d] of held-out pictures with their text, then without."""
    for part in drawn.parts(max(1, most_at_once(backbone.grid) // 2)):
        prompts = [branch(backbone, ids.tolist(), without_text)
                   for without_text in (False, True) for ids in part.prompts]
        yield teach(backbone, prompts, part.tokens.repeat(2, 1, 1))


@torch.no_grad()
def mean_size(backbone: Backbone, drawn: Pictures) -> float:
    """Mean |h_pre| over a few pictures: the scale that the heads' files tell."""
    return mean(hidden.abs().mean().item() for hidden, _ in teacher_parts(backbone, drawn))


@torch.no_grad()
def variance(heads: DraftHeads, backbone: Backbone, drawn: Pictures) -> float:
    """Mean squared error a number of the last head, on held-out pictures."""
    *_, (_, head, step) = offsets(heads, backbone.grid.columns)
    errors = []
    for hidden, embedding in teacher_parts(backbone, drawn):
        goal = heads.space.goal(hidden, embedding)[:, step:]
        errors.append(F.mse_loss(head(hidden[:, :-step], embedding[:, :-step]), goal).item())
    return mean(errors)


@torch.no_grad()
def acceptance(heads: DraftHeads, backbone: Backbone,
               drawn: Pictures) -> dict[str, dict[str, float]]:
    """Mean over cells of sum(min(p, q)), the chance that a sampled draft stands, by offset.

    `acceptance_se`: standard errors over pictures.
    """
    each: dict[str, list[float]] = {}
    for hidden, embedding in teacher_parts(backbone, drawn):
        for name, head, step in offsets(heads, backbone.grid.columns):
            estimate = head(hidden[:, :-step], embedding[:, :-step])
            overlap = overlaps(backbone, partial(code_logits, heads, backbone), estimate,
                               hidden[:, step:])
            each[name] = each.get(name, []) + overlap.tolist()
        if heads.row is not None:
            estimate = row.last_estimate(heads, backbone.grid, hidden, embedding)
            each["row"] = each.get("row", []) + overlaps(
                backbone, backbone.logits, estimate.to(backbone.dtype), hidden).tolist()
    return {"acceptance": {name: mean(values) for name, values in each.items()},
            "acceptance_se": {name: stdev(values) / len(values)**0.5 if len(values) > 1 else 0.0
                              for name, values in each.items()}}


def overlaps(backbone: Backbone, logits_of: Callable[[torch.Tensor], torch.Tensor],
             estimate: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """Mean over cells of sum(min(p, q)) [B], from estimates and exact states [2B, n, d].

    logits_of: the draft's logits from its estimates.
    """
    cells = max(1, NUMBERS_AT_ONCE // (len(hidden) * backbone.codes))
    shared = []
    for guess, exact in zip(estimate.split(cells, 1), hidden.split(cells, 1), strict=True):
        draft_probs = guided_probs(backbone, logits_of(guess))
        target_probs = guided_probs(backbone, backbone.logits(exact.to(backbone.dtype)))
        shared.append(torch.minimum(draft_probs, target_probs).sum(-1))
    return torch.cat(shared, 1).mean(-1)


def guided_probs(backbone: Backbone, logits: torch.Tensor) -> torch.Tensor:
    """Logits [2B, n, V] of both branches -> probabilities [B, n, V] at the preset's guidance."""
    return guide(logits, backbone.preset.cfg).softmax(-1)
