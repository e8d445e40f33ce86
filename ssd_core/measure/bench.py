"""Times methods side by side in one run, each with its best number of threads. Prints nothing.

The time is wall-clock time of decoding the tokens, without pixels. Settings take turns, so that a
machine that slows down affects all of them, and the fastest counts: every method is timed with one
thread and with all. Ratios are to AR with its best setting: in the same dtype, and in the fastest
of all measured dtypes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from ..engine.events import Event, finished
from ..engine.methods import AR
from ..engine.threads import using_threads
from ..runs.request import Request
from ..runs.scheduling import Clock
from ..weights.model_size import stored_dtype

Watch = Callable[[str, Event], None]
AR_DTYPES = ("fp32", "bf16", "int8")  # AR counts with the fastest of these


@dataclass
class Setting:
    """Work with a number of threads, and the seconds and results of its runs.

    run: does the work and returns its statistics.
    """

    label: str
    dtype: str
    threads: int
    run: Callable[[], Mapping]
    seconds: list[float] = field(default_factory=list)
    outcomes: list[Mapping] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        """Such as "fp32, 2 threads"."""
        return f"{self.dtype}, {in_words(self.threads)}"


def in_words(threads: int) -> str:
    return f"{threads} thread{'s' * (threads > 1)}"


def thread_counts(device: torch.device) -> tuple[int, ...]:
    """Return 1 and all of torch's threads; on a card, where threads do not matter, only all."""
    threads = torch.get_num_threads()
    return (threads,) if device.type != "cpu" else tuple(sorted({1, threads}))


def settings(label: str, dtype: str, counts: Iterable[int],
             run: Callable[[], Mapping]) -> list[Setting]:
    """Return a setting of the same work for each number of threads."""
    return [Setting(label, dtype, count, run) for count in counts]


def take_turns(timed: Sequence[Setting], repeats: int, warmup: int = 1,
               clock: Clock = time.perf_counter) -> None:
    """Time every setting once, then all again, `repeats` times; warm-up runs do not count."""
    for repeat in range(-warmup, repeats):
        for setting in timed:
            with using_threads(setting.threads):
                start = clock()
                outcome = setting.run()
                seconds = clock() - start
            if repeat >= 0:
                setting.seconds.append(seconds)
                setting.outcomes.append(outcome)


def fastest(timed: Iterable[Setting]) -> Setting:
    """Return the setting with the smallest median, which is the baseline."""
    return min(timed, key=lambda setting: setting.median)


@dataclass(frozen=True)
class Entrant:
    """A request to time, and its label in the table."""

    label: str
    request: Request

    @property
    def dtype(self) -> str:
        """The name of the dtype in which the backbone's layers are stored."""
        return stored_dtype(self.request.backbone)

    @property
    def is_ar(self) -> bool:
        return isinstance(self.request.method, AR)

    def ar(self) -> Entrant:
        """Return AR for the same pictures."""
        return replace(self, label=AR.name, request=self.request.by(AR()))

    def run(self, watch: Watch) -> Mapping:
        """Draw, and return the run's statistics."""
        request = replace(self.request, threads=torch.get_num_threads())  # those of the setting
        # Request.run would also record the passes, and so change the choices of later runs.
        return finished(request.events(), partial(watch, self.label)).stats


Timed = Sequence[tuple[Entrant, Sequence[Setting]]]


def bench(entrants: Sequence[Entrant], repeats: int = 3, warmup: int = 1,
          watch: Watch = lambda label, event: None, beside: Sequence[Setting] = (),
          counts: Sequence[int] | None = None, clock: Clock = time.perf_counter) -> list[dict]:
    """Return rows with method, dtype, threads, median_seconds, ratio_to_ar, ratio_in_dtype, ...

    entrants: the same pictures by several methods, in one dtype or more; AR is added in every dtype
    that lacks it. watch(label, event) is called with every event of every run. beside: other work
    to time in the same run. counts: numbers of threads; None: one thread and all.
    """
    entrants = with_ar(entrants)
    counts = counts or thread_counts(entrants[0].request.backbone.device)
    timed = [(entrant, settings(entrant.label, entrant.dtype, counts, partial(entrant.run, watch)))
             for entrant in entrants]
    take_turns([*(setting for _, own in timed for setting in own), *beside], repeats, warmup, clock)
    return [row_of(entrant, own, timed) for entrant, own in timed]


def with_ar(entrants: Sequence[Entrant]) -> list[Entrant]:
    """Prepend AR in every dtype that lacks it."""
    dtypes = {entrant.dtype for entrant in entrants if entrant.is_ar}
    lacking = {entrant.dtype: entrant.ar() for entrant in entrants if entrant.dtype not in dtypes}
    return [*lacking.values(), *entrants]


def ar_at_its_best(timed: Timed, dtype: str | None = None) -> Setting:
    """Return AR's fastest setting, in this dtype or in any."""
    return fastest(setting for entrant, own in timed for setting in own
                   if entrant.is_ar and dtype in (None, entrant.dtype))


def row_of(entrant: Entrant, own: Sequence[Setting], timed: Timed) -> dict:
    """Return a row of the table."""
    best, request = fastest(own), entrant.request
    median, stats = best.median, best.outcomes[-1]
    cells = request.pictures * request.grid.cells
    return {"method": entrant.label, "dtype": entrant.dtype, "threads": best.threads,
            "passes": stats["passes"], "step_acceleration": stats["step_acceleration"],
            "median_seconds": median, "ratio_to_ar": ar_at_its_best(timed).median / median,
            "ratio_in_dtype": ar_at_its_best(timed, entrant.dtype).median / median,
            "seconds_per_pass": median / stats["passes"], "tokens_per_second": cells / median,
            "seconds": stages(best), "all_seconds": best.seconds,
            "seconds_by_threads": {setting.threads: setting.median for setting in own},
            "acceptance": stats["acceptance"]}


def stages(setting: Setting) -> dict[str, float]:
    """Median seconds by stage, from the engine's stopwatch."""
    return {stage: statistics.median(stats["seconds"][stage] for stats in setting.outcomes)
            for stage in setting.outcomes[0]["seconds"]}
