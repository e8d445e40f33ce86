"""The table of docs/first_large_model.md: what fits a card, and seconds, computed and not measured.

A pass lasts as long as its launches, as reading weights and half of the cache at a realistic
share of the card's bandwidth, or as its products at a realistic share of its data sheet's,
whichever takes longest. Memory is `fit`'s; passes of Faithful are a stand-in's, by the window that
is quickest on the card. Prompts and pixels are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from method_tables import rows_of

from ssd_core import methods, plan
from ssd_core.engine.prior_passes import stand_in_shares, windows
from ssd_core.weights.catalogue import CATALOGUE, GB, KnownBackbone
from ssd_core.weights.fit import fit
from ssd_core.weights.memory import WEIGHT_BYTES
from ssd_core.weights.model_size import ModelSize
from ssd_lab.evaluate.frontier import roofline

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first_large_model.md"
HEAD = "card | model"
LAUNCHES = 45  # of a pass with graphs: results/launches.md
REACHED, COMPUTED = 0.69, 0.4  # shares of the stated bandwidth and products


@dataclass(frozen=True)
class Card:
    """memory in GB; bandwidth in bytes a second; products: of bf16, a second (data sheets)."""

    memory: int
    name: str
    bandwidth: float
    products: float


ROWS = (
    (Card(6, "RTX 3050", 168e9, 13.6e12), ("Janus-Pro-1B", "bf16")),
    (Card(8, "RTX 4060", 272e9, 30e12), ("Janus-Pro-1B", "bf16"), ("Janus-Pro-7B", "int4")),
    (Card(12, "RTX 3060", 360e9, 25e12), ("Janus-Pro-7B", "int8")),
    (Card(16, "RTX 4060 Ti", 288e9, 44e12), ("Janus-Pro-7B", "bf16"),
     ("Lumina-mGPT-7B-768", "int8")),
    (Card(24, "RTX 4090", 1008e9, 165e12), ("Janus-Pro-7B", "bf16"),
     ("Lumina-mGPT-7B-768", "bf16"), ("Emu3-Gen", "int8")))


def pass_seconds(model: ModelSize, card: Card, dtype: str, cells: int) -> float:
    """Seconds of a pass over so many cells of each branch, in the middle of a picture."""
    shape, branches = model.shape, 1 + (model.preset.cfg != 1)
    weights = model.matrices + model.image_head
    slots = model.prompt_slots + model.grid.slots
    cached = shape.layers * shape.kv_heads * shape.head_dim * slots
    reads = WEIGHT_BYTES[dtype] * weights + 2 * branches * cached
    return roofline(LAUNCHES, reads / (REACHED * card.bandwidth),
                    2 * weights * cells * branches / (COMPUTED * card.products))


def reference_seconds(model: ModelSize, card: Card, dtype: str) -> float:
    return plan(model.grid, methods.AR()).ar_passes * pass_seconds(model, card, dtype, 1)


def faithful_seconds(model: ModelSize, card: Card, dtype: str) -> float:
    """By the window that is quickest on the card."""
    shares = windows(stand_in_shares(model.grid), methods.Exact.name, "none")
    return min(model.grid.cells * share * pass_seconds(model, card, dtype, window)
               for window, share in shares)


def ssd_seconds(model: ModelSize, card: Card, dtype: str) -> float:
    """By the model's own schedule, whose passes cover blocks of k_v rows."""
    method = methods.SSD().resolve(model.preset)
    passes = plan(model.grid, method).passes
    return (passes or 0) * pass_seconds(model, card, dtype, method.pass_width(model.grid))


def row(card: Card, name: str, dtype: str) -> list[str]:
    known: KnownBackbone = CATALOGUE[name]
    model = ModelSize.of(known)
    needed = fit(known, methods.Exact(), 1, dtype, device="meta", free=0).needed
    times = (reference_seconds(model, card, dtype), faithful_seconds(model, card, dtype),
             ssd_seconds(model, card, dtype))
    size = f"{(known.about_bytes or 0) / GB:.0f} GB"
    return [f"{card.memory} GB ({card.name})", f"`{name}`", dtype, size,
            f"{needed / 2**30:.1f} GiB", *(f"{seconds:.2g} s" for seconds in times)]


def table() -> list[list[str]]:
    return [row(card, *choice) for card, *choices in ROWS for choice in choices]


def pages() -> dict[Path, str]:
    """The page with its table up to date."""
    before, _, after = rows_of(PAGE.read_text(encoding="utf-8"), f"| {HEAD}")
    return {PAGE: before + "".join(f"| {' | '.join(each)} |\n" for each in table()) + after}
