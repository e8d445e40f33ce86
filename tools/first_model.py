"""The table of docs/first_large_model.md: what fits a card, and seconds, computed and not measured.

Seconds of a pass are those of lab/evaluate/cards.py. Memory is `fit`'s; passes of Faithful are a
stand-in's, by the window that is quickest on the card. Prompts and pixels are left out.
"""

from __future__ import annotations

from pathlib import Path

from method_tables import rows_of

from ssd_core import methods, plan
from ssd_core.engine.prior_passes import stand_in_shares, windows
from ssd_core.weights.catalogue import CATALOGUE, GB, KnownBackbone
from ssd_core.weights.fit import fit
from ssd_core.weights.model_size import ModelSize
from ssd_lab.evaluate.cards import Card, pass_seconds

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first_large_model.md"
HEAD = "card | model"
# Memory in GB, and the card by its data sheet.
ROWS = (
    (6, Card("RTX 3050", 168e9, 13.6e12), ("Janus-Pro-1B", "bf16")),
    (8, Card("RTX 4060", 272e9, 30e12), ("Janus-Pro-1B", "bf16"), ("Janus-Pro-7B", "int4")),
    (12, Card("RTX 3060", 360e9, 25e12), ("Janus-Pro-7B", "int8")),
    (16, Card("RTX 4060 Ti", 288e9, 44e12), ("Janus-Pro-7B", "bf16"),
     ("Lumina-mGPT-7B-768", "int8")),
    (24, Card("RTX 4090", 1008e9, 165e12), ("Janus-Pro-7B", "bf16"),
     ("Lumina-mGPT-7B-768", "bf16"), ("Emu3-Gen", "int8")))


def reference_seconds(model: ModelSize, card: Card, dtype: str) -> float:
    passes = plan(model.grid, methods.AR()).ar_passes
    return passes * pass_seconds(model, model.grid, card, 1, dtype)


def faithful_seconds(model: ModelSize, card: Card, dtype: str) -> float:
    """By the window that is quickest on the card."""
    shares = windows(stand_in_shares(model.grid), methods.Exact.name, "none")
    return min(model.grid.cells * share * pass_seconds(model, model.grid, card, window, dtype)
               for window, share in shares)


def ssd_seconds(model: ModelSize, card: Card, dtype: str) -> float:
    """By the model's own schedule, whose passes cover blocks of k_v rows."""
    method = methods.SSD().resolve(model.preset)
    passes = plan(model.grid, method).passes
    return (passes or 0) * pass_seconds(model, model.grid, card, method.pass_width(model.grid),
                                        dtype)


def row(memory: int, card: Card, name: str, dtype: str) -> list[str]:
    known: KnownBackbone = CATALOGUE[name]
    model = ModelSize.of(known)
    needed = fit(known, methods.Exact(), 1, dtype, device="meta", free=0).needed
    times = (reference_seconds(model, card, dtype), faithful_seconds(model, card, dtype),
             ssd_seconds(model, card, dtype))
    size = f"{(known.about_bytes or 0) / GB:.0f} GB"
    return [f"{memory} GB ({card.name})", f"`{name}`", dtype, size,
            f"{needed / 2**30:.1f} GiB", *(f"{seconds:.2g} s" for seconds in times)]


def table() -> list[list[str]]:
    return [row(memory, card, *choice) for memory, card, *choices in ROWS for choice in choices]


def pages() -> dict[Path, str]:
    """The page with its table up to date."""
    before, _, after = rows_of(PAGE.read_text(encoding="utf-8"), f"| {HEAD}")
    return {PAGE: before + "".join(f"| {' | '.join(each)} |\n" for each in table()) + after}
