"""What learning draft heads takes, before it starts: bytes, seconds, and which kind has room.

Sizes are computed. Seconds follow from the matrix products of a lesson and from how fast this
device multiplies, which is measured once. Knows no pictures, only their number.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads
from ..engine.row_drafter import SWEEPS, RowDrafter
from ..weights.catalogue import KnownBackbone
from ..weights.fit import gib
from ..weights.memory import free_bytes
from ..weights.model_size import ModelSize
from . import BOTH, HEADS, KINDS, ROW
from .heads import LEARNING_BYTES, HeadsRecipe, as_before, steps_of, working_bytes
from .own_pictures import MOST_HELD_OUT, share_held_out

SLOWER = 2.0  # than one large product: measured on a CPU, whose passes reach 0.5 to 0.7 of it
SIDES = {"cpu": 1024}  # of the product that is timed; OTHER_SIDE on cards
OTHER_SIDE = 4096
TRIES = 3
Target = ModelSize | Backbone | KnownBackbone


def learning_bytes(target: Target, recipe: HeadsRecipe, one_by_one: bool = False) -> int:
    """Peak bytes of learning, beside the backbone's weights.

    Weights, gradients and optimizers of all drafts that learn, and the activations of the largest
    lesson. recipe: its k_h and k_v, or as many heads as the backbone's schedule needs. one_by_one:
    with one picture in a pass, which is what learning falls back to where memory is short.
    """
    model = ModelSize.of(target)
    pictures = 1 if one_by_one else recipe.step_pictures
    working = max(working_bytes(model, kind, pictures) for kind in KINDS[recipe.kind])
    return LEARNING_BYTES * sum(parameters(model, recipe).values()) + working


def kind_that_fits(target: Target, recipe: HeadsRecipe, free: int | None = None) -> str | None:
    """"both", "row" if only the row drafter has room, or None.

    free: bytes beside the backbone's weights; None asks the device of a loaded backbone. Where that
    is unknown, "both".
    """
    if free is None and isinstance(target, Backbone):
        free = free_bytes(target.device)
    fits = (kind for kind in (BOTH, ROW) if free is None or free >= learning_bytes(
        target, replace(recipe, kind=kind), one_by_one=True))
    return next(fits, None)


def learning_fit(target: Target, free: int | None) -> dict:
    """The bytes of both kinds and of the row drafter alone, which `kind_that_fits`, and `advice`.

    free: bytes beside the backbone's weights; None if unknown.
    """
    recipe = HeadsRecipe(Path(), pictures_from=[], kind=BOTH)
    both, alone = (learning_bytes(target, replace(recipe, kind=kind), one_by_one=True)
                   for kind in (BOTH, ROW))
    fits = kind_that_fits(target, recipe, free)
    have = {BOTH: "both have room", ROW: "the row drafter alone has room",
            None: "neither has room; try int8 or int4 weights"}[fits]
    room = "" if free is None else f"; {gib(max(free, 0))} are free beside the weights: {have}"
    return {"both": both, "row": alone, "fits": fits if free is not None else None, "advice":
            f"to learn from your own pictures, draft heads and row drafter take about "
            f"{gib(both)}, the row drafter alone {gib(alone)}{room}"}


def learning_seconds(backbone: Backbone, recipe: HeadsRecipe, pictures: int,
                     device: torch.device | None = None) -> float:
    """Seconds that a loaded backbone takes to learn from so many of one's pictures.

    pictures: with those that only measure. device: where it learns, if its weights wait elsewhere.
    The first call takes some tenths of a second.
    """
    device = device or backbone.device
    teacher, drafts = learning_products(ModelSize.of(backbone), recipe, pictures)
    return SLOWER * (teacher / speed(device, backbone.dtype)
                     + drafts / speed(device, torch.float32))


def learning_products(model: ModelSize, recipe: HeadsRecipe, pictures: int) -> tuple[int, int]:
    """Operations of the backbone's passes and, in float32, of the drafts."""
    held_out = min(-(-pictures // share_held_out(pictures)), MOST_HELD_OUT)
    counts = parameters(model, recipe)
    shown = {kind: steps_of(recipe, kind, pictures - held_out) * recipe.step_pictures
             for kind in counts}
    measured = 4 * held_out  # both branches, before and after
    drafts = sum(shown[kind] * lesson_products(model, kind, count)
                 for kind, count in counts.items())
    return ((sum(shown.values()) + measured) * teacher_products(model),
            drafts + measured * measuring_products(model, recipe, counts))


def parameters(model: ModelSize, recipe: HeadsRecipe) -> dict[str, int]:
    """Of the drafts that learn, by kind."""
    recipe = as_before(recipe, None, model.preset)
    with torch.device("meta"):
        drafts = {HEADS: DraftHeads(model.shape.hidden, recipe.k_h, recipe.k_v),
                  ROW: RowDrafter(model.shape.hidden)}
    return {kind: sum(weight.numel() for weight in drafts[kind].parameters())
            for kind in KINDS[recipe.kind]}


# Operations for one picture


def teacher_products(model: ModelSize) -> int:
    """Of a pass over prompt and picture, with its attention."""
    shape, slots = model.shape, model.prompt_slots + model.grid.slots
    return 2 * model.matrices * slots + 2 * shape.layers * shape.heads * shape.head_dim * slots**2


def image_head_products(model: ModelSize) -> int:
    return 2 * model.shape.hidden * model.codes * model.grid.cells


def lesson_products(model: ModelSize, kind: str, count: int) -> int:
    """Forward and backward through drafts of so many parameters."""
    if kind == HEADS:
        return 6 * count * model.grid.cells
    return 6 * SWEEPS * count * model.grid.cells + 3 * image_head_products(model)


def measuring_products(model: ModelSize, recipe: HeadsRecipe, counts: dict[str, int]) -> int:
    """Of the acceptance of all drafts: two distributions for each head and for the row drafter."""
    recipe = as_before(recipe, None, model.preset)
    drafts = (recipe.k_h + recipe.k_v) * (HEADS in counts) + (ROW in counts)
    forward = counts.get(HEADS, 0) + SWEEPS * counts.get(ROW, 0)
    return 2 * forward * model.grid.cells + 2 * drafts * image_head_products(model)


@lru_cache(maxsize=8)
@torch.inference_mode()
def speed(device: torch.device, dtype: torch.dtype) -> float:
    """Operations a second of a large matrix product on this device, the fastest of a few."""
    side = SIDES.get(device.type, OTHER_SIDE)
    x, seconds = torch.ones(side, side, device=device, dtype=dtype), []
    for _ in range(1 + TRIES):
        began = time.perf_counter()
        (x @ x)[0, 0].item()  # waits for a card
        seconds.append(time.perf_counter() - began)
    return 2 * side**3 / min(seconds)
