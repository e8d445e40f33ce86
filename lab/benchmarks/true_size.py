"""Real backbones at their true size with random weights: passes, seconds, bandwidth, memory.

    python lab/benchmarks/true_size.py [NAME ...] [--device cuda] [--out FILE.md]
    python lab/benchmarks/true_size.py --scaled          (the default on a CPU: rows made small)

Random weights take as long as trained ones, so passes and seconds are realistic; acceptance rates
are not, and are not reported. If AR would take too long, only its first and last rows are run and
the rest is interpolated, marked "~".
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from conditions import conditions, page_of, table
from memory import Peak
from passes import backbone_pass, seconds_of
from random_backbones import random_backbone, random_heads, scaled
from script import options

from ssd_core import Sampling, generate
from ssd_core.backbones.base import Backbone
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.events import FinalRows, Finished, Pass
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, SSD, Method
from ssd_core.engine.threads import using_threads
from ssd_core.files import write_text
from ssd_core.measure.bench import in_words, thread_counts
from ssd_core.measure.machine import copy_bandwidth, read_bytes, synchronised
from ssd_core.weights.catalogue import KnownBackbone, known
from ssd_core.weights.load import DTYPES, pick_device, pick_dtype
from ssd_core.weights.model_size import stored_dtype

NAMES = ("Janus-Pro-1B", "Janus-Pro-7B", "LlamaGen-c2i-XL-384", "LlamaGen-t2i-XL-512",
         "Tar-AR-DTok-512", "Anole-7B", "Lumina-mGPT-7B-768", "Emu3-Gen")
PROMPT = "a small house at the edge of a wood in the evening " * 9  # about a hundred words
SAMPLE_ROWS = 2  # of AR at either end of a picture that is not run whole
HEAD = ["backbone", "decoding", "passes", "seconds", "best setting", "ms a pass",
        "times faster than AR in this dtype", "peak GiB"]
WIDTH_HEAD = ["backbone", "cells of a pass", "ms", "single-cell passes", "GB/s", "of the copy's"]


@dataclass(frozen=True)
class Run:
    """The cost of a picture by one method.

    seconds: without pixels; whole: not interpolated; threads: 0 on a card.
    """

    passes: int
    seconds: float
    peak: int
    whole: bool = True
    threads: int = 1


def pass_by_width(backbone: Backbone, repeats: int, copied: float) -> list[dict]:
    """One guided pass in the middle of a picture, over a cell, a row, a block of the preset."""
    branches = prompt_branches(backbone, [PROMPT], None, backbone.preset.cfg)
    prompt, grid = max(map(len, branches)), backbone.grid
    middle = prompt + grid.rows // 2 * grid.width
    clock, rows = partial(synchronised, backbone.device), []
    for cells in dict.fromkeys((1, grid.width, backbone.preset.k_v * grid.width)):
        run = backbone_pass(backbone, cells, middle, prompt + grid.slots, len(branches))
        seconds = statistics.median(seconds_of(run, repeats, clock=clock))
        read = read_bytes(backbone, len(branches), middle + cells)
        rows.append({"cells": cells, "seconds": seconds, "bytes_per_second": read / seconds,
                     "of_copy": read / seconds / copied})
    return rows


def decode(backbone: Backbone, method: Method, heads: DraftHeads | None = None, first: int = 0,
           last: int | None = None) -> tuple[int, float]:
    """(passes, seconds) of rows first..last-1 below random rows, without the prefill."""
    grid = backbone.grid
    above = torch.randint(backbone.codes, (1, grid.rows, grid.columns), device=backbone.device)
    run = generate(backbone, PROMPT, method, heads, Sampling(seed=1), keep=above, keep_rows=first,
                   threads=torch.get_num_threads())
    begun, passes = None, 0
    for event in run:
        if isinstance(event, Pass) and event.stage == "prefill":
            begun = synchronised(backbone.device)
        elif isinstance(event, Pass):
            passes += 1
        elif isinstance(event, Finished) or (isinstance(event, FinalRows) and event.last == last):
            return passes, synchronised(backbone.device) - begun
    raise AssertionError("a run ends with Finished")


class Held(Peak):
    """The peak since `again` of the bytes allocated since construction."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.start()


