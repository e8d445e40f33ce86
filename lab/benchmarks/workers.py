"""The gain and cost of workers on this machine: pictures a minute by one process and by workers.

    python lab/benchmarks/workers.py --workers 1,2

Every row draws the same pictures, in turns with the other rows.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from conditions import conditions, table, write_page
from script import options

from ssd_core import Sampling
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.engine.methods import SSD
from ssd_core.runs.batch.queue import work
from ssd_core.runs.batch.render import RenderItem, RenderSettings, draw_tasks
from ssd_core.runs.batch.workers import ModelSpec, WorkerOptions, crew_of
from ssd_lab.evaluate.metrics import PROMPT_SEED

MODELS = ModelSpec("postcard", "postcard", device="cpu", dtype="fp32")
HOW = RenderSettings(SSD(rounds=2), Sampling(seed=1))
HEAD = ["drawn by", "threads each", "until the models are loaded, s", "drawing, s",
        "pictures a minute", "against this process"]
BUSY = "**Other programs kept the cores busy: these seconds tell nothing about the speed-up.** "


class Apart(WorkerOptions):
    """Separate workers even if one is enough, to measure the cost of Ray."""

    @property
    def apart(self) -> bool:
        return True


def seconds(wanted: WorkerOptions, pictures: int, batch: int) -> tuple[float, float]:
    """(seconds until a worker has loaded, seconds for drawing) of one run into an empty folder."""
    orders = [RenderItem(n, fresh_caption(PROMPT_SEED + n, 0), f"{n}.png") for n in range(pictures)]
    start = time.perf_counter()
    loaded = (replace(MODELS, device="meta") if wanted.apart else MODELS).load()
    with tempfile.TemporaryDirectory() as folder, crew_of(wanted, loaded, MODELS) as crew:
        assert crew.place.device == "cpu"  # waits for the first worker
        ready = time.perf_counter()
        work(draw_tasks(orders, HOW, batch), Path(folder), crew, "draw", quiet=True)
        return ready - start, time.perf_counter() - ready


def main() -> None:
    parser = options(__doc__, "workers.md")
    parser.add_argument("--workers", default="1,2", help="numbers of workers, by commas")
    parser.add_argument("--pictures", type=int, default=24)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    cores, asked = os.cpu_count() or 1, os.environ.get("OMP_NUM_THREADS")
    rows = {"this process": (WorkerOptions(), torch.get_num_threads())}
    for n in map(int, args.workers.split(",")):
        threads = int(asked) if asked else max(1, cores // n)  # as Ray sets it
        rows[f"{n} Ray worker{'s' * (n > 1)}"] = Apart(workers=n), threads
    timings: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    for _ in range(args.repeats):
        for name, (wanted, _) in rows.items():
            timings[name].append(seconds(wanted, args.pictures, args.batch))
            print(name, timings[name][-1], flush=True)
    median = {name: [statistics.median(part) for part in zip(*runs, strict=True)]
              for name, runs in timings.items()}
    alone = median["this process"][1]
    lines = [[name, str(threads), f"{median[name][0]:.1f}", f"{median[name][1]:.1f}",
              f"{60 * args.pictures / median[name][1]:.0f}", f"{alone / median[name][1]:.2f}x"]
             for name, (_, threads) in rows.items()]
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    busy = BUSY if os.getloadavg()[2] > 2 * cores else ""
    about = (f"{args.pictures} pictures of `postcard` by `ssd` with two rounds, fp32, batches of "
            f"{args.batch}, PNGs with recipes; median of {args.repeats} runs in turns. {cores} "
            f"cores; load average at the end (1, 5 and 15 minutes): {load}. "
            f"{busy}{conditions(alone=False)}. Made by `python "
            "lab/benchmarks/workers.py`.")
    write_page(args.out, "Workers on one machine", about, table(HEAD, lines))


if __name__ == "__main__":
    main()
