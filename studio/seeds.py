"""Seeds: draw the first rows of many pictures, then finish only the chosen ones.

Each picture is a run of its own, one after the other, because each is paused and goes on by itself.
A paused run keeps the generator that drew its first rows, so a finished seed equals the same
picture drawn alone. Knows nothing of the page.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ssd_core import SSDError
from ssd_core.output.drawing import Drawing
from ssd_core.runs.live import LiveRun

from .alternatives import with_alternative
from .history import History
from .jobs import Cancelled, Job
from .library import Library, Loaded, free_memory
from .results import DrawResult, follow
from .running import advance, guarded
from .settings import request_of

Work = Callable[[Job], Any]
MOST_SEEDS = 64
LEFT_ALONE = 300.0  # seconds until a paused run may be freed for another visitor


@dataclass(frozen=True)
class Parked:
    """A paused run, the paused job that drew its first rows, and about how many bytes it holds."""

    run: LiveRun
    job: Job
    nbytes: int


class ParkedSeeds:
    """Paused runs by the id of their job; each owner has those of one start only."""

    def __init__(self, library: Library, history: History) -> None:
        self.library, self.history = library, history
        self._parked: dict[str, Parked] = {}
        self._starts: dict[str, object] = {}  # by owner: work of an older start ends at once
        self._lock = threading.RLock()
        library.before_switch.append(self.drop_all)

    def start(self, drawing: Drawing, count: int = 8, part: float = 1 / 3,
              owner: str = "") -> list[tuple[int, Work]]:
        """(seed, work) for `count` seeds, each to be submitted as a job of `owner`.

        Each work draws the first `part` of one picture's own rows and pauses its job. The owner's
        earlier paused runs are dropped. Raises SSDError for a drawing that cannot run; then they
        are not.
        """
        if not 1 <= count <= MOST_SEEDS or not 0 < part <= 1:
            raise SSDError(f"cannot start {count} seeds of {part:.0%}: start 1 to {MOST_SEEDS}")
        drawing = replace(drawing, pictures=1)
        loaded = self.library.as_now()
        request_of(with_alternative(drawing), loaded().backbone, loaded().heads)
        nbytes = self._require_room(drawing, count, owner)
        self.drop_owner(owner)
        with self._lock:
            start = self._starts[owner] = object()
        each = [with_alternative(drawing.with_seed(seed)) for seed in drawing.sampling.seeds(count)]
        return [(own.sampling.seed, partial(self._draw_top, loaded, own, part, start, nbytes))
                for own in each]

    def finish(self, ids: Sequence[str], owner: str = "", metadata: bool = True) -> list[Work]:
        """Work that finishes and saves the paused runs of these jobs, each for a new job.

        The new job starts with the old one's messages, unless it was submitted with them. Raises
        SSDError if a run is no longer paused.
        """
        with self._lock:
            for id_ in ids:
                if id_ not in self._parked or self._parked[id_].job.owner != owner:
                    raise gone()
        return [partial(self._finish, id_, metadata) for id_ in ids]

    def drop(self, ids: Sequence[str]) -> None:
        """Free paused runs; their jobs end as cancelled."""
        with self._lock:
            jobs = [self._parked[id_].job for id_ in ids if id_ in self._parked]
        for job in jobs:
            job.cancel()

    def drop_owner(self, owner: str) -> None:
        """Free an owner's paused runs; seeds of that start that are still queued are not drawn."""
        with self._lock:
            self._starts.pop(owner, None)
            ids = [id_ for id_, parked in self._parked.items() if parked.job.owner == owner]
        self.drop(ids)

    def drop_all(self) -> None:
        """Free all paused runs, as before another backbone is loaded."""
        with self._lock:
            self._starts.clear()
            ids = list(self._parked)
        self.drop(ids)

    def rows(self, ids: Sequence[str]) -> list[tuple[int, int]]:
        """(final rows, all rows) of those jobs whose runs are paused."""
        with self._lock:
            runs = [self._parked[id_].run for id_ in ids if id_ in self._parked]
        return [(run.result.rows, run.request.grid.rows) for run in runs]

    def _require_room(self, drawing: Drawing, count: int, owner: str) -> int:
        """The bytes that each of so many runs will hold.

        Raises SSDError if they do not fit in place of the owner's paused ones, even after freeing
        those that others have left alone for long.
        """
        with self._lock:
            own = sum(parked.nbytes for parked in self._parked.values()
                      if parked.job.owner == owner)
            old = [id_ for id_, parked in self._parked.items()
                   if parked.job.owner != owner and parked.job.seconds_parked > LEFT_ALONE]
        try:
            return self.library.require_room(drawing, runs=count, freed=own)
        except SSDError:
            if not old:
                raise
        self.drop(old)
        free_memory()
        return self.library.require_room(drawing, runs=count, freed=own)

    # Works

    def _draw_top(self, loaded: Callable[[], Loaded], drawing: Drawing, part: float,
                  start: object, nbytes: int, job: Job) -> None:
        now = loaded()
        self._require(start, job)
        run = LiveRun(request_of(drawing, now.backbone, now.heads), send=job.tell)
        self.history.require_room(1, run.request.sizes[0])
        own = run.request.grid.rows - drawing.keep_rows
        with guarded(run):
            advance(job, run, drawing.keep_rows + math.ceil(own * part))
            run.refine()  # people choose by what they see
            with self._lock:
                self._require(start, job)
                self._parked[job.id] = Parked(run, job, nbytes)
        job.pause(partial(self._free, job.id))

    def _require(self, start: object, job: Job) -> None:
        if self._starts.get(job.owner) is not start:
            raise Cancelled

    def _finish(self, id_: str, metadata: bool, job: Job) -> DrawResult:
        with self._lock:
            parked = self._parked.get(id_)
            if parked is None or not parked.job.hand_over():
                raise gone()
            del self._parked[id_]
        if not job.messages:
            job.messages.extend(parked.job.messages)
        parked.run.send = job.tell
        return follow(job, [parked.run], self.history, metadata)

    def _free(self, id_: str) -> None:
        with self._lock:
            parked = self._parked.pop(id_, None)
        if parked is not None:
            parked.run.cancel("interrupted")


def gone() -> SSDError:
    return SSDError("this paused seed has expired: start the seeds again")
