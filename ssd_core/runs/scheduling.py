"""Run several requests, interleaved or one after the other, each on its own clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice

from ..engine.events import Event

Clock = Callable[[], float]


def timed(run: Iterator[Event], clock: Clock = time.perf_counter
          ) -> Generator[tuple[float, Event], None, None]:
    """Yield (seconds, event); seconds counts only the time spent inside the run so far."""
    seconds = 0.0
    while True:
        begin = clock()
        event = next(run, None)
        seconds += clock() - begin
        if event is None:
            return
        yield seconds, event


def race(runs: Sequence[Generator[Event, None, None]], clock: Clock = time.perf_counter
         ) -> Generator[tuple[int, float, Event], None, None]:
    """Yield (panel, seconds, event); the run with the least time on its clock takes the next step.

    Every panel thus shows what it would show at that moment if its run were alone. Closing the
    generator closes all runs.
    """
    clocks = dict.fromkeys(range(len(runs)), 0.0)
    steps = [timed(run, clock) for run in runs]
    try:
        while clocks:
            panel = min(clocks, key=clocks.__getitem__)
            step = next(steps[panel], None)
            if step is None:
                del clocks[panel]
                continue
            clocks[panel], event = step
            yield panel, clocks[panel], event
    finally:
        for run in runs:
            run.close()


def in_turn(runs: Sequence[Generator[Event, None, None]], clock: Clock = time.perf_counter
            ) -> Generator[tuple[int, float, Event], None, None]:
    """Yield (panel, seconds, event); each run ends before the next one allocates memory.

    The first events of all runs come first; they precede every allocation.
    """
    steps = [timed(run, clock) for run in runs]
    try:
        for panel, step in enumerate(steps):
            for seconds, event in islice(step, 1):
                yield panel, seconds, event
        for panel, step in enumerate(steps):
            for seconds, event in step:
                yield panel, seconds, event
    finally:
        for run in runs:
            run.close()
