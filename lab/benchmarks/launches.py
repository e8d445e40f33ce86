"""Kernels that a forward pass launches, verification and drafts included: counted, not timed.

    python lab/benchmarks/launches.py [NAME ...] [--out FILE.md]

An operation counts if its result is new memory or is written in place; views cost nothing. Counted
on a CPU in fp16, at true depth but narrow: a card launches the same operations in half precision,
and libraries may split one into several kernels. One picture, with guidance where the model has it,
median over the passes of a picture's first rows. With graphs, a replay counts as one launch, beside
the copies into and out of its buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from conditions import CPU, conditions, table, write_page
from random_backbones import random_backbone, random_heads, scaled
from script import described, options, postcard

from ssd_core import Sampling
from ssd_core.backbones.base import Backbone
from ssd_core.engine.decode import prepare
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, SSD, Exact, Method, Rows
from ssd_core.measure.launches import by_graphs, counted, directly, medians
from ssd_core.weights.catalogue import known

NAMES = ("Janus-Pro-1B", "Janus-Pro-7B", "Lumina-mGPT-7B-768", "Emu3-Gen", "SimpleAR-0.5B-RL",
         "Lumina-mGPT-2.0", "Emu3.5-Image", "GLM-Image")  # finetunes launch what their base does
METHODS = {"ar": AR(), "ssd r=2": SSD(k_h=5, k_v=1, rounds=2, incremental=0),
           "exact": Exact(), "rows": Rows(k_h=5, k_v=1, rounds=2)}


def launches(backbone: Backbone, heads: DraftHeads, method: Method) -> list[str]:
    """Launches by kind of pass, without graphs and with them."""
    guidance = min(backbone.preset.cfg, 2.0)  # GLM-Image draws its codes without
    run = prepare(backbone, "a house", method, heads, Sampling(cfg=guidance))
    return [", ".join(f"{stage} {count}" for stage, count in
                      sorted(medians(counted(run, runner_of)).items()))
            for runner_of in (directly, by_graphs())]


def subjects(names: Sequence[str]):
    """(name, backbone, heads) of the catalogue's rows at true depth; of postcard too if no names
    were asked for.
    """
    if not names:
        loaded = postcard("fp16")
        yield "postcard (6 layers)", loaded.backbone, loaded.heads
    for name in names or NAMES:
        row = known(name)
        narrow = scaled(row)
        narrow = replace(narrow, shape=replace(narrow.shape, layers=row.shape.layers))
        backbone = random_backbone(narrow, CPU, torch.float16)
        yield f"{name} ({row.shape.layers} layers)", backbone, random_heads(backbone, 5, 4)


def main() -> None:
    parser = options(__doc__, "launches.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of the catalogue; default: all")
    args = parser.parse_args()
    rows = []
    for name, backbone, heads in subjects(args.names):
        for label, method in METHODS.items():
            rows.append([name, label, *launches(backbone, heads, method)])
            print(*rows[-1], flush=True)
    head = ["backbone", "decoding", "launches by kind of pass", "with graphs"]
    write_page(args.out, "Launches a pass", f"{described(__doc__)} {conditions()}. Made by "
               "`python lab/benchmarks/launches.py`.", table(head, rows))


if __name__ == "__main__":
    main()
