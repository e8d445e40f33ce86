"""How OpenMP's waiting policy fares on an idle and on a busy machine: seconds a picture.

    python benchmarks/threads.py --pictures 3

Every cell of the table runs in a process of its own. The machine is kept busy by as many other
processes as it has cores, each multiplying matrices on one thread. Writes
benchmarks/results/threads.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from conditions import RESULTS, conditions, table, write_page

from ssd_core import Sampling, generate, load_backbone, load_heads
from ssd_core.engine.methods import AR, SSD, Exact

METHODS = {"ar": AR(), "ssd": SSD(), "exact": Exact()}
CHOSEN = "chosen by each run"  # the number; in all other settings every step has torch's
SETTINGS = {CHOSEN: {}, "library's own (active for a while)": {},
            "active": {"OMP_WAIT_POLICY": "active"},
            "passive": {"OMP_WAIT_POLICY": "passive"},
            "one thread": {"OMP_NUM_THREADS": "1"}}
BUSY = "import torch; torch.set_num_threads(1); x = torch.randn(512, 512)\nwhile True: x @ x"


def seconds(method: str, pictures: int, chosen: bool = False) -> list[float]:
    """Wall-clock seconds of each picture, after a warm-up picture."""
    backbone = load_backbone("postcard", "cpu", "fp32")
    heads, each = load_heads("postcard", backbone), []
    for seed in range(pictures + 1):
        start = time.perf_counter()
        for _ in generate(backbone, "a red house by a lake", METHODS[method], heads,
                          Sampling(seed=seed),
                          threads=None if chosen else torch.get_num_threads()):
            pass
        each.append(time.perf_counter() - start)
    return each[1:]


def apart(method: str, pictures: int, setting: str) -> float:
    """The median of `seconds`, in a new process with these variables."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_"))}
    code = (f"import torch, sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); "
            f"import threads; print(*threads.seconds({method!r}, {pictures}, {setting == CHOSEN}))")
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True,
                         env={**plain, **SETTINGS[setting], "SSD_CACHE": "off"}, text=True)
    return statistics.median(map(float, run.stdout.split()))


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=3)
    pictures = parser.parse_args().pictures
    rows = []
    for name in SETTINGS:
        idle = [apart(method, pictures, name) for method in METHODS]
        with other_work():
            busy = [apart(method, pictures, name) for method in METHODS]
        rows.append([name, *(f"{seconds:.1f}" for seconds in (*idle, *busy))])
        print(rows[-1], flush=True)
    head = ["threads", *(f"{method}, {state}" for state in ("idle", "busy") for method in METHODS)]
    about = (f"Seconds a picture of `postcard` in fp32, median of {pictures}; busy: as many other "
            f"processes as there are cores ({os.cpu_count()}) multiply matrices. "
            f"{conditions(torch.device('cpu'))}. Made by `python benchmarks/threads.py`.")
    write_page(RESULTS / "threads.md", "OpenMP's threads while they wait", about, table(head, rows))


if __name__ == "__main__":
    main()
