"""How long methods take, measured side by side in one run. Prints nothing.

The time is wall-clock time of decoding the tokens, without pixels. Runs of different methods are
interleaved, so that a machine that slows down affects all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..backbones.base import Backbone
from ..engine.decode import generate
from ..engine.events import Event, Finished
from ..engine.heads import DraftHeads
from ..engine.methods import AR, Method
from ..model.sampling import Sampling

Watch = Callable[[str, Event], None]


@dataclass
class Timed:
    """One method and the measurements of its runs."""

    label: str
    method: Method
    seconds: list[float] = field(default_factory=list)
    stats: list[dict] = field(default_factory=list)

    def median(self) -> float:
        return statistics.median(self.seconds)

    def stages(self) -> dict[str, float]:
        """Median seconds by stage, from the engine's stopwatch."""
        return {stage: statistics.median(s["seconds"][stage] for s in self.stats)
                for stage in self.stats[0]["seconds"]}


def bench(backbone: Backbone, heads: DraftHeads | None, methods: Sequence[tuple[str, Method]],
          prompts: Sequence[str], sampling: Sampling = Sampling(),  # noqa: B008
          repeats: int = 3, warmup: int = 1, watch: Watch = lambda label, event: None
          ) -> list[dict]:
    """Rows with method, median_seconds, ratio_to_ar (times faster than AR), seconds_per_pass, ...

    methods: (label, method); AR is added first if it is not among them. prompts: one per picture,
    decoded as one batch. watch(label, event) is called with every event of every run.
    """
    timed = [Timed(label, method) for label, method in methods]
    if not any(isinstance(t.method, AR) for t in timed):
        timed.insert(0, Timed("ar", AR()))
    for repeat in range(-warmup, repeats):
        for t in timed:
            seconds, stats = run_once(backbone, heads, t, prompts, sampling, watch)
            if repeat >= 0:
                t.seconds.append(seconds)
                t.stats.append(stats)
    ar = next(t.median() for t in timed if isinstance(t.method, AR))
    cells = len(prompts) * backbone.grid.cells
    return [row_of(t, ar, cells) for t in timed]


def run_once(backbone: Backbone, heads: DraftHeads | None, timed: Timed, prompts: Sequence[str],
             sampling: Sampling, watch: Watch) -> tuple[float, dict]:
    """Wall-clock seconds and statistics of one run."""
    start = time.perf_counter()
    for event in generate(backbone, prompts, timed.method, heads, sampling):
        watch(timed.label, event)
        if isinstance(event, Finished):
            return time.perf_counter() - start, dict(event.stats)
    raise AssertionError("a run ends with Finished")


def row_of(timed: Timed, ar_seconds: float, cells: int) -> dict:
    """One row of the table; each run decoded `cells` tokens."""
    median, stats = timed.median(), timed.stats[-1]
    return {"method": timed.label, "passes": stats["passes"],
            "step_acceleration": stats["step_acceleration"], "median_seconds": median,
            "ratio_to_ar": ar_seconds / median, "seconds_per_pass": median / stats["passes"],
            "tokens_per_second": cells / median, "seconds": timed.stages(),
            "all_seconds": timed.seconds, "acceptance": stats["acceptance"]}
