"""How many passes `exact` usually takes: figures shipped with postcard, and the user's own runs.

Own runs are remembered in this process; a host that wants to keep them names a folder (`keep_in`).
Only hashes and counts are stored. Knows no host.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ..backbones.base import Backbone
from ..backbones.presets import settled
from ..errors import SSDError
from ..files import ASSETS, written_whole
from ..model.sampling import Sampling
from .methods import Exact, Method

BUNDLED = ASSETS / "postcard" / "usual.json"
FILE = "usual_passes.json"
MOST_KEYS, MEMORY = 64, 32  # entries in the file; weight of a mean, in runs


class Record:
    """Mean passes and number of runs by key. When full, drops the key updated longest ago."""

    def __init__(self) -> None:
        self.means: dict[str, tuple[float, int]] = {}
        self.path: Path | None = None

    def keep_in(self, folder: str | Path) -> None:
        """Load means from a file in this folder, and save to it from now on.

        An unreadable file counts as empty.
        """
        self.path = Path(folder) / FILE
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            self.means |= {str(key): (float(mean), int(runs))
                           for key, (mean, runs) in list(raw.items())[:MOST_KEYS]
                           if 0 < mean < 1e6 and runs > 0}

    def add(self, key: str, passes: float) -> None:
        mean, runs = self.means.pop(key, (passes, 0))
        runs = min(runs + 1, MEMORY)
        self.means[key] = mean + (passes - mean) / runs, runs
        while len(self.means) > MOST_KEYS:
            self.means.pop(next(iter(self.means)))
        if self.path is not None:
            with contextlib.suppress(SSDError, OSError), written_whole(self.path) as temporary:
                temporary.write_text(json.dumps(self.means), encoding="utf-8")


OWN = Record()


def key_of(method: Exact, backbone: Backbone | type[Backbone], heads: bool, device: str) -> str:
    drafter = method.drafter if heads else "none"
    return f"exact/{method.width(backbone.grid, device)}/{drafter}"


def note(backbone: Backbone, method: Method, heads: bool, sampling: Sampling, stats: Mapping,
         keep_rows: int = 0) -> None:
    """Record a finished run, if it is of the kind that plans estimate: `exact`, plain sampling."""
    given, own = (settled(one, backbone.preset) for one in (sampling, Sampling()))
    plain = all(getattr(given, name) == getattr(own, name)
                for name in ("temperature", "top_k", "top_p", "min_p"))
    if isinstance(method, Exact) and plain and not keep_rows and backbone.sha256:
        key = key_of(method, backbone, heads, backbone.device.type)
        each = stats["passes_each"]
        OWN.add(f"{backbone.sha256[:16]}/{backbone.grid}/{key}", sum(each) / len(each))


def usual_passes(backbone: Backbone | type[Backbone], method: Method, heads: bool, device: str,
                 keep_rows: int = 0) -> int | None:
    """Estimated passes of a run, or None if nothing is known."""
    if not isinstance(method, Exact):
        return None
    grid, key = backbone.grid, key_of(method, backbone, heads, device)
    own = OWN.means.get(f"{backbone.sha256[:16]}/{grid}/{key}")
    known = own[0] if own else bundled_for(backbone).get(key)
    if known is None:
        return None
    return max(1, round(known * (grid.rows - keep_rows) / grid.rows))


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
