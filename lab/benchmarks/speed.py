"""Wall-clock: every method, AR and a plain hand-written loop at their best, in one run.

    python lab/benchmarks/speed.py --out lab/benchmarks/results/speed.md [--dtypes fp32 bf16 int8]
    python lab/benchmarks/speed.py --storage       (only: a pass by dtype and order of the matrices)

Each is timed with one thread and with all, in interleaved rounds, and counts with its fastest
setting. A dtype that cannot be loaded is left out, and the page says why.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conditions import CPU, conditions, table, write_page
from passes import backbone_pass, layer_pass, one_layer, seconds_of
from plain_loop import plain_loop
from script import PROMPT, loadable, options

from ssd_core import Sampling, load_heads, methods
from ssd_core.backbones.base import Backbone
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import Method
from ssd_core.engine.threads import using_threads
from ssd_core.measure.bench import (
    AR_DTYPES,
    Entrant,
    Setting,
    bench,
    fastest,
    in_words,
    settings,
    thread_counts,
)
from ssd_core.model.processor import has_bf16
from ssd_core.output.drawing import Drawing
from ssd_core.runs.request import Request
from ssd_core.weights.load import DTYPES

R2 = methods.SSD(k_h=5, k_v=1, rounds=2)
ROLLING = {fewer: f"rolling, 1/{fewer} of AR's passes" for fewer in (8, 12)}
METHODS = [
    ("AR", methods.AR()), ("1-D MTP", methods.MTP(k_h=5)), ("strict", methods.Strict()),
    ("rows, r = 2", methods.Rows(rounds=2)), ("exact", methods.Exact()),
    *((f"SSD r = {r}", methods.SSD(k_h=5, k_v=1, rounds=r)) for r in (0, 1, 2, 3)),
    *((f"SSD r = {r}, fused commit", methods.SSD(k_h=5, k_v=1, rounds=r, fused_commit=True))
      for r in (1, 2, 3)),
    ("SSD r = 2, coupled", methods.SSD(k_h=5, k_v=1, rounds=2, acceptance="coupled")),
    ("SSD r = 2, row drafter", methods.SSD(k_v=1, rounds=2, drafter="row")),
    ("exact, row drafter", methods.Exact(drafter="row")),
    *((label, methods.Rolling(fewer=fewer)) for fewer, label in ROLLING.items()),
]
BATCHES = (1, 4, 8)
IN_BATCHES = [("AR", methods.AR()), ("exact", methods.Exact()), ("SSD r = 2", R2),
              (ROLLING[8], methods.Rolling(fewer=8)), (ROLLING[12], methods.Rolling(fewer=12))]
PLAIN = "plain loop"
BASELINES = ["baseline", "dtype", "seconds by threads", "best setting", "seconds",
             "times the plain fp32 loop's speed"]
HEAD = ["decoding", "passes", "fewer passes than AR", "seconds", "best setting",
        "against the plain fp32 loop", "against our fastest AR", "against AR in the same dtype",
        "ms a pass", "draft", "verify", "commit"]


@dataclass(frozen=True)
class LoadedModels:
    """A backbone in one dtype with its heads."""

    dtype: str
    backbone: Backbone
    heads: DraftHeads

    def entrants(self, wanted: Sequence[tuple[str, Method]], pictures: int = 1) -> list[Entrant]:
        return [Entrant(label, Request(
                    self.backbone, self.heads,
                    Drawing(PROMPT, None, method, Sampling(seed=7), pictures=pictures),
                    fall_back=False))
                for label, method in wanted]

    def plain(self, counts: Sequence[int]) -> list[Setting]:
        """A plain AR loop with each of these numbers of threads."""
        if self.dtype not in DTYPES:
            return []  # the loop knows plain matrices only
        cfg = self.backbone.preset.cfg
        branches = prompt_branches(self.backbone, [PROMPT], None, cfg)
        draw = plain_loop(self.backbone, branches, cfg, greedy=False)
        return settings(PLAIN, self.dtype, counts, lambda: {"tokens": draw()})


# One picture


def single(everyone: Sequence[LoadedModels], repeats: int, counts: Sequence[int]) -> str:
    """All methods and both baselines in every dtype, in one interleaved run."""
    plain = [setting for loaded in everyone for setting in loaded.plain(counts)]
    rows = bench([entrant for loaded in everyone for entrant in loaded.entrants(METHODS)], repeats,
                 beside=plain, counts=counts)
    yard = fastest(setting for setting in plain if setting.dtype == "fp32").median
    parts = [baselines(rows, plain, yard)]
    for loaded in everyone:
        own = [line(row, yard) for row in rows if row["dtype"] == loaded.dtype]
        parts.append(f"## In {loaded.dtype}\n\n{table(HEAD, own)}")
    return "\n".join(parts)


def baselines(rows: Sequence[dict], plain: Sequence[Setting], yard: float) -> str:
    """AR and the plain loop with one thread and with all."""
    lines = []
    for dtype in dict.fromkeys(setting.dtype for setting in plain):
        seconds = {setting.threads: setting.median
                   for setting in plain if setting.dtype == dtype}
        lines.append(baseline(PLAIN, dtype, seconds, yard))
    lines += [baseline("AR", row["dtype"], row["seconds_by_threads"], yard)
              for row in rows if row["method"] == "AR"]
    return f"## Baselines\n\n{table(BASELINES, lines)}"


def baseline(name: str, dtype: str, seconds: Mapping[int, float], yard: float) -> list[str]:
    threads = min(seconds, key=lambda count: seconds[count])
    every = ", ".join(f"{count}: {time:.3f}" for count, time in seconds.items())
    return [name, dtype, every, in_words(threads), f"{seconds[threads]:.3f}",
            f"{yard / seconds[threads]:.2f}"]


def line(row: dict, yard: float) -> list[str]:
    stages = row["seconds"]
    shares = [f"{100 * stages[s] / stages['total']:.0f} %" for s in ("draft", "verify", "commit")]
    return [row["method"], str(row["passes"]), f"{row['step_acceleration']:.2f}",
            f"{row['median_seconds']:.3f}", in_words(row["threads"]),
            f"{yard / row['median_seconds']:.2f}", f"{row['ratio_to_ar']:.2f}",
            f"{row['ratio_in_dtype']:.2f}", f"{1000 * row['seconds_per_pass']:.2f}", *shares]


# Batches


def batches(everyone: Sequence[LoadedModels], repeats: int, counts: Sequence[int]) -> str:
    """Seconds a picture of some methods, drawn alone and in batches."""
    cells_of: dict[tuple[str, str], list[str]] = {}
    for pictures in BATCHES:
        for row in bench([entrant for loaded in everyone
                          for entrant in loaded.entrants(IN_BATCHES, pictures)], repeats,
                         counts=counts):
            cell = (f"{row['median_seconds'] / pictures:.3f} ({in_words(row['threads'])}; "
                    f"{row['ratio_in_dtype']:.2f})")
            cells_of.setdefault((row["method"], row["dtype"]), []).append(cell)
    head = ["decoding", "dtype", *(f"{n} at once" for n in BATCHES)]
    return ("## In batches\n\nSeconds a picture of the same prompt, seeds 7 and up (the best "
            f"setting; times as fast as AR at its best in this dtype and batch), medians of "
            f"{repeats} interleaved runs.\n\n"
            f"{table(head, [[*key, *cells] for key, cells in cells_of.items()])}")


# One pass


def pass_seconds(backbone: Backbone, cells: int, threads: int, repeats: int = 60) -> float:
    """Median seconds of one pass over `cells` cells."""
    with using_threads(threads):
        return statistics.median(seconds_of(backbone_pass(backbone, cells), repeats))


def widths(everyone: Sequence[LoadedModels], counts: Sequence[int]) -> str:
    """Milliseconds of a pass by its number of cells, with the better number of threads."""
    lines = []
    for cells in (1, 6, 24, 48, 96):
        best = [min((pass_seconds(loaded.backbone, cells, count), count) for count in counts)
                for loaded in everyone]
        lines.append([str(cells), *(f"{1000 * seconds:.2f} ({in_words(count)})"
                                    for seconds, count in best)])
    head = ["cells", *(f"ms in {loaded.dtype}" for loaded in everyone)]
    return f"## One pass by the cells it feeds\n\nGuidance on.\n\n{table(head, lines)}"


# How matrices are stored


def storage(repeats: int) -> str:
    """A pass in both dtypes, each with row-major and column-major matrices."""
    lines = []
    with using_threads(1):  # processor seconds are meaningful only for one
        for name in ("fp32", "bf16"):
            decoder = one_layer("Janus-Pro-1B", DTYPES[name], CPU)
            for order in ("by row", "by column"):
                times = [min(seconds_of(layer_pass(decoder, cells), repeats,
                                        clock=time.process_time)) for cells in (1, 24, 48)]
                lines.append([name, order, *(f"{1000 * seconds:.1f}" for seconds in times)])
                decoder.store_column_major()
    units = "has" if has_bf16(CPU) else "has no"
    return (f"## How matrices are stored\n\nIn one thread; the processor {units} units for bf16. "
            f"One layer as wide as Janus-Pro-1B's, guidance on, least processor time of {repeats} "
            f"passes over so many cells, ms.\n\n"
            f"{table(['dtype', 'matrices', '1 cell', '24 cells', '48 cells'], lines)}")


# The page


def page(dtypes: Sequence[str], repeats: int, batch_repeats: int) -> str:
    backbones, left_out = loadable("postcard", dtypes)
    everyone = [LoadedModels(dtype, backbone, load_heads("postcard", backbone))
                for dtype, backbone in backbones.items()]
    counts = thread_counts(CPU)
    parts = [single(everyone, repeats, counts), batches(everyone, batch_repeats, counts),
             widths(everyone, counts), storage(repeats)]
    about = (f"{conditions(CPU, ', '.join(backbones), counts)}; one picture, guidance on, medians "
             f"of {repeats} interleaved runs, pixels not included. All were timed with every "
             "number of threads and count with the fastest; seconds and ratios are of that "
             "setting. The plain loop is `lab/benchmarks/plain_loop.py`. Made by "
             "`python lab/benchmarks/speed.py`.")
    gone = "".join(f"\n{line}\n" for line in left_out)
    return "\n".join([f"{about}\n{gone}", *parts])


def main() -> None:
    parser = options(__doc__, "speed.md")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--batch-repeats", type=int, default=2)
    parser.add_argument("--dtypes", nargs="+", default=list(AR_DTYPES),
                        help="fp32 is always among them: the plain loop in it is the yardstick")
    parser.add_argument("--storage", action="store_true", help="print that section alone")
    args = parser.parse_args()
    if args.storage:
        print(f"{conditions()}\n\n{storage(args.repeats)}")
        return
    text = page(list(dict.fromkeys(["fp32", *args.dtypes])), args.repeats, args.batch_repeats)
    write_page(args.out, "Speed of `postcard`", text)


if __name__ == "__main__":
    main()
