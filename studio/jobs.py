"""One queue for all visitors, who take turns: jobs run one after the other on one thread.

A job collects the messages that its page fetches. Knows nothing of pictures, nor of the page.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from operator import itemgetter
from typing import Any

from ssd_core import SSDError

KEPT_JOBS, KEPT_SECONDS = 64, 7200.0  # how many ended jobs are kept, and how long
PARKED_SECONDS = 1800.0  # a paused job is freed after this time
GRACE_SECONDS = 600.0  # or when no page has asked about it for this time
LOOK_SECONDS = 60.0  # between checks of paused jobs
MOST_WAITING = 256  # jobs, of all visitors
MOST_VISITORS = 4096  # whose turns are remembered; the latest
TO_NOBODY, TO_RUNS, TO_ALL = range(3)  # to whom a job gives way; sketches are no runs
log = logging.getLogger(__name__)


class Cancelled(Exception):
    """Raised in a job's work once the job is cancelled."""


class Job:
    """A piece of work for a visitor; it continues whether or not a page is open.

    title: kind of work. tag: tells jobs of one kind apart. state: waiting, running, paused (see
    `pause`), done, failed or cancelled. error: one line if it failed. result: what the work
    returned, or stored before it failed or was cancelled. freed: it was paused and then its memory
    was freed. progress (0..1) and seconds_left (None while unknown) are set by the work. order:
    what was asked for, by which it can be asked for again. gives_way: every job that gives way less
    cancels it; no list shows it, unless it gives way TO_NOBODY.
    """

    def __init__(self, worker: Worker, title: str, owner: str, tag: str = "",
                 order: Any = None, gives_way: int = TO_NOBODY) -> None:
        self.id, self.title, self.owner, self.tag = uuid.uuid4().hex, title, owner, tag
        self.order, self.gives_way = order, gives_way
        self.state = "waiting"
        self.error: str | None = None
        self.result: Any = None
        self.messages: list[dict] = []
        self.progress = 0.0
        self.seconds_left: float | None = None
        self.cancelled, self.freed, self._began, self._rested = False, False, 0.0, 0.0
        self._polled = 0.0
        self._worker, self._resting = worker, threading.Condition()
        self._release: Callable[[], None] | None = None

    @property
    def over(self) -> bool:
        """Whether this job has ended; a paused job counts, since another job continues it."""
        return self.state not in ("waiting", "running")

    @property
    def has_followers(self) -> bool:
        """Whether another job of the same visitor waits."""
        return any(job.state == "waiting" for job in self._worker.of(self.owner))

    @property
    def seconds(self) -> float:
        """Seconds it has run."""
        return (self._rested or time.monotonic()) - self._began if self._began else 0.0

    @property
    def seconds_parked(self) -> float:
        """Seconds it has been paused; 0 if it is not."""
        return time.monotonic() - self._rested if self.state == "paused" else 0.0

    @property
    def forsaken(self) -> bool:
        """Whether it was paused for too long, or no page has polled it for too long."""
        unpolled = time.monotonic() - max(self._polled, self._rested)
        return self.state == "paused" and (self.seconds_parked > PARKED_SECONDS
                                           or unpolled > GRACE_SECONDS)

    def tell(self, message: dict) -> None:
        self.messages.append(message)

    def check(self) -> None:
        """Raise Cancelled if the job is cancelled; its work calls this after every event."""
        if self.cancelled:
            raise Cancelled

    def cancel(self, parked: bool = True) -> None:
        """End the job: at once if it is not running, else at its work's next check.

        parked: also cancel a paused job, and free its memory.
        """
        with self._resting:
            if self.over and not (parked and self.state == "paused"):
                return
            self.cancelled = True
            if self.state == "running":
                return
            self._end("cancelled")
            release, self._release = self._release, None
            self.freed = release is not None
        if release is not None:
            release()

    def pause(self, release: Callable[[], None]) -> None:
        """Called by the work just before it returns: the job is paused, with its run in memory.

        release: frees that memory; called if the job is cancelled while paused.
        """
        with self._resting:
            seconds_left, cancelled = self.seconds_left, self.cancelled
            self._end("cancelled" if cancelled else "paused")
            if not cancelled:
                self._release, self.seconds_left = release, seconds_left
        if cancelled:
            release()

    def hand_over(self) -> bool:
        """Let another job continue this paused one; False if it was freed already."""
        with self._resting:
            if self.state != "paused":
                return False
            self._release, self.seconds_left = None, None
            self.state = "done"
            return True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds; returns whether the job is over."""
        with self._resting:
            return self._resting.wait_for(lambda: self.over, timeout)

    def feed(self, after: int = 0) -> dict:
        """News for a page that has seen the first `after` messages."""
        self._polled = time.monotonic()
        position, after = self._worker.position(self), max(0, after)
        with self._resting:
            # Read the state before the messages, so that an ended job has all its messages.
            state = {"state": self.state, "position": position, "error": self.error,
                     "progress": self.progress, "seconds_left": self.seconds_left}
        messages = self.messages[after:]
        return {**state, "messages": messages, "next": after + len(messages)}

    def _begin(self) -> bool:
        """Set the job running; False if it was cancelled before."""
        with self._resting:
            if self.state != "waiting":
                return False
            self.state, self._began = "running", time.monotonic()
            return True

    def _end(self, state: str, error: str | None = None) -> None:
        with self._resting:
            self.state, self.error, self._rested = state, error, time.monotonic()
            self.seconds_left = None
            self._resting.notify_all()


class Worker:
    """The thread that runs jobs: visitors take turns, each visitor's jobs keep their order."""

    def __init__(self, idle: Callable[[], None] = lambda: None,
                 rested: Callable[[], None] = lambda: None) -> None:
        """idle: called on the thread when a job has ended and no other waits. rested: likewise,
        after every LOOK_SECONDS without a job.
        """
        self.running: Job | None = None
        self._idle, self._rested = idle, rested
        self.last_error: str | None = None  # for Doctor
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[tuple[Job, Callable[[Job], Any]]] = deque()
        self._turns: OrderedDict[str, int] = OrderedDict()  # by visitor: number of the last turn
        self._clock = count(1)
        self._changed, self._closed = threading.Condition(), False
        self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="studio worker", daemon=True)
        self._thread.start()

    def submit(self, title: str, work: Callable[[Job], Any], owner: str = "",
               tag: str = "", messages: Sequence[dict] = (), order: Any = None,
               ahead_of: str = "", gives_way: int = TO_NOBODY) -> Job:
        """Queue `work`; its return value becomes the job's result.

        messages: what the page gets at once, such as the messages of the job that this continues.
        ahead_of: a title; the owner's waiting jobs of that kind run later than this one.
        gives_way: this job is cancelled at once if one that gives way less runs or waits, else by
        the next of those.
        """
        job = Job(self, title, owner, tag, order, gives_way)
        job.messages.extend(messages)
        with self._changed:
            if self._closed:
                raise SSDError("the program is closing: start it again")
            self.require_room()
            self._forget()
            self._jobs[job.id] = job
            self._make_way(job)
            self._waiting = deque(pair for pair in self._waiting if not pair[0].over)
            place = next((n for n, (other, _) in enumerate(self._waiting)
                          if (other.owner, other.title) == (owner, ahead_of)), len(self._waiting))
            self._waiting.insert(place, (job, work))
            self._changed.notify_all()
        return job

    def _make_way(self, new: Job) -> None:
        """Cancel what gives way to a new job, or the new job if it gives way to another one."""
        others = [job for job in self._jobs.values() if job is not new and not job.over]
        for job in others:
            if job.gives_way > new.gives_way:
                job.cancel()
        if any(job.gives_way < new.gives_way for job in others):
            new.cancel()

    def require_room(self, count: int = 1) -> None:
        """Raise SSDError if so many more jobs are too many for the queue."""
        with self._changed:
            waiting = len(self._in_turn())
        if waiting + count > MOST_WAITING:
            raise SSDError(f"{waiting} runs wait already, at most {MOST_WAITING}: wait for some of "
                           "them, or empty your queue")

    def move(self, job: Job, before: Job | None = None) -> None:
        """Give a waiting job another place among its visitor's: before another one, or last."""
        with self._changed:
            own = [pair for pair in self._waiting if pair[0].owner == job.owner]
            moved = [pair for pair in own if pair[0] is job]
            rest = [pair for pair in own if pair[0] is not job]
            place = next((n for n, (other, _) in enumerate(rest) if other is before), len(rest))
            turns = iter([*rest[:place], *moved, *rest[place:]])
            self._waiting = deque(next(turns) if pair[0].owner == job.owner else pair
                                  for pair in self._waiting)

    @property
    def is_asked(self) -> bool:
        """Whether a job waits, or the program is closing."""
        return bool(self._waiting) or self._closed

    def job(self, id_: str | None) -> Job | None:
        return None if id_ is None else self._jobs.get(id_)

    def position(self, job: Job) -> int:
        """Place in the queue: 1 for the next job, 0 if it is not waiting."""
        with self._changed:
            queue = self._in_turn()
            return queue.index(job) + 1 if job in queue else 0

    def _in_turn(self) -> list[Job]:
        """The waiting jobs in the order they will run: every visitor's next one, then the others.

        Among visitors the one goes first whose last turn was longest ago.
        """
        ahead: Counter[str] = Counter()
        order = []
        for place, (job, _) in enumerate(self._waiting):
            if job.state == "waiting":
                order.append((ahead[job.owner], self._turns.get(job.owner, 0), place, job))
                ahead[job.owner] += 1
        return [job for *_, job in sorted(order, key=itemgetter(0, 1, 2))]

    def feed(self, id_: str, after: int = 0) -> dict:
        """`Job.feed` of this job; state "gone" if the job is unknown."""
        job = self.job(id_)
        if job is not None:
            return job.feed(after)
        return {"state": "gone", "position": 0, "messages": [], "next": max(0, after),
                "error": None, "progress": 0.0, "seconds_left": None}

    def of(self, owner: str, *titles: str) -> list[Job]:
        """A visitor's known jobs with these titles, or all that give no way, oldest first."""
        with self._changed:
            return [job for job in self._jobs.values() if job.owner == owner
                    and (job.title in titles if titles else not job.gives_way)]

    def forget(self, *jobs: Job) -> None:
        """Drop ended jobs that nobody will ask about again."""
        with self._changed:
            for job in jobs:
                if job.over and job.state != "paused":
                    self._jobs.pop(job.id, None)

    def close(self, timeout: float = 10.0) -> None:
        """Cancel everything and end the thread."""
        with self._changed:
            self._closed, jobs = True, list(self._jobs.values())
            self._changed.notify_all()
        for job in jobs:
            job.cancel()
        self._thread.join(timeout)

    def _work(self) -> None:
        """Run jobs. Whatever ends this thread, its job fails and another thread goes on."""
        try:
            self._run()
        except BaseException as problem:
            log.exception("studio worker")
            self.last_error = fault(problem)
            if self.running is not None:
                self.running._end("failed", self.last_error)
            self.running = None
            with suppress(RuntimeError):  # the program is ending
                self._start()

    def _run(self) -> None:
        while True:
            self._expire()
            with self._changed:
                asked = self._changed.wait_for(lambda: self._waiting or self._closed, LOOK_SECONDS)
                if self._closed:
                    return
                taken = self._next() if asked else None
                self.running = taken[0] if taken else None
            if not asked:
                self._rested()
                continue
            if taken is not None:
                self._do(*taken)
            del taken  # else the job's result stays in memory until the next job
            if not self._waiting:
                self._idle()

    def _next(self) -> tuple[Job, Callable[[Job], Any]] | None:
        """Take the job whose turn it is; None if all that waited were cancelled."""
        order, works = self._in_turn(), dict(self._waiting)
        self._waiting = deque((job, works[job]) for job, _ in self._waiting if job in order[1:])
        if not order or not order[0]._begin():
            return None
        owner = order[0].owner
        self._turns[owner] = next(self._clock)
        self._turns.move_to_end(owner)
        if len(self._turns) > MOST_VISITORS:
            self._turns.popitem(last=False)
        return order[0], works[order[0]]

    def _do(self, job: Job, work: Callable[[Job], Any]) -> None:
        state, error = "done", None
        try:
            job.result = work(job)
        except Cancelled:
            state = "cancelled"
        except SSDError as problem:
            state, error = "failed", str(problem)
        except BaseException as problem:  # Rust's panics are no Exception
            log.exception("%s", job.title)
            state, error = "failed", fault(problem)
        self.last_error, self.running = error or self.last_error, None
        if job.state == "running":  # else it was paused, and perhaps cancelled after that
            job._end(state, error)

    def _expire(self) -> None:
        """Free paused jobs that nobody returns to."""
        with self._changed:
            jobs = list(self._jobs.values())
        for job in jobs:
            if job.forsaken:
                job.cancel()

    def _forget(self) -> None:
        """Drop ended jobs that are too old or too many, with their messages."""
        ended = sorted((job for job in self._jobs.values() if job.over and job.state != "paused"),
                       key=lambda job: job._rested, reverse=True)
        oldest = time.monotonic() - KEPT_SECONDS
        for place, job in enumerate(ended):
            if place >= KEPT_JOBS or job._rested < oldest:
                del self._jobs[job.id]


def fault(error: BaseException) -> str:
    """One line about an error that the user did not cause."""
    first = (str(error).splitlines() or [""])[0]
    return (f"an error in this program: {type(error).__name__}: {first}; "
            "see the Doctor tab or the terminal")
