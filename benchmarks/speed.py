"""Wall-clock: AR against SSD in one run, AR against a plain hand-written loop, one pass by width.

    python benchmarks/speed.py --out benchmarks/results/speed.md [--dtype fp32 bf16]
    python benchmarks/speed.py --storage       (only: a pass by dtype and order of the matrices)
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from conditions import RESULTS, conditions, table

from ssd_core import Sampling, load_backbone, load_heads, methods
from ssd_core.backbones.base import Backbone
from ssd_core.engine.decode import prompt_branches
from ssd_core.front.request import Request
from ssd_core.measure.bench import bench
from ssd_core.model.processor import has_bf16
from ssd_core.model.transformer import Decoder, sequence_angles
from ssd_core.weights.catalogue import known
from ssd_core.weights.load import DTYPES

PROMPT = "a red house on the left, a yellow boat on the right, on a lake, at sunset."
METHODS = [
    ("AR", methods.AR()), ("1-D MTP", methods.MTP(k_h=5)), ("strict", methods.Strict()),
    ("rows, r = 2", methods.Rows(rounds=2)), ("exact", methods.Exact()),
    *((f"SSD r = {r}", methods.SSD(k_h=5, k_v=1, rounds=r)) for r in (0, 1, 2, 3)),
    *((f"SSD r = {r}, fused commit", methods.SSD(k_h=5, k_v=1, rounds=r, fused_commit=True))
      for r in (1, 2, 3)),
    ("SSD r = 2, coupled", methods.SSD(k_h=5, k_v=1, rounds=2, acceptance="coupled")),
    ("SSD r = 2, row drafter", methods.SSD(k_v=1, rounds=2, drafter="row")),
    ("exact, row drafter", methods.Exact(drafter="row")),
    *((f"rolling, 1/{fewer} of AR's passes", methods.Rolling(fewer=fewer)) for fewer in (8, 12)),
]
HEAD = ["decoding", "passes", "fewer passes than AR", "seconds", "faster than AR", "ms a pass",
        "draft", "verify", "commit"]


@torch.inference_mode()
def plain_loop(backbone: Backbone, prompt: str, cfg: float) -> torch.Tensor:
    """AR as one would write it by hand: feed a token, guide, softmax, multinomial."""
    rows = torch.tensor(prompt_branches(backbone, [prompt], None, cfg))
    cache = backbone.new_cache(len(rows), rows.shape[1] + backbone.grid.cells)
    cache.seek(0, rows.shape[1])
    hidden = backbone(backbone.embed_prompt(rows), cache)[:, -1:]
    tokens = []
    for cell in range(backbone.grid.cells):
        cond, uncond = backbone.logits(hidden).chunk(2)
        probs = F.softmax(uncond + cfg * (cond - uncond), dim=-1)[0, 0]
        tokens.append(torch.multinomial(probs, 1))
        cache.seek(rows.shape[1] + cell, 1)
        hidden = backbone(backbone.embed(tokens[-1].expand(len(rows), 1)), cache)
    return torch.cat(tokens)


@torch.inference_mode()
def pass_seconds(backbone: Backbone, cells: int, repeats: int = 60) -> float:
    """Median seconds of one guided pass over `cells` cells in the middle of a picture."""
    cache = backbone.new_cache(2, 40 + backbone.grid.cells)
    x = backbone.embed(torch.zeros(2, cells, dtype=torch.long))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        cache.seek(300, cells)
        backbone.logits(backbone(x, cache))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def line(row: dict) -> list[str]:
    stages = row["seconds"]
    shares = [f"{100 * stages[s] / stages['total']:.0f} %" for s in ("draft", "verify", "commit")]
    return [row["method"], str(row["passes"]), f"{row['step_acceleration']:.2f}",
            f"{row['median_seconds']:.3f}", f"{row['ratio_to_ar']:.2f}",
            f"{1000 * row['seconds_per_pass']:.2f}", *shares]


def hand_written(backbone: Backbone, repeats: int) -> str:
    """AR of the engine and the plain loop, taken in turn."""
    cfg, pairs = backbone.preset.cfg, []
    for _ in range(repeats + 1):
        engine = bench([("AR", Request(backbone, None, methods.AR(), Sampling(), PROMPT))], 1, 0)
        start = time.perf_counter()
        plain_loop(backbone, PROMPT, cfg)
        pairs.append((engine[0]["median_seconds"], time.perf_counter() - start))
    pairs = pairs[1:]
    engine, plain = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    return (f"AR of the engine {engine:.3f} s, plain hand-written loop over the same model and "
            f"cache {plain:.3f} s: ratio {ratio:.2f} (medians of {repeats} pairs).\n")


def section(dtype: str, repeats: int) -> str:
    """All figures of one dtype, AR and SSD alike in it."""
    backbone = load_backbone("postcard", dtype=dtype)
    heads = load_heads("postcard", backbone)
    rows = bench([(label, Request(backbone, heads, method, Sampling(seed=7), PROMPT))
                  for label, method in METHODS], repeats)
    one = pass_seconds(backbone, 1)
    widths = [[str(n), f"{1000 * s:.2f}", f"{s / one:.2f}"]
              for n in (1, 6, 24, 48, 96) for s in [pass_seconds(backbone, n)]]
    return (f"## In {dtype}\n\n{conditions(backbone.device)}; one picture, guidance on, "
            f"medians of {repeats} interleaved runs, pixels not included.\n\n"
            f"{table(HEAD, [line(row) for row in rows])}\n{hand_written(backbone, repeats)}\n"
            f"One pass (guidance on), by the cells it feeds:\n\n"
            f"{table(['cells', 'ms', 'single-cell passes'], widths)}")


def wide_layer(dtype: torch.dtype) -> Decoder:
    """One layer as wide as Janus-Pro-1B's, of random weights."""
    decoder = Decoder(replace(known("Janus-Pro-1B").shape, layers=1))
    for weight in decoder.parameters():
        if weight.dim() == 2:
            torch.nn.init.normal_(weight, std=0.02)
    return decoder.to(dtype).requires_grad_(False)


