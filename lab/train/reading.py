"""Stage 2, first part: the lower layers learn to read before the backbone learns to draw.

A picture's tokens teach little about captions: which colour belongs to which thing affects only a
few of 576 cells. So a linear probe on the last prompt slot, half-way up the decoder, must predict
the whole scene. Training on captions alone is cheap, and the layers above get the scene at a single
slot. While the backbone learns to draw, a second probe on its last states predicts which thing
covers the next cell. Both probes are discarded afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ssd_core.backbones.postcard import PROMPT_LENGTH, Postcard
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.postcard.words.world import (
    COLOURS,
    GROUNDS,
    KINDS,
    LIGHTS,
    PATHS,
    PLACES,
    RIDGES,
    SKIES,
    SQUARE,
    TIMES,
    Frame,
    Scene,
    scene_of,
)
from ssd_core.model.grid import Grid
from ssd_core.train.checkpoints import Checkpoint, training_steps
from ssd_core.train.common import cosine, descend, mixed_precision, set_rate

from ..postcards.claims import COUNTS
from ..postcards.objects import cells_of
from .data import HELD_OUT, prompt_batch
from .optimizers import muon_and_adamw

LAYERS = 3
NONE = "none"
FIELDS: tuple[tuple[str, ...], ...] = (
    TIMES, SKIES, LIGHTS, (NONE, *PLACES), RIDGES, GROUNDS, PATHS,
    COUNTS, *[values for _ in PLACES for values in ((NONE, *KINDS), (NONE, *COLOURS))])


def answers(scene: Scene) -> list[int]:
    """The index of each field's true value: the scene's own, the number of things, then kind and
    colour by place.
    """
    things = {thing.place: (thing.kind, thing.colour) for thing in scene.things}
    true_values = [scene.time, scene.sky, scene.light, scene.light_place, scene.ridge,
                   scene.ground, scene.path, COUNTS[len(scene.things) - 1]]
    true_values += [value for place in PLACES for value in things.get(place, (NONE, NONE))]
    return [values.index(value) for values, value in zip(FIELDS, true_values, strict=True)]


def cell_labels(scene: Scene, grid: Grid, frame: Frame = SQUARE) -> torch.Tensor:
    """int64 [R * C]: 0 where a cell shows no thing, else 1 + the kind's and colour's number.

    A cell of a smaller picture covers several cells and shows a thing if any of them does.
    """
    numbers = [1 + KINDS.index(thing.kind) * len(COLOURS) + COLOURS.index(thing.colour)
               for thing in scene.things]
    labels = torch.tensor([*numbers, 0])[torch.from_numpy(cells_of(scene, frame))]
    reduced = F.adaptive_max_pool2d(labels[None].float(), (grid.rows, grid.columns))
    return reduced[0].long().flatten()


class CellProbe(nn.Module):
    """A linear probe for the thing in the next cell, on the decoder's last states."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1 + len(KINDS) * len(COLOURS), hidden))

    def loss(self, states: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Cross-entropy in nats per cell; states: [B, R*C, d], labels: int64 [B, R*C]."""
        return F.cross_entropy(F.linear(states, self.weight).flatten(0, 1), labels.flatten())


class SceneProbe(nn.Module):
    """A linear probe for the scene, on the state of the last prompt slot."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(sum(map(len, FIELDS)), hidden))

    def forward(self, state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """State [B, d] -> logits [B, values] of each field."""
        scores = F.linear(F.rms_norm(state, state.shape[-1:]), self.weight)
        return scores.split([len(values) for values in FIELDS], dim=-1)

    def loss(self, state: torch.Tensor, fields: torch.Tensor,
             has_text: torch.Tensor | None = None) -> torch.Tensor:
        """Cross-entropy in nats per picture, summed over fields.

        fields: int64 [B, fields]. has_text: bool [B]; None: all pictures have text.
        """
        if has_text is not None:
            fields = fields.masked_fill(~has_text[:, None], -100)
        count = len(fields) if has_text is None else has_text.sum().clamp(min=1)
        parts = (F.cross_entropy(part, fields[:, i], reduction="sum")
                 for i, part in enumerate(self(state)))
        return sum(parts, state.new_zeros(())) / count

    @torch.no_grad()
    def share_right(self, state: torch.Tensor, fields: torch.Tensor) -> float:
        """Share of fields whose most likely value is the true value.

        Captions do not mention everything: a perfect reader reaches about 0.85.
        """
        best = torch.stack([part.argmax(-1) for part in self(state)], dim=1)
        return (best == fields).float().mean().item()


def read(backbone: Postcard, prompts: torch.Tensor) -> torch.Tensor:
    """Return the state [B, d] of the last prompt slot of ids [B, P] after the reading layers."""
    angles, positions = backbone.tables()
    x = backbone.embed_prompt(prompts) + positions[:PROMPT_LENGTH]
    return backbone.decoder(x, angles[:PROMPT_LENGTH], layers=reading_layers(backbone))[:, -1]


def reading_layers(backbone: Postcard) -> int:
    """Number of layers below the probe; at least one layer is left for drawing."""
    return min(LAYERS, len(backbone.decoder.layers) - 1)


@contextmanager
def heard_at_prompt(backbone: Postcard) -> Iterator[list[torch.Tensor]]:
    """Yield a list that gets the state [B, d] of `read` from every full pass inside the block."""
    heard: list[torch.Tensor] = []
    hook = backbone.decoder.layers[reading_layers(backbone) - 1].register_forward_hook(
        lambda layer, args, x: heard.append(x.unflatten(0, (args[1], -1))[:, PROMPT_LENGTH - 1]))
    try:
        yield heard
    finally:
        hook.remove()


def learn_to_read(backbone: Postcard, probe: SceneProbe, steps: int, batch: int, rate: float,
                  path: Path, generator: torch.Generator) -> None:
    """Train the reading layers on captions alone, of scenes that are never painted."""
    reading = backbone.decoder.layers[:reading_layers(backbone)]
    others = [backbone.word_embedding, backbone.prompt_position, probe.weight]
    optimizers = muon_and_adamw(reading, others, rate)
    weights = [*reading.parameters(), *others]
    checkpoint = Checkpoint(path, nn.ModuleList((backbone, probe)), optimizers, generator)
    device = backbone.device
    for step in training_steps("reading", steps, checkpoint,
                               report=lambda: f"fields read {checkpoint.mean:.3f}"):
        seeds = torch.randint(HELD_OUT, (batch,), generator=generator).tolist()
        captions = [fresh_caption(seed, step) for seed in seeds]
        prompts = prompt_batch(backbone, captions, torch.zeros(batch, dtype=torch.bool))
        fields = torch.tensor([answers(scene_of(seed)) for seed in seeds]).to(device)
        set_rate(optimizers, cosine(step, steps, warmup=50))
        with mixed_precision(str(device)):
            state = read(backbone, prompts.to(device))
        descend(probe.loss(state, fields), optimizers, weights)
        checkpoint.recent.append(probe.share_right(state, fields))
