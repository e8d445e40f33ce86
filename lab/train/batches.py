"""Batches of painted postcards for stage 2, made ahead by worker processes on a card.

A batch depends only on the recipe and the number of its step, so any number of workers makes the
same batches, and a training goes on from a checkpoint as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.postcard.words.world import Frame, Scene, scene_of
from ssd_core.model.grid import Grid

from .backbone_recipe import BackboneRecipe
from .reading import answers, cell_labels

Painted = Mapping[Frame, torch.Tensor]  # tokens [n, R*C] of the pictures of each shape
SPRINKLED = 0.8  # the share of pictures that show single foreign cells
PATCH_SIDES = (2, 8)  # cells


class Batch(NamedTuple):
    """Pictures of one shape."""

    frame: Frame
    tokens: torch.Tensor  # int64 [B, R*C], to be predicted
    inputs: torch.Tensor  # int64 [B, R*C], the same with foreign cells
    captions: tuple[str, ...]
    dropped: torch.Tensor  # bool [B]: pictures that lose their caption
    fields: torch.Tensor  # int64 [B, fields], the answers for the probe of scenes
    labels: torch.Tensor  # int64 [B, R*C], the things for the probe of cells


class Batches(Dataset):
    """The batch of every step."""

    def __init__(self, painted: Painted, grids: Mapping[Frame, Grid],
                 recipe: BackboneRecipe) -> None:
        self.painted, self.grids, self.recipe = painted, grids, recipe
        self.counts = torch.tensor([len(tokens) for tokens in painted.values()]).float()
        self.odds = {frame: odds_of(range(len(tokens)), recipe.busy)
                     for frame, tokens in painted.items()}

    def __getitem__(self, step: int) -> Batch:
        recipe, generator = self.recipe, generator_of(self.recipe.seed, step)
        frame = list(self.painted)[int(torch.multinomial(self.counts, 1, generator=generator))]
        pick = torch.multinomial(self.odds[frame], recipe.batch, True, generator=generator)
        tokens, grid = self.painted[frame][pick], self.grids[frame]
        scenes = [scene_of(seed) for seed in pick.tolist()]
        return Batch(frame, tokens, with_foreign_cells(tokens, grid, recipe, generator),
                     tuple(fresh_caption(seed, step) for seed in pick.tolist()),
                     torch.rand(recipe.batch, generator=generator) < recipe.drop_text,
                     torch.tensor([answers(scene) for scene in scenes]),
                     torch.stack([cell_labels(scene, grid, frame) for scene in scenes]))


def made_ahead(batches: Batches, steps: range, workers: int) -> Iterator[Batch]:
    """The batches of these steps. workers: processes that make them ahead; 0: none."""
    return iter(DataLoader(batches, batch_size=None, sampler=steps, num_workers=workers,
                           prefetch_factor=8 if workers else None))


def generator_of(seed: int, step: int) -> torch.Generator:
    state = np.random.SeedSequence((seed, step)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))


def odds_of(seeds: range, busy: float) -> torch.Tensor:
    """float [n]: `busy` for scenes that are hard to follow, 1 for all others."""
    return torch.tensor([busy if is_busy(scene_of(seed)) else 1.0 for seed in seeds])


def is_busy(scene: Scene) -> bool:
    """Whether a scene has three things that all look different, or a road or a river."""
    looks = {(thing.kind, thing.colour) for thing in scene.things}
    return len(looks) == 3 or scene.path in ("road", "river")


def some_cells(whole: int, generator: torch.Generator) -> slice:
    """Draw a random range within a row or column of `whole` cells."""
    least, most = (min(side, whole) for side in PATCH_SIDES)
    side = int(torch.randint(least, most + 1, (), generator=generator))
    first = int(torch.randint(whole - side + 1, (), generator=generator))
    return slice(first, first + side)


def with_foreign_cells(tokens: torch.Tensor, grid: Grid, recipe: BackboneRecipe,
                       generator: torch.Generator) -> torch.Tensor:
    """Replace some cells of pictures [B, R*C] by cells of another picture of the batch.

    A backbone trained on flawless pictures only trusts its own errors more than the caption and
    continues them. The tokens to predict stay the picture's own.
    """
    count = len(tokens)
    share = recipe.foreign_cells * torch.rand(count, 1, 1, generator=generator)
    share *= torch.rand(count, 1, 1, generator=generator) < SPRINKLED
    foreign = torch.rand(count, grid.rows, grid.columns, generator=generator) < share
    patched = torch.rand(count, generator=generator) < recipe.foreign_patches
    for picture in patched.nonzero()[:, 0].tolist():
        rows, columns = (some_cells(side, generator) for side in (grid.rows, grid.columns))
        foreign[picture, rows, columns] = True
    return torch.where(foreign.flatten(1), tokens.roll(1, 0), tokens)
