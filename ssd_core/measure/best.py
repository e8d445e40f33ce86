"""Times work with several settings in one run; the fastest setting counts.

The settings take turns, so that a machine that slows down affects all of them. Knows neither
methods nor pictures; prints nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from ..engine.threads import using_threads
from ..runs.scheduling import Clock


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
