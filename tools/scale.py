"""The tables of docs/training.md: hours and bytes to make draft heads, computed and not measured.

The time of a pass is the longest of its launches, of reading weights and cache, and of its matrix
products. Launches are those counted in results/launches.md; sizes and memory come from the
catalogue and from `fit`; the speed of a card is a realistic share of its data sheet's. Starting
programs, loading weights, reading prompts and writing files are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from method_tables import rows_of

from ssd_core import methods, plan
from ssd_core.engine.heads import DraftHeads
from ssd_core.train import BOTH, ROW
from ssd_core.train.common import gigabytes
from ssd_core.train.expected import kind_that_fits, learning_bytes, learning_products
from ssd_core.train.heads import BATCH, CHECKPOINT_BYTES, DISK_BYTES, K_H, K_V, HeadsRecipe
from ssd_core.train.self_distill import MOST_AT_ONCE
from ssd_core.weights.cards import roofline
from ssd_core.weights.catalogue import CATALOGUE, GB, KnownBackbone
from ssd_core.weights.fit import fit
from ssd_core.weights.model_size import ModelSize
from ssd_lab.evaluate.frontier import CARDS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "training.md"
LAUNCHES = ROOT / "lab" / "benchmarks" / "results" / "launches.md"
OWN_HEAD = "backbone | both learn with"
NIGHT_HEAD, BYTES_HEAD = "step | on the card", "backbone | on a card"
# An RTX 4090. Bytes; bf16 operations a second with fp32 sums, dense.
MEMORY, PRODUCTS = 24 * GB, 165e12
SINGLE = 82.6e12  # float32 operations a second, in which drafts learn
BANDWIDTH = CARDS[0].bandwidth  # of the same card; bytes a second that copying reaches
REACHED = 0.4  # of the data sheet's products a second, in passes over hundreds of cells
TAKEN = 1 * GB  # of a card's memory, by the driver and the desktop
ADAMW_BYTES = 36  # of a parameter, read and written by one step with its clip
PICTURES = 60_000
NIGHT = (5_000, 20_000, PICTURES)
GRADIENT_BYTES = 4  # of a parameter; a sum over cards sends it about twice
OWN = HeadsRecipe(Path(), pictures_from=["pictures"], kind=BOTH)
ALL_HEADS = HeadsRecipe(Path(), k_h=K_H, k_v=K_V)  # from the pictures of train self-distill
WORDS = {BOTH: "both", ROW: "row drafter"}
CARDS_GB, OWN_PICTURES = (12, 16, 24), 200
BACKBONES = ("Janus-Pro-1B", "Janus-Pro-7B", "Lumina-mGPT-7B-768", "Emu3-Gen")


@cache
def launches() -> dict[str, int]:
    """Launches of an AR pass by backbone, from launches.md."""
    text = LAUNCHES.read_text(encoding="utf-8")
    return {name: int(count) for name, count in re.findall(
        r"^\| (\S+) \(\d+ layers\) \| ar \| commit (\d+) \|", text, re.MULTILINE)}


@dataclass(frozen=True)
class Work:
    """The work of one backbone on a card."""

    row: KnownBackbone

    @property
    def matrices(self) -> int:
        """The number of parameters that each cell is multiplied with: layers and image head."""
        return ModelSize.of(self.row).matrices + self.row.codes * self.row.shape.hidden

    @property
    def head_parameters(self) -> int:
        with torch.device("meta"):
            heads = DraftHeads(self.row.shape.hidden, K_H, K_V)
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
        """The batch size that `train self-distill` chooses; 0 if not even one picture fits."""
        free, pictures = MEMORY - TAKEN, MOST_AT_ONCE
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
        return roofline(launches()[self.row.name], (2 * self.matrices + cached) / BANDWIDTH,
                        products / (REACHED * PRODUCTS))

    def drawing_hours(self, pictures: int) -> float:
        runs = -(-pictures // self.at_once)
        passes = plan(self.row.grid, methods.AR()).passes_max
        return runs * passes * self.pass_seconds(self.at_once) / 3600

    # Learning

    def learning_bytes(self) -> int:
        """Bytes on a card: the backbone, the heads with their optimizer, activations of a part."""
        return self.weights("bf16") + learning_bytes(self.row, ALL_HEADS)

    def weights(self, dtype: str) -> int:
        return fit(self.row, methods.AR(), 1, dtype, device="meta", free=0).weights

    def kind_on(self, memory: float) -> str:
        """What can learn on a card of so many bytes, with the first dtype that leaves room."""
        dtypes = ("bf16", "int8")
        kinds = {dtype: kind_that_fits(self.row, OWN, int(memory - TAKEN - self.weights(dtype)))
                 for dtype in dtypes}
        return next((f"{WORDS[kind]}, {dtype}" for kind in WORDS for dtype in dtypes
                     if kinds[dtype] == kind), "neither")

    def own_hours(self, kind: str, pictures: int) -> float:
        """Learning from one's own pictures."""
        teacher, drafts = learning_products(ModelSize.of(self.row), replace(OWN, kind=kind),
                                            pictures)
        return (teacher / PRODUCTS + drafts / SINGLE) / REACHED / 3600

    def step_seconds(self, batch: int) -> float:
        """One step: the batch, then AdamW."""
        shape, slots = self.row.shape, self.row.prompt_slots + self.row.grid.slots
        teacher = 2 * ModelSize.of(self.row).matrices * slots
        teacher += 2 * shape.layers * shape.heads * shape.head_dim * slots**2
        heads = 6 * self.head_parameters * self.row.grid.cells
        return (batch * (teacher + heads) / (REACHED * PRODUCTS)
                + ADAMW_BYTES * self.head_parameters / BANDWIDTH)

    def learning_hours(self, pictures: int, batch: int) -> float:
        steps = HeadsRecipe.epochs * pictures // batch
        return steps * self.step_seconds(batch) / 3600


