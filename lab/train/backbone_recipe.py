"""What stage 2 is told: the fields of `train backbone`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssd_core.backbones.postcard import GRID, SHAPE
from ssd_core.model.knobs import flag


@dataclass(frozen=True)
class BackboneRecipe:
    out: Path
    start_from: str = flag("", "A postcard to continue from, instead of fresh weights: a bundled "
                               "name, a file or a folder.")
    tokenizer: str = flag("", "A postcard that provides the tokenizer, instead of stage 1 in "
                              "--out.")
    shapes: float = flag(0.0, "Share of pictures of 32 x 18 and 18 x 32 cells; above 0 the weights "
                              "learn these shapes too.")
    side: int = flag(GRID.rows, "Cells along a side of fresh weights: 24, or 12, 8 or 6 for a "
                                "backbone that drafts for it in MuLo-SD.")
    layers: int = flag(SHAPE.layers, "Layers of fresh weights.")
    hidden: int = flag(SHAPE.hidden, "Channels of fresh weights, a multiple of "
                                     f"{SHAPE.head_dim}.")
    reading_steps: int = 1500
    reading_batch: int = 128
    steps: int = 12000
    cooldown: float = 0.3
    pictures: int = 24000
    batch: int = 8
    probe_weight: float = 0.01
    cell_weight: float = 0.5
    thing_weight: float = 2.0
    busy: float = flag(1.0, "How often pictures of three different things, of roads and of rivers "
                            "are learned, beside 1 for all others.")
    foreign_cells: float = flag(0.2, "Up to this share of a picture's cells is taken from "
                                     "another picture.")
    foreign_patches: float = flag(0.35, "Share of pictures that take a whole patch from another "
                                        "picture.")
    rate: float = 2.5e-3
    drop_text: float = 0.1
    held_out: int = 128
    seed: int = 0
    device: str = "cpu"
    workers: int = flag(0, "Processes that make batches ahead. On a card, some ten keep it busy.")
