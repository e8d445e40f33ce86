"""Seeds: the first rows of many pictures, drawn cheaply; those that are chosen go on from there.

A parked run is the very generator that drew the first rows, so a finished seed is what it would be
alone. Knows nothing of the page.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ssd_core import SSDError

from .drawn import Drawn, follow
from .history import History
from .jobs import Cancelled, Job
from .library import Library, Loaded, free_memory
from .running import Run, advance, guarded
from .settings import Settings

Work = Callable[[Job], object]
MOST_SEEDS = 64
LEFT_ALONE = 300.0  # seconds after which a parked run makes room for another visitor's


@dataclass(frozen=True)
class Parked:
    """A run that rests, and the paused job that drew its first rows."""

    run: Run
    job: Job


class ParkedSeeds:
    """Parked runs by the id of their job; each owner has those of one start."""

    def __init__(self, library: Library, history: History) -> None:
        self.library, self.history = library, history
        self._parked: dict[str, Parked] = {}
        self._starts: dict[str, object] = {}  # by owner: works of an older start end at once
        self._lock = threading.RLock()
        library.before_switch.append(self.drop_all)

    def start(self, settings: Settings, count: int = 8, part: float = 1 / 3,
              owner: str = "") -> list[tuple[int, Work]]:
        """(seed, work) for `count` seeds, each to be submitted as a job of `owner`.

        A work draws the first `part` of the rows of one picture and leaves its job paused. What the
        owner had parked before is dropped. SSDError for settings that cannot run.
        """
        if not 1 <= count <= MOST_SEEDS or not 0 < part <= 1:
            raise SSDError(f"seeds: {count} of {part:.0%} cannot be started: 1 to {MOST_SEEDS} can")
        settings = replace(settings, pictures=1)
        loaded = self.library.as_now()
        settings.request(loaded().backbone, loaded().heads)
        self.drop_owner(owner)
        self._require_room(settings, count)
        with self._lock:
            start = self._starts[owner] = object()
        wishes = [replace(settings, seed=seed) for seed in settings.sampling().seeds(count)]
        return [(wish.seed, partial(self._draw_top, loaded, wish, part, start)) for wish in wishes]

    def finish(self, ids: Sequence[str], owner: str = "", metadata: bool = True) -> list[Work]:
        """Works that go on with the runs parked by these jobs, and save them; each for a new job.

        The new job begins with the messages of the old one. SSDError where a run is not held.
        """
        with self._lock:
            for id_ in ids:
                if id_ not in self._parked or self._parked[id_].job.owner != owner:
                    raise gone()
        return [partial(self._finish, id_, metadata) for id_ in ids]

    def drop(self, ids: Sequence[str]) -> None:
        """Free parked runs; their jobs end as cancelled."""
        with self._lock:
            jobs = [self._parked[id_].job for id_ in ids if id_ in self._parked]
        for job in jobs:
            job.cancel()

    def drop_owner(self, owner: str) -> None:
        """Free what an owner has parked; what is still to be drawn of it is not."""
        with self._lock:
            self._starts.pop(owner, None)
            ids = [id_ for id_, parked in self._parked.items() if parked.job.owner == owner]
        self.drop(ids)

    def drop_all(self) -> None:
        """Free everything, as before another backbone is loaded."""
        with self._lock:
            self._starts.clear()
            ids = list(self._parked)
        self.drop(ids)

    def rows(self, ids: Sequence[str]) -> list[tuple[int, int]]:
        """(rows final, rows in all) of those of these jobs whose runs are parked."""
        with self._lock:
            runs = [self._parked[id_].run for id_ in ids if id_ in self._parked]
        return [(run.result.rows, run.request.grid.rows) for run in runs]

    def _require_room(self, settings: Settings, count: int) -> None:
        """SSDError where so many runs do not fit, even without those long left alone."""
        try:
            self.library.require_room(settings, runs=count)
        except SSDError:
            with self._lock:
                old = [id_ for id_, parked in self._parked.items()
                       if parked.job.seconds_parked > LEFT_ALONE]
            if not old:
                raise
            self.drop(old)
            free_memory()
            self.library.require_room(settings, runs=count)

    # Works

    def _draw_top(self, loaded: Callable[[], Loaded], settings: Settings, part: float,
                  start: object, job: Job) -> None:
        now = loaded()
        self._require(start, job)
        self.history.require_writable()
        run = Run(settings.request(now.backbone, now.heads), job.tell)
        with guarded(run):
            advance(job, run, math.ceil(run.request.grid.rows * part))
            with self._lock:
                self._require(start, job)
                self._parked[job.id] = Parked(run, job)
        job.pause(partial(self._free, job.id))

    def _require(self, start: object, job: Job) -> None:
        if self._starts.get(job.owner) is not start:
            raise Cancelled

    def _finish(self, id_: str, metadata: bool, job: Job) -> Drawn:
        with self._lock:
            parked = self._parked.get(id_)
            if parked is None or not parked.job.hand_over():
                raise gone()
            del self._parked[id_]
        for message in parked.job.messages:
            job.tell(message)
        parked.run.tell = job.tell
        return follow(job, parked.run, self.history, metadata)

    def _free(self, id_: str) -> None:
        with self._lock:
            parked = self._parked.pop(id_, None)
        if parked is not None:
            parked.run.close("interrupted")


def gone() -> SSDError:
    return SSDError("this paused seed has expired: start the seeds again")
