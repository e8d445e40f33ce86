"""How OpenMP's waiting policy fares on an idle and on a busy machine: seconds a picture.

    python lab/benchmarks/threads.py --pictures 3

Every cell of the table runs in a process of its own. The machine is kept busy by as many other
processes as it has cores, each multiplying matrices on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from conditions import conditions, table, write_page
from script import in_new_process, options, postcard

from ssd_core import Sampling, generate
from ssd_core.engine.methods import AR, SSD, Exact

METHODS = {"ar": AR(), "ssd": SSD(), "exact": Exact()}
CHOSEN = "chosen by each run"  # the number; in all other settings every step has torch's
SETTINGS = {CHOSEN: {}, "library's own (active for a while)": {},
            "active": {"OMP_WAIT_POLICY": "active"},
            "passive": {"OMP_WAIT_POLICY": "passive"},
            "one thread": {"OMP_NUM_THREADS": "1"}}
BUSY = "import torch; torch.set_num_threads(1); x = torch.randn(512, 512)\nwhile True: x @ x"


def seconds(method: str, pictures: int, chosen: bool) -> list[float]:
    """Wall-clock seconds of each picture, after a warm-up picture."""
    loaded, threads, each = postcard(), None if chosen else torch.get_num_threads(), []
    for seed in range(pictures + 1):
        start = time.perf_counter()
        for _ in generate(loaded.backbone, "a red house by a lake", METHODS[method], loaded.heads,
                          Sampling(seed=seed), threads=threads):
            pass
        each.append(time.perf_counter() - start)
    return each[1:]


def apart(method: str, pictures: int, setting: str) -> float:
    """The median of `seconds`, in a new process with the setting's variables."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_"))}
    return statistics.median(in_new_process(
        __file__, "--child", method, "--pictures", pictures, *["--chosen"] * (setting == CHOSEN),
        variables={**plain, **SETTINGS[setting], "SSD_CACHE": "off"}))


@contextmanager
def other_work() -> Iterator[None]:
    """Keep every core busy with one thread of another process."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        time.sleep(5)  # until they have imported torch
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def main() -> None:
    parser = options(__doc__, "threads.md")
    parser.add_argument("--pictures", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--chosen", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(seconds(args.child, args.pictures, args.chosen)))
        return
    pictures, rows = args.pictures, []
    for name in SETTINGS:
        idle = [apart(method, pictures, name) for method in METHODS]
        with other_work():
            busy = [apart(method, pictures, name) for method in METHODS]
        rows.append([name, *(f"{seconds:.1f}" for seconds in (*idle, *busy))])
        print(rows[-1], flush=True)
    head = ["threads", *(f"{method}, {state}" for state in ("idle", "busy") for method in METHODS)]
    about = (f"Seconds a picture of `postcard` in fp32, median of {pictures}; busy: as many other "
            f"processes as there are cores ({os.cpu_count()}) multiply matrices. "
            f"{conditions()}. Made by `python lab/benchmarks/threads.py`.")
    write_page(args.out, "OpenMP's threads while they wait", about, table(head, rows))


if __name__ == "__main__":
    main()
