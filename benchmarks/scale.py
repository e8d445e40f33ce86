"""The tables of docs/scale.md: hours and bytes of making draft heads, computed and not measured.

    python benchmarks/scale.py

A pass takes as long as its launches, as reading weights and cache, or as its products, whichever is
longest. Launches are those counted in results/launches.md; sizes and memory come from the
catalogue and from `fit`; what a card does is its data sheet's, less what is never reached. Starting
programs, loading weights, reading prompts and writing files are left out.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache

import torch
from conditions import RESULTS
from conditions import table as markdown

from ssd_core import methods, plan
from ssd_core.engine.heads import DraftHeads
from ssd_core.measure.frontier import LAUNCH
from ssd_core.train.common import gigabytes
from ssd_core.train.draft_heads import CELLS_AT_ONCE
from ssd_core.train.heads_recipe import (
    CHECKPOINT_BYTES,
    DISK_BYTES,
    LEARNING_BYTES,
    HeadsRecipe,
)
from ssd_core.train.self_distill import MOST_AT_ONCE
from ssd_core.weights.catalogue import CATALOGUE, GB, KnownBackbone
from ssd_core.weights.figures import figures_of_row
from ssd_core.weights.fit import fit
from ssd_core.weights.memory import Setting, layer_bytes

REACHED = 0.4  # of the data sheet's products a second, in passes over hundreds of cells
TAKEN = 1 * GB  # of a card's memory, by the driver and the desktop
ADAMW_BYTES = 36  # of a parameter, read and written by one step with its clip
STATES = 13  # float32 hidden states of a cell alive at once: of the teacher, and within a head
PICTURES = 60_000
NIGHT = (5_000, 20_000, PICTURES)
GRADIENT_BYTES = 4  # of a parameter; a sum over cards sends it about twice
BACKBONES = ("Janus-Pro-1B", "Janus-Pro-7B", "Lumina-mGPT-7B-768", "Emu3-Gen")
# Pictures of a step by the number of cards; the paper's Table 8 has 128 on each of 4 cards.
BATCHES = {1: HeadsRecipe.batch, 8: 8 * HeadsRecipe.batch, 64: 512}


@dataclass(frozen=True)
class Card:
    """memory: bytes; bandwidth: bytes a second that copying reaches; products: bf16 operations a
    second with fp32 sums, dense; beside: bytes a second to each neighbour in the same machine.
    """

    name: str
    memory: float
    bandwidth: float
    products: float
    beside: float


CONSUMER = Card("RTX 4090", 24 * GB, 1.0e12, 165e12, 2.0e10)
CENTRE = Card("H200", 141 * GB, 4.6e12, 989e12, 3.0e11)
IN_MACHINE, BETWEEN = 8, 4.0e10  # cards of a machine; bytes a second of each to another machine


@cache
def launches() -> dict[str, int]:
    """Launches of an AR pass by backbone, from launches.md."""
    text = (RESULTS / "launches.md").read_text(encoding="utf-8")
    return {name: int(count) for name, count in re.findall(
        r"^\| (\S+) \(\d+ layers\) \| ar \| commit (\d+) \|", text, re.MULTILINE)}


@dataclass(frozen=True)
class Work:
    """What one backbone asks of one kind of card."""

    row: KnownBackbone
    card: Card

    @property
    def matrices(self) -> int:
        """Parameters that every cell is multiplied with: the layers and the image head."""
        return figures_of_row(self.row).matrices + self.row.codes * self.row.shape.hidden

    @property
    def head_parameters(self) -> int:
        with torch.device("meta"):
            heads = DraftHeads(self.row.shape.hidden, HeadsRecipe.k_h, HeadsRecipe.k_v)
        return sum(weight.numel() for weight in heads.parameters())

    def picture_bytes(self, pictures: int) -> int:
        """Tokens on disk."""
        code = 2 if self.row.codes <= 1 << 15 else 4
        return code * pictures * self.row.grid.cells

    # Drawing

    def drawing_bytes(self, pictures: int) -> int:
        return fit(self.row, methods.AR(), pictures, "bf16", device="meta", free=0).needed

    @property
    def at_once(self) -> int:
        """Pictures of a batch, as `train self-distill` chooses them; 0 where not one fits."""
        free, pictures = self.card.memory - TAKEN, MOST_AT_ONCE
        while pictures and self.drawing_bytes(pictures) > free:
            pictures //= 2
        return pictures

    def pass_seconds(self, pictures: int) -> float:
        """One AR pass in the middle of the pictures, guidance on."""
        shape, rows = self.row.shape, 2 * pictures
        slots = self.row.prompt_slots + self.row.grid.slots / 2
        cached = 2 * 2 * shape.layers * shape.kv_heads * shape.head_dim * slots * rows
        attention = 4 * shape.layers * shape.heads * shape.head_dim * slots * rows
        products = 2 * self.matrices * rows + attention
        return max(launches()[self.row.name] * LAUNCH,
                   (2 * self.matrices + cached) / self.card.bandwidth,
                   products / (REACHED * self.card.products))

    def drawing_hours(self, pictures: int, cards: int = 1) -> float:
        runs = -(-pictures // (self.at_once * cards))
        passes = plan(self.row.grid, methods.AR()).passes_max
        return runs * passes * self.pass_seconds(self.at_once) / 3600

    # Learning

    def learning_bytes(self) -> float:
        """On a card: the backbone, the heads with their optimizer, activations of a part."""
        figures = figures_of_row(self.row)
        slots = self.row.prompt_slots + self.row.grid.slots
        at_once = max(1, CELLS_AT_ONCE // self.row.grid.cells)
        weights = 2 * (figures.matrices + figures.other_parameters) + 4 * figures.codec_parameters
        layer = layer_bytes(figures, Setting(at_once, guided=False), slots)
        states = 4 * STATES * at_once * slots * self.row.shape.hidden
        return weights + LEARNING_BYTES * self.head_parameters + layer + states

    def step_seconds(self, batch: int, cards: int) -> float:
        """One step: the share of the batch, then the sum of gradients, then AdamW."""
        shape, share = self.row.shape, batch / cards
        slots = self.row.prompt_slots + self.row.grid.slots
        teacher = 2 * figures_of_row(self.row).matrices * slots
        teacher += 2 * shape.layers * shape.heads * shape.head_dim * slots**2
        heads = 6 * self.head_parameters * self.row.grid.cells
        link = self.card.beside if cards <= IN_MACHINE else BETWEEN
        sent = 2 * (cards - 1) / cards * GRADIENT_BYTES * self.head_parameters
        return (share * (teacher + heads) / (REACHED * self.card.products) + sent / link
                + ADAMW_BYTES * self.head_parameters / self.card.bandwidth)

    def learning_hours(self, pictures: int, batch: int, cards: int = 1) -> float:
        steps = HeadsRecipe.epochs * pictures // batch
        return steps * self.step_seconds(batch, cards) / 3600


def duration(hours: float) -> str:
    """Two digits; minutes below one hour."""
    number, unit = (hours, "h") if hours >= 1 else (60 * hours, "min")
    return f"{number:.2g} {unit}"


def cards_table() -> str:
    """What the figures take a card to do."""
    rows = [[card.name, gigabytes(card.memory), f"{gigabytes(card.bandwidth)}/s",
             f"{card.products / 1e12:.0f} TFLOP/s", f"{REACHED * 100:.0f} %",
             f"{gigabytes(card.beside)}/s"] for card in (CONSUMER, CENTRE)]
    return markdown(["card", "memory", "copies", "bf16 products", "of which reached",
                     "to a card beside it"], rows)


def night_table() -> str:
    """Janus-Pro-1B on one consumer card: each stage, for three numbers of pictures."""
    work = Work(CATALOGUE["Janus-Pro-1B"], CONSUMER)
    draw = [work.drawing_hours(count) for count in NIGHT]
    learn = [work.learning_hours(count, HeadsRecipe.batch) for count in NIGHT]
    files = (DISK_BYTES + CHECKPOINT_BYTES) * work.head_parameters
    rows = [["`train self-distill`", gigabytes(work.drawing_bytes(work.at_once)),
             gigabytes(work.picture_bytes(PICTURES)), *map(duration, draw)],
            ["`train heads`", gigabytes(work.learning_bytes()), gigabytes(files),
             *map(duration, learn)],
            ["together", "", "", *(duration(a + b) for a, b in zip(draw, learn, strict=True))]]
    return markdown(["stage", "on the card", "on disk, at most",
                     *(f"{count:,} pictures" for count in NIGHT)], rows)


def bytes_table() -> str:
    """What each backbone needs where, whatever the number of cards."""
    rows = []
    for row in map(CATALOGUE.__getitem__, BACKBONES):
        work = Work(row, CENTRE)
        rows.append([row.name, *map(gigabytes, (
            work.drawing_bytes(1), work.learning_bytes(), work.picture_bytes(PICTURES),
            DISK_BYTES * work.head_parameters, CHECKPOINT_BYTES * work.head_parameters,
            2 * GRADIENT_BYTES * work.head_parameters))])
    return markdown(["backbone", "on a card, drawing one picture", "on a card, learning",
                     f"{PICTURES:,} pictures on disk", "heads on disk", "checkpoint on disk",
                     "sent by a card in a step"], rows)


def cards_needed_table() -> str:
    """Hours for 60,000 pictures on 1, 8 and 64 cards."""
    rows = []
    for row in map(CATALOGUE.__getitem__, BACKBONES):
        work = Work(row, CENTRE)
        for cards, batch in BATCHES.items():
            draw = work.drawing_hours(PICTURES, cards)
            learn = work.learning_hours(PICTURES, batch, cards)
            rows.append([row.name, str(cards), str(work.at_once), duration(draw), str(batch),
                         duration(learn), duration(draw + learn)])
    return markdown(["backbone", "cards", "pictures at once a card", "to draw",
                     "batch of all cards", "to learn", "together"], rows)


TABLES = (cards_table, night_table, bytes_table, cards_needed_table)

if __name__ == "__main__":
    for one in TABLES:
        sys.stdout.write(one() + "\n")
