"""Passes of a decoder as wide and deep as Janus-Pro-1B, by width and dtype, and their total time.

    python lab/benchmarks/wide_passes.py

Random weights, guidance on, one picture. Milliseconds are measured, decoder and image head. Seconds
a picture are computed from them and from the passes of a stand-in that is as hard to guess
(stand_in_passes.json): what real weights would take is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import torch
from conditions import CPU, conditions, table, write_page
from passes import backbone_pass, seconds_of
from random_backbones import random_backbone
from script import described, options

from ssd_core.backbones.base import Backbone
from ssd_core.engine.prior_passes import stand_in_shares
from ssd_core.engine.threads import using_threads
from ssd_core.measure.bench import thread_counts
from ssd_core.weights.catalogue import known
from ssd_core.weights.load import DTYPES
from ssd_core.weights.quantize import quantise, quantise_image_head, quantiser

NAME, PRECISIONS = "Janus-Pro-1B", ("fp32", "bf16", "int8")
CELLS, AR_PASSES = (1, 8, 16, 24, 48, 96), 576


def backbone_in(precision: str) -> Backbone:
    backbone = random_backbone(known(NAME), CPU, DTYPES.get(precision, torch.bfloat16))
    if precision == "int8":
        quantise(backbone.decoder, quantiser("int8", CPU))
        quantise_image_head(backbone)
    return backbone


def pass_ms(backbone: Backbone, cells: int, threads: int, repeats: int) -> float:
    """Milliseconds of the fastest of a few passes over so many cells."""
    with using_threads(threads):
        return 1000 * min(seconds_of(backbone_pass(backbone, cells), repeats))


def measured(repeats: int) -> Iterator[tuple[str, int, float]]:
    """(precision, cells, milliseconds with the better number of threads)."""
    for precision in PRECISIONS:
        backbone = backbone_in(precision)
        for cells in CELLS:
            ms = min(pass_ms(backbone, cells, count, repeats) for count in thread_counts(CPU))
            print(precision, cells, f"{ms:.0f}", flush=True)
            yield precision, cells, ms


def faithful(ms: dict[int, float]) -> tuple[int, float]:
    """The window of `exact` that costs least with the passes of a stand-in, and its seconds."""
    shares = stand_in_shares(known(NAME).grid)
    seconds = {cells: ms[cells] * AR_PASSES * shares[f"exact/{cells}/none"] / 1000
               for cells in CELLS if f"exact/{cells}/none" in shares}
    window = min(seconds, key=seconds.__getitem__)
    return window, seconds[window]


def main() -> None:
    parser = options(__doc__, "wide_passes.md")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    ms: dict[str, dict[int, float]] = defaultdict(dict)
    for precision, cells, milliseconds in measured(args.repeats):
        ms[precision][cells] = milliseconds
    slowest, rows = AR_PASSES * ms["fp32"][1] / 1000, []
    for precision, own in ms.items():
        ar, (window, seconds) = AR_PASSES * own[1] / 1000, faithful(own)
        rows.append([precision, *(f"{own[cells]:.0f}" for cells in CELLS), f"{ar:.0f}", str(window),
                     f"{seconds:.0f}", f"{ar / seconds:.1f}", f"{slowest / seconds:.1f}"])
    widths = [f"{cells} cell{'s' * (cells > 1)}, ms" for cells in CELLS]
    head = ["dtype", *widths, "AR, s (computed)", "window of exact", "exact, s (computed)",
            "against AR, same dtype", "against AR, fp32"]
    write_page(args.out, "Passes of a decoder of Janus-Pro-1B's size",
               f"{described(__doc__)} Made by `python lab/benchmarks/wide_passes.py`. "
               f"{conditions(threads=thread_counts(CPU))}.", table(head, rows))


if __name__ == "__main__":
    main()
