"""Follow runs for a job: progress, time left, Stop, and memory that runs out.

Knows engine events and jobs, not where pictures are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from traceback import clear_frames

from ssd_core import SSDError
from ssd_core.engine.events import FinalRows
from ssd_core.runs.live import LiveRun
from ssd_core.runs.scheduling import race
from ssd_core.weights.memory import is_out_of_memory

from .jobs import Cancelled, Job
from .library import free_memory

BRIEF = 1.0  # s that Stop may take to show what was drawn
REMEDY = ("lower the number of pictures or k_v, set cfg to 1, or load the backbone with a smaller "
          "dtype")


def show_places(runs: Sequence[LiveRun]) -> None:
    """Show where the pictures of all these runs will be; none has allocated anything by then."""
    for run in runs:
        next(run, None)


def advance(job: Job, run: LiveRun, rows: int | None = None,
            beside: Sequence[LiveRun] = ()) -> None:
    """Continue until `rows` rows are final, or to the end; Cancelled if the job is.

    beside: all runs of the job, this one among them, if it has others.
    """
    job.check()
    for event in run:
        estimate(job, beside or [run])
        job.check()
        if rows is not None and run.result.rows >= rows and isinstance(event, FinalRows):
            return


def advance_together(job: Job, runs: Sequence[LiveRun],
                     beside: Sequence[LiveRun] = ()) -> None:
    """Run all to the end, each on its own clock; Cancelled if the job is.

    beside: as in `advance`.
    """
    job.check()
    with closing(race(runs)) as steps:
        for _ in steps:
            estimate(job, beside or runs)
            job.check()


def estimate(job: Job, runs: Sequence[LiveRun]) -> None:
    """Set progress and time left, from the seconds per cell of the rows that are final."""
    done, cells = sum(run.drawn_cells for run in runs), sum(run.region.cells for run in runs)
    left = cells - done
    job.progress = done / cells
    job.seconds_left = sum(run.seconds for run in runs) / done * left if done else None


@contextmanager
def guarded(*runs: LiveRun) -> Iterator[None]:
    """If the block raises, close the runs and show the reason on their panels."""
    try:
        with memory_errors():
            yield
    except BaseException as error:
        stopped = isinstance(error, Cancelled)
        for run in runs:
            if stopped:
                run.refine(BRIEF)  # its top stays on the stage and can be kept
            run.cancel("interrupted" if stopped else "failed")
        raise


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn an out-of-memory error into one SSDError line that says what to lower."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        clear_frames(error.__traceback__)  # they refer to the run and its cache
        free_memory()
        raise SSDError(f"out of memory: {REMEDY}") from error
