"""Passes by window that a stand-in for large models takes: what plans tell before a first picture.

    python lab/benchmarks/stand_in_passes.py

Writes ssd_core/assets/stand_in_passes.json: shares of the passes that the slowest picture would
take, on two grids, by the keys of ssd_core/engine/own_runs.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import fmean

import torch
from script import options
from stand_in import StandIn, janus_like, lumina_like

from ssd_core import Sampling, generate
from ssd_core.engine.events import finished
from ssd_core.engine.methods import SJD, Exact, Wave
from ssd_core.engine.methods.window import Tunable
from ssd_core.engine.own_runs import key_of
from ssd_core.engine.prior_passes import STAND_IN
from ssd_core.files import write_text

PICTURES = 2
# No wider ones: its tokens depend on few others, those of real models on more
WINDOWS = (8, 13, 16, 24, 48, 96)
CELLS = (2, 4, 8, 16)  # of each row, for wave


def settings() -> Iterator[Tunable]:
    for kind in (Exact, SJD):
        yield from (kind(window) for window in WINDOWS)
    yield from (Wave(cells=cells) for cells in CELLS)


def share(stand_in: StandIn, method: Tunable, pictures: int) -> float:
    """The mean passes of so many pictures, of those that the slowest would take."""
    passes = [finished(generate(stand_in, "any", method, None, Sampling(seed=seed))).stats["passes"]
              for seed in range(pictures)]
    return fmean(passes) / method.slowest_passes(stand_in.grid)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--pictures", type=int, default=PICTURES, help="of each setting")
    args = parser.parse_args()
    torch.set_num_threads(1)
    shares: dict[str, dict[str, float]] = {}
    for stand_in in (janus_like(), lumina_like()):
        grid = stand_in.grid
        own = shares[f"{grid.rows}x{grid.columns}"] = {}
        for method in settings():
            key = key_of(method, stand_in, False)
            own[key] = round(share(stand_in, method, args.pictures), 4)
            print(grid, key, own[key], flush=True)
    source = (f"janus_like and lumina_like of lab/benchmarks/stand_in.py, {args.pictures} pictures "
              "each; made by lab/benchmarks/stand_in_passes.py")
    write_text(STAND_IN, json.dumps({"source": source, "shares": shares}, indent=1) + "\n")


if __name__ == "__main__":
    main()
