"""The table of docs/first_large_model.md: what fits a card, and seconds, computed and not measured.

Seconds are those of ssd_core/weights/cards.py, memory is `fit`'s.
"""

from __future__ import annotations

from pathlib import Path

from method_tables import rows_of

from ssd_core import methods
from ssd_core.weights.cards import CARDS, Card, OnCard, seconds_text
from ssd_core.weights.catalogue import CATALOGUE, GB, KnownBackbone
from ssd_core.weights.fit import fit
from ssd_core.weights.model_size import ModelSize

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first_large_model.md"
HEAD = "card | model"
ROWS = {
    "RTX 3050": [("Janus-Pro-1B", "bf16")],
    "RTX 4060": [("Janus-Pro-1B", "bf16"), ("Janus-Pro-7B", "int4")],
    "RTX 3060": [("Janus-Pro-7B", "int8")],
    "RTX 4060 Ti": [("Janus-Pro-7B", "bf16"), ("Lumina-mGPT-7B-768", "int8")],
    "RTX 4090": [("Janus-Pro-7B", "bf16"), ("Lumina-mGPT-7B-768", "bf16"), ("Emu3-Gen", "int8")]}
SHOWN = ("Reference", "Faithful", "Balanced", "ssd")


def row(card: Card, name: str, dtype: str) -> list[str]:
    known: KnownBackbone = CATALOGUE[name]
    needed = fit(known, methods.Exact(), 1, dtype, device="meta", free=0).needed
    seconds = OnCard(ModelSize.of(known), card, dtype).seconds()
    size = f"{(known.about_bytes or 0) / GB:.0f} GB"
    return [f"{card.memory} GB ({card.name})", f"`{name}`", dtype, size,
            f"{needed / 2**30:.1f} GiB",
            *(seconds_text(seconds[quality], dtype) for quality in SHOWN)]


def table() -> list[list[str]]:
    return [row(CARDS[card], *choice) for card, choices in ROWS.items() for choice in choices]


def pages() -> dict[Path, str]:
    """The page with its table up to date."""
    before, _, after = rows_of(PAGE.read_text(encoding="utf-8"), f"| {HEAD}")
    return {PAGE: before + "".join(f"| {' | '.join(each)} |\n" for each in table()) + after}
