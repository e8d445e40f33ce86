"""How OpenMP's waiting policy fares on an idle and on a busy machine: seconds a picture.

    python benchmarks/threads.py --pictures 3

Every line of the table is measured in two processes of its own, on the idle machine and on a busy
one; in each of them AR, `ssd` and `exact` take turns. The machine is kept busy by as many other
processes as it has cores, each multiplying matrices on one thread. Writes
benchmarks/results/threads.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from conditions import RESULTS, conditions, loadable, table

from ssd_core import Sampling, load_heads
from ssd_core.engine.methods import AR, SSD, Exact
from ssd_core.files import written_whole
from ssd_core.front.request import Request
from ssd_core.measure.bench import Entrant
from ssd_core.measure.best import Setting, take_turns

METHODS = {"AR": AR(), "ssd": SSD(), "exact": Exact()}
DTYPES = ("fp32", "int8")
SETTINGS = {"library's own (active for a while)": {}, "active": {"OMP_WAIT_POLICY": "active"},
            "passive": {"OMP_WAIT_POLICY": "passive"}, "one thread": {"OMP_NUM_THREADS": "1"}}
STATES = ("idle", "busy")
BUSY = "import torch; torch.set_num_threads(1); x = torch.randn(512, 512)\nwhile True: x @ x"


def medians(pictures: int) -> dict[str, float]:
    """Median seconds by method and dtype, with the threads of this process."""
    timed = []
    for dtype, backbone in loadable("postcard", DTYPES)[0].items():
        heads = load_heads("postcard", backbone)
        for name, method in METHODS.items():
            request = Request(backbone, heads, method, Sampling(seed=7), "a red house by a lake",
                              fall_back=False)
            draw = partial(Entrant(name, request).run, lambda label, event: None)
            timed.append(Setting(name, dtype, torch.get_num_threads(), draw))
    take_turns(timed, pictures)
    return {f"{one.label}, {one.dtype}": one.median for one in timed}


def apart(pictures: int, own: dict[str, str]) -> dict[str, float]:
    """`medians` in a new process with these variables."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_"))}
    code = (f"import torch, sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); "
            f"import json, threads; print(json.dumps(threads.medians({pictures})))")
    run = subprocess.run([sys.executable, "-c", code], env={**plain, **own}, check=True,
                         stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout.splitlines()[-1])


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


def measured(pictures: int) -> Iterator[list[str]]:
    """The lines of the table: a setting and a state each."""
    for name, own in SETTINGS.items():
        found = {"idle": apart(pictures, own)}
        with other_work():
            found["busy"] = apart(pictures, own)
        for state in STATES:
            yield [name, state, *(f"{one:.2f}" for one in found[state].values())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=3)
    pictures = parser.parse_args().pictures
    there, left_out = loadable("postcard", DTYPES)
    rows = []
    for row in measured(pictures):
        rows.append(row)
        print(row, flush=True)
    head = ["threads", "machine", *(f"{name}, {dtype}" for dtype in there for name in METHODS)]
    told = (f"Seconds a picture of `postcard`, medians of {pictures} turns; busy: as many other "
            f"processes as there are cores ({os.cpu_count()}) multiply matrices. Beside those of "
            f"this script the machine was: {conditions(torch.device('cpu'), ', '.join(there))}. "
            "Made by `python benchmarks/threads.py`.")
    text = ["# OpenMP's threads while they wait", "", told, "", *left_out, table(head, rows), ""]
    with written_whole(RESULTS / "threads.md") as temporary:
        temporary.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
