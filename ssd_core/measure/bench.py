"""How long methods take, measured side by side in one run. Prints nothing.

The time is wall-clock time of decoding the tokens, without pixels. Runs of different methods are
interleaved, so that a machine that slows down affects all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..engine.events import Event, Finished
from ..engine.methods import AR
from ..front.request import Request

Watch = Callable[[str, Event], None]


@dataclass
class Timed:
    """One request and the measurements of its runs."""

    label: str
    request: Request
    seconds: list[float] = field(default_factory=list)
    stats: list[dict] = field(default_factory=list)

    @property
    def is_ar(self) -> bool:
        return isinstance(self.request.method, AR)

    def median(self) -> float:
        return statistics.median(self.seconds)

    def stages(self) -> dict[str, float]:
        """Median seconds by stage, from the engine's stopwatch."""
        return {stage: statistics.median(s["seconds"][stage] for s in self.stats)
                for stage in self.stats[0]["seconds"]}


def bench(requests: Sequence[tuple[str, Request]], repeats: int = 3, warmup: int = 1,
          watch: Watch = lambda label, event: None) -> list[dict]:
    """Rows with method, median_seconds, ratio_to_ar (times faster than AR), seconds_per_pass, ...

    requests: (label, request) for the same pictures by several methods; AR is added first if it is
    not among them. watch(label, event) is called with every event of every run.
    """
    timed = [Timed(label, request) for label, request in requests]
    if not any(t.is_ar for t in timed):
        timed.insert(0, Timed("ar", replace(timed[0].request, method=AR())))
    for repeat in range(-warmup, repeats):
        for t in timed:
            seconds, stats = run_once(t, watch)
            if repeat >= 0:
                t.seconds.append(seconds)
                t.stats.append(stats)
    ar = next(t.median() for t in timed if t.is_ar)
    return [row_of(t, ar) for t in timed]


def run_once(timed: Timed, watch: Watch) -> tuple[float, dict]:
    """Wall-clock seconds and statistics of one run."""
    start = time.perf_counter()
    for event in timed.request.events():
        watch(timed.label, event)
        if isinstance(event, Finished):
            return time.perf_counter() - start, dict(event.stats)
    raise AssertionError("a run ends with Finished")


def row_of(timed: Timed, ar_seconds: float) -> dict:
    """One row of the table."""
    median, stats = timed.median(), timed.stats[-1]
    cells = timed.request.pictures * timed.request.grid.cells
    return {"method": timed.label, "passes": stats["passes"],
            "step_acceleration": stats["step_acceleration"], "median_seconds": median,
            "ratio_to_ar": ar_seconds / median, "seconds_per_pass": median / stats["passes"],
            "tokens_per_second": cells / median, "seconds": timed.stages(),
            "all_seconds": timed.seconds, "acceptance": stats["acceptance"]}
