"""Passes that a run will take, before it runs: of this backbone's own pictures, or of a stand-in.

`postcard` comes with figures of its own (assets/postcard/prior_passes.json). Every other backbone
begins with those of a stand-in as hard as large models (assets/stand_in_passes.json), never with
postcard's. Knows no host.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from ..backbones.base import Backbone
from ..files import ASSETS
from ..model.grid import Grid
from .methods import Method
from .methods.window import Tunable
from .own_runs import kind_of, own_pictures
from .region import Region

BUNDLED = ASSETS / "postcard" / "prior_passes.json"
STAND_IN = ASSETS / "stand_in_passes.json"
CURVE_GRID = Grid(24, 24)  # the grid of postcard's figures
PRIOR = 4  # weight of the first figures, in pictures, because pictures differ
ENOUGH = 10  # own pictures after which they alone count; by a window, their mean


@dataclass(frozen=True)
class Prior:
    """Expected passes. pictures: the own ones by this method, with any window, that count in them.
    stand_in: there are none, so that the passes are a stand-in's.
    """

    passes: int
    pictures: int
    stand_in: bool


def prior_of(backbone: Backbone | type[Backbone], method: Method, heads: bool,
             region: Region) -> Prior | None:
    """The expected passes over a region, or None if nothing is known."""
    if not isinstance(method, Tunable) or not (curve := expected_passes(backbone, method, heads)):
        return None
    whole = between(curve, method.window_on(backbone.grid))
    return Prior(max(1, round(whole * region.cells / backbone.grid.cells)),
                 sum(map(len, own_of(backbone, method, heads).values())),
                 by_stand_in(backbone, method, heads))


def by_stand_in(backbone: Backbone | type[Backbone], method: Tunable, heads: bool) -> bool:
    """Whether `expected_passes` rest on a stand-in alone."""
    return not is_postcard(backbone) and not own_of(backbone, method, heads) and (
        first_figures(backbone, method, heads) != {})


def expected_passes(backbone: Backbone | type[Backbone], method: Tunable,
                    heads: bool) -> dict[int, float]:
    """Passes of a whole picture by window: the first figures, fitted to the user's own pictures.

    Empty if nothing is known about methods like this.
    """
    own = own_of(backbone, method, heads)
    passes = {window: fmean(each) for window, each in own.items()}
    curve = first_figures(backbone, method, heads)
    if not curve:
        return passes
    count = {window: len(each) for window, each in own.items()}
    extra = sum(count[window] * (passes[window] / between(curve, window) - 1) for window in own)
    total = sum(count.values())
    moved = 1 + extra / (weight_beside(total) + total)
    first = {window: weight_beside(count[window]) for window in own}
    return {**{window: moved * known for window, known in curve.items()},
            **{window: (first[window] * moved * between(curve, window)
                        + count[window] * passes[window]) / (first[window] + count[window])
               for window in own}}


def weight_beside(pictures: int) -> int:
    """The weight of the first figures beside so many own pictures, in pictures."""
    return PRIOR if pictures < ENOUGH else 0


def own_of(backbone: Backbone | type[Backbone], method: Tunable,
           heads: bool) -> dict[int, list[float]]:
    """The passes of the user's own pictures by window."""
    kind = kind_of(method, heads)
    if kind is None:
        return {}
    return {int(window): [each.passes for each in pictures]
            for key, pictures in own_pictures(backbone).items()
            for name, window, by in [key.split("/")] if (name, by) == kind}


def first_figures(backbone: Backbone | type[Backbone], method: Tunable,
                  heads: bool) -> dict[int, float]:
    """Passes of a whole picture by window, before anything was drawn.

    Draft heads of other backbones count for nothing: how much theirs save is not known.
    """
    kind = kind_of(method, heads)
    if kind is None:
        return {}
    slowest = method.slowest_passes(backbone.grid)
    if is_postcard(backbone):
        share = slowest / method.slowest_passes(CURVE_GRID)
        return {window: share * passes for window, passes in windows(bundled()["passes"], *kind)}
    return {window: slowest * share
            for window, share in windows(stand_in_shares(backbone.grid), kind[0], "none")}


def windows(figures: Mapping[str, float], name: str, drafter: str) -> list[tuple[int, float]]:
    """(window, figure) of the figures of a kind, by the keys of own_runs.py."""
    parts = [(key.split("/"), figure) for key, figure in figures.items()]
    return [(int(window), figure) for (own, window, by), figure in parts
            if (own, by) == (name, drafter)]


def between(curve: Mapping[int, float], window: int) -> float:
    """The curve's value at a window, interpolated linearly on logarithmic axes.

    Constant beyond the known windows.
    """
    known = sorted(curve)
    above = next((size for size in known if size >= window), known[-1])
    below = next((size for size in reversed(known) if size <= window), known[0])
    if above <= below:
        return curve[above]
    part = math.log(window / below) / math.log(above / below)
    return curve[below] * (curve[above] / curve[below]) ** part


def is_postcard(backbone: Backbone | type[Backbone]) -> bool:
    """Whether the shipped figures are of this backbone; a class has no hash yet."""
    return backbone.name == "postcard" and backbone.sha256 in ("", bundled()["sha256"])


def stand_in_shares(grid: Grid) -> dict[str, float]:
    """The stand-in's passes by the keys of own_runs.py, on the grid whose rows are nearest in
    length, as shares of the passes that the slowest picture would take.
    """
    shares = stand_in()["shares"]
    nearest = min(shares, key=lambda name: abs(math.log(Grid.parse(name).columns / grid.columns)))
    return shares[nearest]


@cache
def bundled() -> dict:
    """postcard's `sha256`, and its `passes` by the keys of own_runs.py."""
    return json.loads(BUNDLED.read_text(encoding="utf-8"))


@cache
def stand_in() -> dict:
    """A stand-in's `source` in words, and its `shares` by grid; see `stand_in_shares`."""
    return json.loads(STAND_IN.read_text(encoding="utf-8"))