def whole_run(backbone: Backbone, memory: Held, method: Method,
              heads: DraftHeads | None = None) -> Run:
    memory.again()
    passes, seconds = decode(backbone, method, heads)
    return Run(1 + passes, seconds, memory.grown())


def ar_run(backbone: Backbone, memory: Held, limit: float) -> Run:
    """A whole AR run if it takes at most `limit` seconds, else an estimate from both ends.

    The time of a pass grows linearly with the slots it attends to, so the mean of the first and the
    last rows is that of the picture.
    """
    decode(backbone, AR(), last=1)  # warm-up
    memory.again()
    passes, top = backbone.grid.cells - 1, decode(backbone, AR(), last=SAMPLE_ROWS)
    if top[1] / top[0] * passes <= limit:
        return whole_run(backbone, memory, AR())
    bottom = decode(backbone, AR(), first=backbone.grid.rows - SAMPLE_ROWS)
    mean = (top[1] / top[0] + bottom[1] / bottom[0]) / 2
    return Run(1 + passes, mean * passes, memory.grown(), whole=False)


def pixel_seconds(backbone: Backbone) -> float:
    """Seconds to decode one picture's tokens, after a warm-up."""
    tokens = torch.randint(backbone.codes, (1, backbone.grid.rows, backbone.grid.columns),
                           device=backbone.device)
    clock = partial(synchronised, backbone.device)
    return seconds_of(partial(backbone.decode, tokens), 1, clock=clock)[0]


def best_run(run: Callable[[], Run], device: torch.device) -> Run:
    """The faster of a run with one thread and with all; on a card there is only one run."""
    tried = []
    for threads in thread_counts(device):
        with using_threads(threads):
            tried.append(replace(run(), threads=threads if device.type == "cpu" else 0))
    return min(tried, key=lambda run: run.seconds)


def measure(row: KnownBackbone, device: torch.device, dtype: torch.dtype, copied: float,
            args: argparse.Namespace) -> dict:
    """All figures of one row of the catalogue; AR and SSD each with its best threads."""
    memory = Held(device)
    backbone = random_backbone(row, device, dtype)
    preset = backbone.preset
    ar = best_run(partial(ar_run, backbone, memory, args.seconds), device)
    heads = random_heads(backbone, preset.k_h, preset.k_v)
    decode(backbone, SSD(), heads, last=2)  # warm-up
    ssd = best_run(partial(whole_run, backbone, memory, SSD(), heads), device)
    with using_threads(1 if device.type == "cpu" else None):
        widths = pass_by_width(backbone, args.repeats, copied)
    return {
        "name": row.name, "grid": str(row.grid), "dtype": stored_dtype(backbone),
        "scaled": args.scaled, "parameters": sum(w.numel() for w in backbone.parameters()),
        "head_parameters": sum(w.numel() for w in heads.parameters()),
        "k_h": preset.k_h, "k_v": preset.k_v, "rounds": preset.rounds,
        "incremental": preset.incremental, "cfg": preset.cfg,
        "planned_passes": SSD().resolve(preset).plan(backbone.grid).passes,
        "ar": vars(ar), "ssd": vars(ssd), "faster": ar.seconds / ssd.seconds,
        "pixel_seconds": pixel_seconds(backbone), "widths": widths}


def schedule(row: dict) -> str:
    staged = f", i = {row['incremental']}" if row["incremental"] else ""
    return f"SSD k_h {row['k_h']}, k_v {row['k_v']}, r = {row['rounds']}{staged}"