def duration(hours: float) -> str:
    """Two digits; minutes below one hour."""
    number, unit = (hours, "h") if hours >= 1 else (60 * hours, "min")
    return f"{number:.2g} {unit}"


def night_table() -> list[list[str]]:
    """Janus-Pro-1B on one consumer card: each stage, for three numbers of pictures."""
    work = Work(CATALOGUE["Janus-Pro-1B"])
    draw = [work.drawing_hours(count) for count in NIGHT]
    learn = [work.learning_hours(count, BATCH) for count in NIGHT]
    files = (DISK_BYTES + CHECKPOINT_BYTES) * work.head_parameters
    return [["`train self-distill`", gigabytes(work.drawing_bytes(work.at_once)),
             gigabytes(work.picture_bytes(PICTURES)), *map(duration, draw)],
            ["`train heads`", gigabytes(work.learning_bytes()), gigabytes(files),
             *map(duration, learn)],
            ["together", "", "", *(duration(a + b) for a, b in zip(draw, learn, strict=True))]]


def bytes_table() -> list[list[str]]:
    """The bytes that each backbone needs, for any number of cards."""
    works = [Work(CATALOGUE[name]) for name in BACKBONES]
    return [[work.row.name, *map(gigabytes, (
        work.drawing_bytes(1), work.learning_bytes(), work.picture_bytes(PICTURES),
        DISK_BYTES * work.head_parameters, CHECKPOINT_BYTES * work.head_parameters,
        2 * GRADIENT_BYTES * work.head_parameters))] for work in works]


def own_table() -> list[list[str]]:
    """What learns from one's own pictures, on cards of several sizes, and how long it takes."""
    works = [Work(CATALOGUE[name]) for name in BACKBONES]
    return [[work.row.name, *(gigabytes(learning_bytes(work.row, replace(OWN, kind=kind), True))
                              for kind in WORDS),
             *(work.kind_on(size * GB) for size in CARDS_GB),
             *(duration(work.own_hours(kind, OWN_PICTURES)) for kind in WORDS)] for work in works]


TABLES = {NIGHT_HEAD: night_table, BYTES_HEAD: bytes_table, OWN_HEAD: own_table}


def pages() -> dict[Path, str]:
    """The page with its tables up to date."""
    text = PAGE.read_text(encoding="utf-8")
    for head, rows in TABLES.items():
        before, _, after = rows_of(text, f"| {head}")
        text = before + "".join(f"| {' | '.join(row)} |\n" for row in rows()) + after
    return {PAGE: text}
