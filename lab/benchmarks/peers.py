"""The same Janus-Pro and Emu3 by transformers, by a plain loop, and by this engine: seconds.

    python lab/benchmarks/peers.py [NAME ...] [--device cuda] [--compile] [--out FILE.md]

All sides have the same random weights, in one process, and take turns. Greedy tokens are compared
first, so that the same work is timed; then each side samples at temperature 1. On a CPU the models
are scaled down, and every side counts with the number of threads that is best for it, one or all;
on a card they have their true size.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
import transformers
from conditions import conditions, table, write_page
from plain_loop import plain_loop
from random_backbones import narrowed, random_backbone, random_heads
from script import options
from transformers_loop import emu3, emu3_loop, janus, janus_loop

from ssd_core import Sampling, generate
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.emu3 import NEGATIVE, POSITIVE
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.events import finished
from ssd_core.engine.methods import AR, SSD
from ssd_core.measure.bench import fastest, in_words, settings, take_turns, thread_counts
from ssd_core.measure.machine import synchronised
from ssd_core.model.grid import Grid
from ssd_core.model.processor import prefers_column_major
from ssd_core.weights.catalogue import KnownBackbone, known
from ssd_core.weights.load import DTYPES, pick_device, pick_dtype
from ssd_core.weights.model_size import stored_dtype

NAMES = ("Janus-Pro-1B", "Emu3-Gen")
WORDS = len(NEGATIVE.split()) - len(POSITIVE.split())  # Emu3's branches then have one length
PROMPT = " ".join(["house"] * WORDS)
SCALED = {"layers": 2, "heads": 4, "codes": 4096, "side": 16}
HEAD = ["backbone", "drawn by", "passes", "seconds", "spread", "best setting",
        "as fast as transformers", "as fast as the plain loop", "same greedy tokens"]
Draw = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Side:
    """greedy and sampled draw a picture and return its tokens [slots]; greedy is None if not AR."""

    label: str
    passes: str
    sampled: Draw
    greedy: Draw | None = None


def scaled(row: KnownBackbone) -> KnownBackbone:
    """Fewer layers, heads and codes; heads as wide as real ones. Emu3's grid is smaller, too."""
    shape = narrowed(row.shape, SCALED["layers"], SCALED["heads"], row.shape.head_dim)
    grid = Grid(SCALED["side"], SCALED["side"], True) if row.grid.row_end else row.grid
    words = 64 + SCALED["codes"] * (row.family == "Emu3")
    return replace(row, shape=shape, grid=grid, codes=SCALED["codes"], vocabulary=words,
                   codec_channels=32)


def engine(backbone: Backbone, method, sampling: Sampling, heads=None) -> Draw:
    def draw() -> torch.Tensor:
        done = finished(generate(backbone, PROMPT, method, heads, sampling,
                                 threads=torch.get_num_threads()))
        return with_row_ends(done.tokens[0], backbone)

    return draw


def with_row_ends(tokens: torch.Tensor, backbone: Backbone) -> torch.Tensor:
    """[R, C] -> [slots]."""
    if backbone.grid.row_end:
        tokens = torch.nn.functional.pad(tokens, (0, 1), value=backbone.codes)
    return tokens.flatten()


def sides(backbone: Backbone, compiled: bool) -> list[Side]:
    """All sides, with the same weights."""
    make, loop = (emu3, emu3_loop) if backbone.grid.row_end else (janus, janus_loop)
    model, cfg = make(backbone), backbone.preset.cfg
    branches = prompt_branches(backbone, [PROMPT], None, cfg)
    if prefers_column_major(backbone.device, backbone.dtype):
        backbone.decoder.store_column_major()  # as the engine stores them on a CPU
    heads = random_heads(backbone, backbone.preset.k_h, backbone.preset.k_v)
    cells, slots = backbone.grid.cells, backbone.grid.slots
    twice = " twice" if backbone.grid.row_end else ""
    theirs = [Side(f"transformers, {cache} cache", f"{slots}{twice}",
                   *(loop(backbone, model, branches, cfg, greedy, cache)
                     for greedy in (False, True))) for cache in ("static", "dynamic")]
    plain = [Side("plain loop" + ", compiled" * way, str(slots),
                  *(plain_loop(backbone, branches, cfg, greedy, way) for greedy in (False, True)))
             for way in ((False, True) if compiled else (False,))]
    ours = [Side("this engine, AR", str(cells), engine(backbone, AR(), Sampling(seed=1)),
                 engine(backbone, AR(), Sampling(temperature=0))),
            Side("this engine, SSD",
                 str(SSD().resolve(backbone.preset).plan(backbone.grid).passes),
                 engine(backbone, SSD(), Sampling(seed=1), heads))]
    return [*theirs, *plain, *ours]


