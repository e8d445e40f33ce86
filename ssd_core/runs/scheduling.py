"""Run several requests, interleaved or one after the other, each on its own clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from ..engine.events import Event

Clock = Callable[[], float]


def timed(events: Iterator[Event], clock: Clock = time.perf_counter
          ) -> Generator[tuple[float, Event], None, None]:
    """Yield (seconds, event); seconds counts only the time spent inside the run so far."""
    seconds = 0.0
    while True:
        begin = clock()
        event = next(events, None)
        seconds += clock() - begin
        if event is None:
            return
        yield seconds, event


class Timed(Iterator[Event], Protocol):
    """A run that yields its events and knows the time spent inside it, as a `LiveRun` does."""

    @property
    def seconds(self) -> float: ...

    def close(self) -> None: ...


RunT = TypeVar("RunT", bound=Timed)


def race(runs: Sequence[RunT]) -> Generator[tuple[RunT, Event], None, None]:
    """Yield (run, event); the run with the least time on its clock takes the next step.

    Every run thus shows what it would show at that moment if it were alone. Closing the generator
    closes all runs.
    """
    going = list(runs)
    try:
        while going:
            run = min(going, key=lambda run: run.seconds)
            event = next(run, None)
            if event is None:
                going.remove(run)
            else:
                yield run, event
    finally:
        for run in runs:
            run.close()


def in_turn(runs: Sequence[RunT]) -> Generator[tuple[RunT, Event], None, None]:
    """Yield (run, event); each run ends before the next one allocates memory.

    The first events of all runs come first; they precede every allocation.
    """
    try:
        for run in runs:
            for event in islice(run, 1):
                yield run, event
        for run in runs:
            for event in run:
                yield run, event
    finally:
        for run in runs:
            run.close()