@torch.inference_mode()
def layer_seconds(decoder: Decoder, cells: int, repeats: int) -> float:
    """The least processor seconds of a guided pass over `cells` cells: others may be at work."""
    shape, cache, seconds = decoder.shape, decoder.new_cache(2, 700), []
    x = torch.randn(2, cells, shape.hidden).to(decoder.layers[0].qkv.dtype)
    angles = sequence_angles(700, shape.head_dim)[300 : 300 + cells]
    for _ in range(repeats + 1):
        start = time.process_time()
        cache.seek(300, cells)
        decoder(x, angles, cache)
        seconds.append(time.process_time() - start)
    return min(seconds[1:])


def storage(repeats: int) -> str:
    """Both dtypes, each with matrices that lie row by row and column by column."""
    lines, torch_threads = [], torch.get_num_threads()
    torch.set_num_threads(1)  # of which alone processor seconds tell
    for name in ("fp32", "bf16"):
        decoder = wide_layer(DTYPES[name])
        for order in ("by row", "by column"):
            times = [f"{1000 * layer_seconds(decoder, cells, repeats):.1f}"
                     for cells in (1, 24, 48)]
            lines.append([name, order, *times])
            decoder.store_by_column()
    torch.set_num_threads(torch_threads)
    units = "has" if has_bf16(torch.device("cpu")) else "has no"
    return (f"## How matrices are stored\n\n{conditions(torch.device('cpu'))}; in one thread, "
            f"the processor {units} units for bf16. One layer as wide as Janus-Pro-1B's, guidance "
            f"on, least processor time of {repeats} passes over so many cells, ms.\n\n"
            f"{table(['dtype', 'matrices', '1 cell', '24 cells', '48 cells'], lines)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dtype", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--out", type=Path, default=RESULTS / "speed.md")
    parser.add_argument("--storage", action="store_true", help="print that section alone")
    args = parser.parse_args()
    if args.storage:
        print(storage(args.repeats))
        return
    text = "\n".join(["# Speed of `postcard`\n",
                      *(section(dtype, args.repeats) for dtype in args.dtype),
                      storage(args.repeats)])
    args.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
