"""A run in progress: its events, its preview, its result so far; and how runs are followed.

Knows engine events and jobs, not where pictures are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from traceback import clear_frames

import torch

from ssd_core import SSDError
from ssd_core.engine.events import Event, Rows
from ssd_core.output.preview import Preview
from ssd_core.runs.request import Request, Result
from ssd_core.runs.scheduling import race, timed
from ssd_core.weights.out_of_memory import is_out_of_memory

from .jobs import Cancelled, Job
from .library import free_memory

BRIEF = 1.0  # s that Stop may take to show what was drawn
REMEDY = ("lower the number of pictures or k_v, set cfg to 1, or load the backbone with a smaller "
          "dtype")


@dataclass
class Run:
    """A request in progress, read event by event, with its preview and its result so far.

    tell: receives messages; it may change while the run is paused.
    """

    request: Request
    tell: Callable[[dict], None]
    panel: int = 0
    result: Result = field(init=False)
    events: Iterator[Event] = field(init=False)
    steps: Iterator[tuple[float, Event]] = field(init=False)
    screen: Preview = field(init=False)

    def __post_init__(self) -> None:
        self.result, self.events = Result(self.request), self.request.events()
        self.steps = timed(self.events)
        self.screen = self.request.preview(lambda message: self.tell(message), panel=self.panel)

    def take(self, event: Event, seconds: float) -> None:
        """Process an event; seconds: what the run itself has taken so far."""
        self.screen(event, seconds)
        self.result.take(event, seconds)

    def finish(self, pictures: Sequence[torch.Tensor]) -> None:
        """Show the finished pictures [H, W, 3]."""
        self.screen.finish(self.result.stats, torch.stack(list(pictures)), self.result.share)

    def close(self, reason: str) -> None:
        """Stop the run and free its memory; reason: "interrupted" or "failed"."""
        self.events.close()
        self.screen.cancel(reason)


# Following


def show_places(runs: Sequence[Run]) -> None:
    """Show where the pictures of all these runs will be; none has allocated anything by then."""
    for run in runs:
        for seconds, event in islice(run.steps, 1):
            run.take(event, seconds)


def advance(job: Job, run: Run, rows: int | None = None, beside: Sequence[Run] = ()) -> None:
    """Continue until `rows` rows are final, or to the end; Cancelled if the job is.

    beside: all runs of the job, this one among them, if it has others.
    """
    job.check()
    for seconds, event in run.steps:
        run.take(event, seconds)
        estimate(job, beside or [run])
        job.check()
        if rows is not None and run.result.rows >= rows and isinstance(event, Rows):
            return


def advance_together(job: Job, runs: Sequence[Run]) -> None:
    """Run all to the end, each on its own clock; Cancelled if the job is."""
    steps = race([run.events for run in runs])
    try:
        for panel, seconds, event in steps:
            runs[panel].take(event, seconds)
            estimate(job, runs)
            job.check()
    finally:
        steps.close()


def estimate(job: Job, runs: Sequence[Run]) -> None:
    """Set progress and time left, from the seconds per row so far."""
    done = sum(run.result.rows - run.request.keep_rows for run in runs)
    left = sum(run.request.grid.rows - run.result.rows for run in runs)
    job.progress = done / (done + left)
    job.seconds_left = sum(run.result.seconds for run in runs) / done * left if done else None


@contextmanager
def guarded(*runs: Run) -> Iterator[None]:
    """If the block raises, close the runs and show the reason on their panels."""
    try:
        with memory_told():
            yield
    except BaseException as error:
        stopped = isinstance(error, Cancelled)
        for run in runs:
            if stopped:
                run.screen.refine(BRIEF)  # its top stays on the stage and can be kept
            run.close("interrupted" if stopped else "failed")
        raise


@contextmanager
def memory_told() -> Iterator[None]:
    """Turn an out-of-memory error into one SSDError line that says what to lower."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        clear_frames(error.__traceback__)  # they refer to the run and its cache
        free_memory()
        raise SSDError(f"out of memory: {REMEDY}") from error