def work(draw: Draw, device: torch.device) -> Mapping:
    """Draw, and wait until the device has finished."""
    draw()
    synchronised(device)
    return {}


def measure(row: KnownBackbone, device: torch.device, dtype: torch.dtype, repeats: int,
            compiled: bool) -> dict:
    """The best seconds of every side, and the share of greedy tokens that equal AR's."""
    backbone = random_backbone(row, device, dtype)
    everyone, name = sides(backbone, compiled), stored_dtype(backbone)
    greedy = {side.label: side.greedy() for side in everyone if side.greedy}  # also warms up
    own = greedy["this engine, AR"]
    timed = {side.label: settings(side.label, name, thread_counts(device),
                                 partial(work, side.sampled, device)) for side in everyone}
    take_turns([setting for every in timed.values() for setting in every], repeats)
    best = {label: fastest(every) for label, every in timed.items()}
    results = [{"label": side.label, "passes": side.passes, "seconds": best[side.label].seconds,
              "threads": best[side.label].threads,
              "same": (greedy[side.label] == own).float().mean().item() if side.greedy else None}
             for side in everyone]
    s = row.shape
    return {"name": row.name, "grid": str(row.grid), "layers": s.layers, "hidden": s.hidden,
            "codes": row.codes, "parameters": sum(w.numel() for w in backbone.parameters()),
            "dtype": name, "sides": results}


def least(result: dict, label: str) -> float:
    """Median seconds of the fastest side whose label begins with `label`."""
    return min(statistics.median(side["seconds"]) for side in result["sides"]
               if side["label"].startswith(label))


def lines(result: dict) -> list[list[str]]:
    """Table lines; ratios are against the faster cache of transformers and faster plain loop."""
    theirs, plain = least(result, "transformers"), least(result, "plain loop")
    written = []
    for side in result["sides"]:
        seconds = statistics.median(side["seconds"])
        same = "" if side["same"] is None else f"{100 * side['same']:.1f} %"
        written.append([result["name"], side["label"], side["passes"], f"{seconds:.2f}",
                        f"{min(side['seconds']):.2f} to {max(side['seconds']):.2f}",
                        in_words(side["threads"]), f"{theirs / seconds:.2f}",
                        f"{plain / seconds:.2f}", same])
    return written


def page(results: list[dict], device: torch.device, repeats: int) -> list[str]:
    """The paragraphs and the table of the page."""
    sizes = "; ".join(f"{r['name']}: grid {r['grid']}, {r['layers']} layers of width "
                      f"{r['hidden']}, {r['codes']:,} codes, {r['parameters'] / 1e6:,.0f} M "
                      "parameters" for r in results)
    cpu = ("Scaled down for a CPU: the ratios hold for these sizes only. Every side was timed with "
           "each number of threads and counts with the one that is best for it. "
           if device.type == "cpu" else "True sizes. ")
    where = conditions(device, results[0]["dtype"], thread_counts(device))
    return [
        f"{where}, transformers {transformers.__version__}; SDPA attention everywhere. {cpu}One "
        f"picture, guidance on, without pixels, medians of {repeats} turns; prompt included. "
        f"{sizes}.", table(HEAD, [line for r in results for line in lines(r)]),
        "All sides have the same random weights. Same greedy tokens: share of equal tokens at "
        "temperature 0, compared with this engine's AR; seconds are of sampling at temperature 1. "
        "As fast as transformers: against the faster of its two caches, at its best. For Emu3 "
        "transformers' `generate` computes guidance in a second pass for each token and "
        "constrains ids by a function, as the model's documentation has it; the other sides "
        "compute both branches in one pass. The plain loop is `lab/benchmarks/plain_loop.py`, in "
        "the manner of gpt-fast.",
        "SSD's heads are random, too, and every planned round is run: the figure shows what its "
        "schedule costs and says nothing about the quality of pictures."]


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__, "peers.md")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto", choices=("auto", *DTYPES))
    parser.add_argument("--scaled", action=argparse.BooleanOptionalAction,
                        help="models made small; the default on a CPU")
    parser.add_argument("--side", type=int, help="rows and columns of Emu3's picture")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="the plain loop compiled, too")
    args = parser.parse_args(arguments)
    device, results = pick_device(args.device), []
    small = device.type == "cpu" if args.scaled is None else args.scaled
    transformers.logging.set_verbosity_error()
    for row in map(known, args.names):
        row = scaled(row) if small else row
        if args.side and row.grid.row_end:  # Janus-Pro draws one size only
            row = replace(row, grid=Grid(args.side, args.side, row.grid.row_end))
        print(row.name, file=sys.stderr)
        results.append(measure(row, device, pick_dtype(args.dtype, device, small), args.repeats,
                               args.compile))
    write_page(args.out, "Beside transformers and a plain loop",
               *page(results, device, args.repeats))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
