"""Prior pass counts by window, from figures shipped with postcard and the user's own runs.

Figures of own runs are in the backbone's `estimates`. Knows no host.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from functools import cache

from ..backbones.base import Backbone
from ..backbones.presets import resolve_sampling
from ..files import ASSETS
from ..model.grid import Grid
from ..model.sampling import Sampling
from .methods import Method
from .methods.tunable import Tunable
from .region import Region

BUNDLED = ASSETS / "postcard" / "prior_passes.json"
CURVE_GRID = Grid(24, 24)  # the grid of the shipped figures, postcard's
PRIOR = 4  # weight of the shipped curve, in runs, because pictures differ
UNSET = Sampling()
ENOUGH = 10  # own runs after which their mean replaces a shipped figure


def kind_of(method: Method, heads: bool) -> tuple[str, str] | None:
    """(name, drafter) of a method whose passes depend on its window alone, else None.

    None also if any other knob differs from its default.
    """
    if not isinstance(method, Tunable):
        return None
    knobs = {f.name: getattr(method, f.name) for f in fields(method)}
    own = {name: knobs[name] for name in ("window", "cells", "drafter", "fewer") if name in knobs}
    if method != type(method)(**own):
        return None
    name = f"{method.name}-{own['fewer']:g}" if "fewer" in own else method.name
    return name, knobs.get("drafter", "none") if heads else "none"


def key_of(method: Tunable, backbone: Backbone | type[Backbone], heads: bool) -> str:
    name, drafter = kind_of(method, heads) or (method.name, "other")
    return f"{name}/{method.window_on(backbone.grid)}/{drafter}"


def note(backbone: Backbone, method: Method, heads: bool, sampling: Sampling, stats: Mapping,
         partly: bool = False) -> None:
    """Record a finished run if plans estimate runs of its kind and its sampling is the default.

    partly: some cells were known.
    """
    used, default = (resolve_sampling(each, backbone.preset) for each in (sampling, UNSET))
    plain = all(getattr(used, name) == getattr(default, name)
                for name in ("temperature", "top_k", "top_p", "min_p"))
    if isinstance(method, Tunable) and kind_of(method, heads) and plain and not partly and (
            backbone.sha256):
        key = key_of(method.for_device(backbone.grid, backbone.device.type), backbone, heads)
        each = stats["passes_each"]
        backbone.estimates.passes.add(f"{backbone.sha256[:16]}/{backbone.grid}/{key}",
                                      sum(each) / len(each))


def prior_passes(backbone: Backbone | type[Backbone], method: Method, heads: bool,
                 region: Region) -> int | None:
    """The prior pass count of runs with exactly this window, or None if nothing is known.

    Own runs count from the first run if no figure is shipped, else after ENOUGH runs.
    """
    if not isinstance(method, Tunable) or kind_of(method, heads) is None:
        return None
    grid, key = backbone.grid, key_of(method, backbone, heads)
    own, runs = backbone.estimates.passes.entries.get(f"{backbone.sha256[:16]}/{grid}/{key}",
                                                       (None, 0))
    shipped = bundled_for(backbone).get(key)
    known = shipped if shipped and runs < ENOUGH else own
    if known is None:
        return None
    return max(1, round(known * region.cells / grid.cells))


def expected_passes(backbone: Backbone, method: Tunable, heads: bool) -> dict[int, float]:
    """Passes of a whole picture by window: postcard's curve, fitted to the user's own runs.

    Empty if nothing is known about methods like this. Other backbones start with postcard's ratio
    of passes to cells, which their own runs correct.
    """
    kind = kind_of(method, heads)
    if kind is None:
        return {}
    grid, means = backbone.grid, backbone.estimates.passes.entries
    share = method.slowest_passes(grid) / method.slowest_passes(CURVE_GRID)
    curve = {window: share * passes for window, passes in windows(bundled()["passes"], *kind)}
    prefix = f"{backbone.sha256[:16]}/{grid}/"
    own = {key.removeprefix(prefix): record for key, record in means.items()
           if key.startswith(prefix)}
    passes = dict(windows({key: mean for key, (mean, _) in own.items()}, *kind))
    runs = dict(windows({key: count for key, (_, count) in own.items()}, *kind))
    if not curve:
        return passes
    extra = sum(runs[window] * (passes[window] / between(curve, window) - 1) for window in passes)
    moved = 1 + extra / (PRIOR + sum(runs.values()))
    return {**{window: moved * known for window, known in curve.items()},
            **{window: (PRIOR * moved * between(curve, window) + runs[window] * passes[window])
               / (PRIOR + runs[window]) for window in passes}}


def windows(figures: Mapping[str, float], name: str, drafter: str) -> list[tuple[int, float]]:
    """(window, passes) of the figures of a kind."""
    parts = [(key.split("/"), passes) for key, passes in figures.items()]
    return [(int(window), passes) for (own, window, by), passes in parts
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


def bundled_for(backbone: Backbone | type[Backbone]) -> dict[str, int]:
    """The shipped figures if this is `postcard` (a class has no hash yet), else an empty dict."""
    shipped = bundled()
    same = backbone.sha256 in ("", shipped["sha256"]) and backbone.name == "postcard"
    return shipped["passes"] if same else {}


@cache
def bundled() -> dict:
    if not BUNDLED.is_file():
        return {"sha256": "", "passes": {}}
    return json.loads(BUNDLED.read_text(encoding="utf-8"))
