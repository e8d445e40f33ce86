"""Modelled seconds of a pass, and of a picture by each quality, on a card that is not here.

A pass lasts as long as its launches, as reading weights and half of the cache at a realistic
share of the card's bandwidth, or as its products at a realistic share of its data sheet's,
whichever takes longest. A picture adds what was measured beside that on an H200 (lab/benchmarks/
results/card_session_h200.md): small kernels in each layer, and the judge of drafts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..engine.decode import plan
from ..engine.methods import AR, SSD, Exact, Method, Rolling
from ..engine.prior_passes import stand_in_shares, windows
from ..engine.tuning import cells_of
from ..errors import SSDError
from ..model.grid import Grid
from .eight_bits import EITHER
from .memory import WEIGHT_BYTES
from .model_size import ModelSize

LAUNCH = 5e-6  # seconds
LAUNCHES = 45  # of a pass with graphs: results/launches.md
# Shares of the stated bandwidth (what gpt-fast reaches with 7B on an A100) and products.
REACHED, COMPUTED = 0.69, 0.4
# Seconds beside that, on the H200: in each layer, and of the judge of each method.
SMALL_KERNELS = 60e-6
JUDGE: Mapping[str, float] = {"ssd": 1.7e-3, "exact": 0.5e-3, "rolling": 3.6e-3}
UNTRIED = ("int8", "int4")  # no product of these has been timed on a small card


@dataclass(frozen=True)
class Card:
    """bandwidth: bytes a second; products: of bf16, a second; memory: GiB. As the maker states."""

    name: str
    bandwidth: float
    products: float
    memory: int = 0


CARDS = {card.name: card for card in (
    Card("RTX 3050", 168e9, 13.6e12, 6),
    Card("RTX 4060", 272e9, 30e12, 8),
    Card("RTX 3060", 360e9, 25e12, 12),
    Card("RTX 4070", 504e9, 58e12, 12),
    Card("RTX 4060 Ti", 288e9, 44e12, 16),
    Card("RTX 3090", 936e9, 71e12, 24),
    Card("RTX 4090", 1008e9, 165e12, 24),
    Card("RTX 5090", 1792e9, 209e12, 32),
    Card("A100", 2039e9, 312e12, 80),
    Card("H100", 3350e9, 989e12, 80),
    Card("H200", 4800e9, 989e12, 141))}


def card_named(name: str) -> Card:
    """The card of this name in any spelling; SSDError names those that are known."""
    found = {plain(each): card for each, card in CARDS.items()}
    asked = plain(name).removeprefix("nvidia").removeprefix("geforce")
    if asked not in found and f"rtx{asked}" not in found:
        raise SSDError(f"card {name!r}: choose one of {', '.join(CARDS)}")
    return found.get(asked) or found[f"rtx{asked}"]


def plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def roofline(launches: int, *seconds: float) -> float:
    """Modelled seconds of a pass: the longest of its launches, its reads and its products."""
    return max(launches * LAUNCH, *seconds)


def pass_seconds(model: ModelSize, grid: Grid, card: Card, cells: int,
                 dtype: str = "bf16") -> float:
    """Seconds of a pass over so many cells of each branch, in the middle of a picture."""
    shape, branches = model.shape, 1 + (model.preset.cfg != 1)
    weights = model.matrices + model.image_head
    cached = shape.layers * shape.kv_heads * shape.head_dim * (model.prompt_slots + grid.slots)
    # Half of the keys and of the values, two bytes each
    reads = WEIGHT_BYTES[dtype] * weights + 2 * branches * cached
    return roofline(LAUNCHES, reads / (REACHED * card.bandwidth),
                    2 * weights * cells * branches / (COMPUTED * card.products))


@dataclass(frozen=True)
class OnCard:
    """A model in a dtype on a card that is not here."""

    model: ModelSize
    card: Card
    dtype: str = "bf16"

    def pass_of(self, method: str, cells: int) -> float:
        """Seconds of a pass of a method over so many cells."""
        small = SMALL_KERNELS * self.model.shape.layers + JUDGE.get(method, 0.0)
        return pass_seconds(self.model, self.model.grid, self.card, cells, self.dtype) + small

    def faithful(self) -> float:
        """Seconds of `exact` by the window that is quickest here; its passes are a stand-in's."""
        shares = windows(stand_in_shares(self.model.grid), Exact.name, "none")
        return min(self.model.grid.cells * share * self.pass_of(Exact.name, cells)
                   for cells, share in shares)

    def budgeted(self, method: Rolling) -> float:
        """Seconds of *Balanced* or *Fast*, with the window that suits the card."""
        grid = self.model.grid
        cells = cells_of(lambda cells: self.pass_of(method.name, cells))
        return self.planned(method.for_device(grid, "cuda", cells))

    def planned(self, method: Method) -> float:
        """Seconds of a method with a fixed number of passes."""
        grid, method = self.model.grid, method.resolve(self.model.preset)
        planned = plan(grid, method)
        return (planned.passes or planned.passes_max) * self.pass_of(method.name,
                                                                     method.pass_width(grid))

    def seconds(self) -> dict[str, float]:
        """Seconds of a picture, without prompt and pixels, by the title of each quality."""
        return {"Reference": self.planned(AR()), "Faithful": self.faithful(),
                "Balanced": self.budgeted(Rolling()), "Fast": self.budgeted(Rolling(fewer=12.0)),
                "ssd": self.planned(SSD())}


def seconds_on(card: Card, model: ModelSize, dtype: str) -> dict[str, str]:
    """Seconds of each quality in words; dtype: as of `fit`."""
    dtype = {"auto": model.dtype, EITHER: "int8"}.get(dtype, dtype)
    seconds = OnCard(model, card, dtype).seconds()
    return {title: seconds_text(each, dtype) for title, each in seconds.items()}


COMPUTED_ONLY = ("computed, not measured, of one picture at the model's own size and guidance; ? "
                 "marks a dtype that has never been timed on such a card")


def seconds_text(seconds: float, dtype: str = "bf16") -> str:
    """One significant figure, which is what the model is good for; "?" marks an untried dtype."""
    return f"{float(f'{seconds:.1g}'):g} s{'?' * (dtype in UNTRIED)}"
