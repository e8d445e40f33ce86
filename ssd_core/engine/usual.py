"""How many passes a window usually takes: figures shipped with postcard, and the user's own runs.

Own runs are remembered in this process; a host that wants to keep them names a folder (`keep_in`).
Only hashes and counts are stored. Knows no host.
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
from .kept import MOST_KEYS, Kept, drop_oldest
from .methods import Method
from .methods.paced import Paced

BUNDLED = ASSETS / "postcard" / "usual.json"
FILE = "usual_passes.json"
CURVE_GRID = Grid(24, 24)  # of postcard, whose passes by window are shipped
MEMORY = 32  # weight of a mean, in runs
PRIOR = 4  # runs that the shipped curve counts for: pictures differ
ENOUGH = 10  # own runs whose mean takes the place of a shipped figure


class Record(Kept):
    """Mean passes and number of runs by key. When full, drops the key updated longest ago."""

    file = FILE

    def __init__(self) -> None:
        super().__init__()
        self.means: dict[str, tuple[float, int]] = {}

    def load(self, raw: dict) -> None:
        self.means |= {str(key): (float(mean), int(runs))
                       for key, (mean, runs) in list(raw.items())[:MOST_KEYS]
                       if 0 < mean < 1e6 and runs > 0}

    def to_json(self) -> dict:
        return self.means

    def add(self, key: str, passes: float) -> None:
        mean, runs = self.means.pop(key, (passes, 0))
        runs = min(runs + 1, MEMORY)
        self.means[key] = mean + (passes - mean) / runs, runs
        drop_oldest(self.means)
        self.save()


OWN = Record()


def kind_of(method: Method, heads: bool) -> tuple[str, str] | None:
    """A method's name and drafter, if windows are known to decide how many passes it takes.

    None also where a knob beside these two is not as usual.
    """
    if not isinstance(method, Paced):
        return None
    given = {f.name: getattr(method, f.name) for f in fields(method)}
    own = {name: given[name] for name in ("window", "cells", "drafter", "fewer") if name in given}
    if method != type(method)(**own):
        return None
    name = f"{method.name}-{own['fewer']:g}" if "fewer" in own else method.name
    return name, given.get("drafter", "none") if heads else "none"


def key_of(method: Paced, backbone: Backbone | type[Backbone], heads: bool, device: str) -> str:
    name, drafter = kind_of(method, heads) or (method.name, "other")
    return f"{name}/{method.width(backbone.grid, device)}/{drafter}"


def note(backbone: Backbone, method: Method, heads: bool, sampling: Sampling, stats: Mapping,
         keep_rows: int = 0) -> None:
    """Record a finished run, if it is of the kind that plans estimate, with plain sampling."""
    given, own = (resolve_sampling(one, backbone.preset) for one in (sampling, Sampling()))
    plain = all(getattr(given, name) == getattr(own, name)
                for name in ("temperature", "top_k", "top_p", "min_p"))
    if isinstance(method, Paced) and kind_of(method, heads) and plain and not keep_rows and (
            backbone.sha256):
        key = key_of(method, backbone, heads, backbone.device.type)
        each = stats["passes_each"]
        OWN.add(f"{backbone.sha256[:16]}/{backbone.grid}/{key}", sum(each) / len(each))


def usual_passes(backbone: Backbone | type[Backbone], method: Method, heads: bool, device: str,
                 keep_rows: int = 0) -> int | None:
    """Passes that runs with this very window usually take, or None if nothing is known.

    Own runs count from the first one where no figure is shipped, else once there are ENOUGH.
    """
    if not isinstance(method, Paced) or kind_of(method, heads) is None:
        return None
    grid, key = backbone.grid, key_of(method, backbone, heads, device)
    own, runs = OWN.means.get(f"{backbone.sha256[:16]}/{grid}/{key}", (None, 0))
    shipped = bundled_for(backbone).get(key)
    known = shipped if shipped and runs < ENOUGH else own
    if known is None:
        return None
    return max(1, round(known * (grid.rows - keep_rows) / grid.rows))


def expected_passes(backbone: Backbone, method: Paced, heads: bool) -> dict[int, float]:
    """Passes of a whole picture by window: postcard's curve, moved to where own runs lie.

    Empty if nothing is known of methods like this. For other backbones the curve has postcard's
    share of passes in cells, until runs of their own tell better.
    """
    kind = kind_of(method, heads)
    if kind is None:
        return {}
    grid = backbone.grid
    share = method.longest(grid) / method.longest(CURVE_GRID)
    curve = {window: share * passes for window, passes in windows(bundled()["passes"], *kind)}
    prefix = f"{backbone.sha256[:16]}/{grid}/"
    own = {key.removeprefix(prefix): one for key, one in OWN.means.items()
           if key.startswith(prefix)}
    passes = dict(windows({key: mean for key, (mean, _) in own.items()}, *kind))
    runs = dict(windows({key: count for key, (_, count) in own.items()}, *kind))
    if not curve:
        return passes
    extra = sum(runs[one] * (passes[one] / between(curve, one) - 1) for one in passes)
    moved = 1 + extra / (PRIOR + sum(runs.values()))
    return {**{window: moved * known for window, known in curve.items()},
            **{window: (PRIOR * moved * between(curve, window) + runs[window] * passes[window])
               / (PRIOR + runs[window]) for window in passes}}


def windows(figures: Mapping[str, float], name: str, drafter: str) -> list[tuple[int, float]]:
    """(window, passes) of the figures of one kind."""
    parts = [(key.split("/"), passes) for key, passes in figures.items()]
    return [(int(window), passes) for (own, window, by), passes in parts
            if (own, by) == (name, drafter)]


def between(curve: Mapping[int, float], window: int) -> float:
    """The curve's value at a window: straight between known ones where both axes are logarithms.

    Level beyond the known ones.
    """
    known = sorted(curve)
    above = next((one for one in known if one >= window), known[-1])
    below = next((one for one in reversed(known) if one <= window), known[0])
    if above <= below:
        return curve[above]
    part = math.log(window / below) / math.log(above / below)
    return curve[below] * (curve[above] / curve[below]) ** part


def bundled_for(backbone: Backbone | type[Backbone]) -> dict[str, int]:
    """The shipped figures if this is `postcard` (a class has no hash yet), else none."""
    kept = bundled()
    same = backbone.sha256 in ("", kept["sha256"]) and backbone.name == "postcard"
    return kept["passes"] if same else {}


@cache
def bundled() -> dict:
    if not BUNDLED.is_file():
        return {"sha256": "", "passes": {}}
    return json.loads(BUNDLED.read_text(encoding="utf-8"))
