"""Whether what is chosen for this machine is near the best of a sweep: seconds a picture.

    python lab/benchmarks/tuning.py --dtypes fp32 int8 --batches 1 4 8 --repeats 5

Each dtype and state of the machine has its own process, which measures its step times anew. The
process times the program's choice, and every window, number of threads and batching that it could
have chosen, in interleaved rounds. Then it times the choice against the best of these. The table
goes to
--out, by default beside the other results.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import torch
from conditions import conditions, table, write_page
from script import PROMPT, in_new_process, options, postcard
from threads import other_work

from ssd_core import Sampling
from ssd_core.backbones.base import Backbone
from ssd_core.engine.methods import AR, SJD, SSD, Exact, Jacobi, Method, Rolling, Wave
from ssd_core.engine.methods.window import Tunable
from ssd_core.kept_files import VARIABLE
from ssd_core.output.drawing import Drawing
from ssd_core.runs.batch.workers import LoadedModels
from ssd_core.runs.request import Request

METHODS = {"ar": AR(), "faithful": Exact(), "balanced": Rolling(fewer=8.0),
           "fast": Rolling(fewer=12.0), "sjd": SJD(), "jacobi": Jacobi(), "wave": Wave(),
           "ssd": SSD()}
SWEEP = (8, 12, 16, 24, 48, 96, 192)
GIVEN_UP, NEAR = 3.0, 1.3  # times the best: limits for ending a run and for timing a way again
ROUNDS = 2  # of all ways, then as many of those near the best


@dataclass
class Way:
    """One way to draw a batch. requests: run one after the other. chosen: by the program."""

    name: str
    requests: list[Request]
    chosen: bool = False
    seconds: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)  # used only if there is no other

    @property
    def median(self) -> float:
        return statistics.median(self.seconds or self.first or [float("inf")])

    def time(self, limit: float) -> None:
        """Add the seconds of the whole batch if it ends within the limit."""
        start = time.perf_counter()
        for request in self.requests:
            events = request.events()
            for _ in events:
                if time.perf_counter() - start > limit:
                    events.close()
                    return
        self.seconds.append(time.perf_counter() - start)


def ways(name: str, loaded: LoadedModels, batch: int) -> Iterator[Way]:
    """The program's choice, then every other possible choice."""
    method, backbone, heads = METHODS[name], loaded.backbone, loaded.heads
    drawing = Drawing(PROMPT, None, method, Sampling(seed=3), pictures=batch)
    asked = Request(backbone, heads, drawing)
    yield Way(f"{asked.label}{', one by one' * asked.alone}", asked.parts(), True)
    for variant in swept(method, backbone):
        for threads in sorted({1, torch.get_num_threads()}):
            together = Request(backbone, heads, replace(drawing, method=variant), named=True,
                               threads=threads)
            label = f"{together.label}, {threads} threads"
            yield Way(label, [together])
            if batch > 1:
                alone = [replace(together, pictures=1, sampling=together.sampling.offset_seed(n))
                         for n in range(batch)]
                yield Way(f"{label}, one by one", alone)


def swept(method: Method, backbone: Backbone) -> list[Method]:
    """The method with every window that may be chosen; for `exact` also AR."""
    if not isinstance(method, Tunable):
        return [method]
    if isinstance(method, Wave):
        return [method.with_window(window) for window in method.windows(backbone.grid)]
    low = method.windows(backbone.grid)[0]
    each: list[Method] = [method.with_window(size) for size in sorted({low, *SWEEP}) if size >= low]
    return [*each, AR()] if isinstance(method, Exact) else each


def rows(dtype: str, batches: list[int], names: list[str], repeats: int) -> list[list[str]]:
    """One row per method and batch, measured in this process."""
    loaded, rows = postcard(dtype), []
    for batch in batches:
        for name in names:
            each = list(ways(name, loaded, batch))
            rows.append([dtype, str(batch), name, *timed(each, batch, repeats)])
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def timed(each: list[Way], batch: int, repeats: int) -> list[str]:
    """The choice and its seconds a picture, the best of the sweep and its seconds, their ratio.

    The best is determined first; then both are timed in turn. Reusing the first times would favour
    the luckiest of forty ways.
    """
    for round_ in range(2 * ROUNDS):
        least = min(way.median for way in each)
        for way in each:
            if round_ < ROUNDS or way.median < NEAR * least:
                way.time(GIVEN_UP * min(way.median for way in each))
        if round_ == 0:
            for way in each:
                way.first, way.seconds = way.seconds, []
    chosen = next(way for way in each if way.chosen)
    best = min((way for way in each if not way.chosen), key=lambda way: way.median)
    for way in (chosen, best):
        way.seconds = []
    for round_ in range(repeats):
        for way in (chosen, best)[:: 1 if round_ % 2 else -1]:
            way.time(float("inf"))
    ratio = statistics.median(a / b for a, b in zip(chosen.seconds, best.seconds, strict=True))
    return [chosen.name, f"{chosen.median / batch:.3f}", best.name, f"{best.median / batch:.3f}",
            f"{ratio:.2f}"]


def apart(dtype: str, args: argparse.Namespace) -> list[list[str]]:
    """`rows` in a new process with an empty record."""
    with tempfile.TemporaryDirectory() as folder:
        return in_new_process(__file__, "--child", dtype, "--repeats", args.repeats,
                              "--batches", *args.batches, "--methods", *args.methods,
                              variables={**os.environ, VARIABLE: folder})


def main() -> None:
    parser = options(__doc__, "tuning.md")
    parser.add_argument("--dtypes", nargs="+", default=["fp32", "int8"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 8])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--states", nargs="+", default=["idle", "busy"], choices=("idle", "busy"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(rows(args.child, args.batches, args.methods, args.repeats)))
        return
    lines = []
    for state in args.states:
        with other_work() if state == "busy" else nullcontext():
            for dtype in args.dtypes:
                lines += [[state, *line] for line in apart(dtype, args)]
    head = ["machine", "dtype", "pictures", "method", "chosen", "s a picture", "best of the sweep",
            "s a picture", "chosen / best"]
    about = ("The best of the sweep, found first, and what is chosen: medians of "
            f"{args.repeats} runs in turn, and the median of their ratios; busy: as many other "
            f"processes as there are cores ({os.cpu_count()}) multiply matrices. "
            f"{conditions()}. Made by `python lab/benchmarks/tuning.py`.")
    write_page(args.out, "What is chosen, against a sweep", about, table(head, lines))


if __name__ == "__main__":
    main()
