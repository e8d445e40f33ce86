"""Best against best: work is timed at several settings in one run, and counts with its fastest.

The settings take turns, so that a machine that slows down slows them all. Knows neither methods nor
pictures; prints nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from ..engine.threads import using_threads
from ..front.race import Clock


@dataclass
class Setting:
    """One piece of work with so many threads, and what its measured runs took.

    run: does the work and returns what is to be known of it.
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
    """One thread and all of torch's. Work on a card does not depend on them: there all."""
    every = torch.get_num_threads()
    return (every,) if device.type != "cpu" else tuple(sorted({1, every}))


def settings(label: str, dtype: str, counts: Iterable[int],
             run: Callable[[], Mapping]) -> list[Setting]:
    """The same work with each of these numbers of threads."""
    return [Setting(label, dtype, count, run) for count in counts]


def take_turns(timed: Sequence[Setting], repeats: int, warmup: int = 1,
               clock: Clock = time.perf_counter) -> None:
    """Time every setting once, then every setting again, and so on; warm-up runs do not count."""
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
    """The setting with the least median: the only one that counts as a baseline."""
    return min(timed, key=lambda setting: setting.median)