def lines(row: dict) -> list[list[str]]:
    """A row's lines in the table of whole pictures."""
    written = []
    for label, run, faster in (("AR", row["ar"], 1.0), (schedule(row), row["ssd"], row["faster"])):
        about = "" if run["whole"] and row["ar"]["whole"] else "~"
        mark = "" if run["whole"] else "~"
        written.append([row["name"], label, str(run["passes"]), f"{mark}{run['seconds']:.2f}",
                        in_words(run["threads"]) if run["threads"] else "-",
                        f"{mark}{1000 * run['seconds'] / (run['passes'] - 1):.2f}",
                        f"{about if faster != 1 else ''}{faster:.2f}",
                        f"{run['peak'] / 2**30:.2f}"])
    return written


def width_lines(row: dict) -> list[list[str]]:
    narrow = row["widths"][0]["seconds"]
    return [[row["name"], str(w["cells"]), f"{1000 * w['seconds']:.2f}",
             f"{w['seconds'] / narrow:.2f}", f"{w['bytes_per_second'] / 1e9:.1f}",
             f"{100 * w['of_copy']:.0f} %"] for w in row["widths"]]


def model_line(row: dict) -> list[str]:
    return [row["name"], row["grid"], f"{row['parameters'] / 1e6:,.1f} M",
            f"{row['head_parameters'] / 1e6:,.1f} M", f"{row['cfg']:g}",
            f"{row['pixel_seconds']:.2f}"]


TRUE = "at true size"
CLOCK = ("; AR and SSD were timed with each number of threads and count with the one that is best "
         "for them, single passes with one thread; the peak is what the process grew by, less "
         "where it reuses what the row before left")
SCALED = ("scaled down: grids and schedules of the real backbones, but layers, widths and codes "
          "made small, so that a CPU can run them. Their seconds say nothing about the real ones, "
          "for which this has to be run on a card")


def page(rows: list[dict], device: torch.device, where: str, copied: float,
         scaled_rows: bool) -> list[str]:
    """The paragraphs and tables of the page."""
    return [
        f"{where}; a copy moves {copied / 1e9:.0f} GB/s "
        f"here{CLOCK if device.type == 'cpu' else ''}. One picture, guidance on (two branches), "
        f"{SCALED if scaled_rows else TRUE}.",
        "Weights and draft heads are random. Passes and seconds are those of trained ones; which "
        "drafts would stand is not known, so nothing is said about it, and every planned round is "
        "run. Seconds leave out the prefill, and pixels, which are in the last table. Weights that "
        "fit into a processor's caches are read faster than a copy. ~: from AR's first and last "
        "rows, the rest interpolated.",
        table(HEAD, [line for row in rows for line in lines(row)]),
        "One pass in the middle of a picture; bytes are those of layers, image head, keys and "
        "values:", table(WIDTH_HEAD, [line for row in rows for line in width_lines(row)]),
        table(["backbone", "grid", "parameters", "of the heads", "guidance", "pixels, s"],
              [model_line(row) for row in rows])]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME",
                        help="rows of the catalogue")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto", choices=("auto", *DTYPES))
    parser.add_argument("--scaled", action=argparse.BooleanOptionalAction,
                        help="rows made small; the default on a CPU")
    parser.add_argument("--seconds", type=float,
                        help="AR that takes longer is interpolated; default 60, scaled down 3")
    parser.add_argument("--repeats", type=int, default=20, help="passes of each width")
    parser.add_argument("--out", type=Path, help="Markdown file; by default none is written")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    device = pick_device(args.device)
    args.scaled = device.type == "cpu" if args.scaled is None else args.scaled
    args.seconds = (3.0 if args.scaled else 60.0) if args.seconds is None else args.seconds
    dtype, copied = pick_dtype(args.dtype, device, args.scaled), copy_bandwidth(device)
    rows = []
    for row in map(known, args.names):
        print(row.name, file=sys.stderr)
        rows.append(measure(scaled(row) if args.scaled else row, device, dtype, copied, args))
    where = conditions(device, rows[0]["dtype"], thread_counts(device))
    text = page_of("Real backbones with random weights",
                   *page(rows, device, where, copied, args.scaled))
    if args.out:
        write_text(args.out, text)
    print(f"\n{text}\n{json.dumps({'conditions': where, 'results': rows})}")


if __name__ == "__main__":
    main()
