"""One queue for all visitors: jobs run one after the other on one thread.

A job collects the messages that its page fetches. Knows nothing of pictures, nor of the page.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

from ssd_core import SSDError

KEPT_JOBS, KEPT_SECONDS = 64, 600.0  # ended jobs that wait for late questions
PARKED_SECONDS = 1800.0  # what nobody goes on with until then is freed
GRACE_SECONDS = 600.0  # what is parked is freed where no page has asked about it for so long
LOOK_SECONDS = 60.0  # between two looks at what is parked
log = logging.getLogger(__name__)


class Cancelled(Exception):
    """Raised by a job's work once it saw that the job was cancelled."""


class Job:
    """Something to be done for a visitor; it goes on, whether or not a page looks on.

    title: what kind of work; tag: which of several, for whoever asked.

    state: waiting, running, paused (see `pause`), done, failed or cancelled. error: one line where
    it failed. result: what the work returned, or left there before it failed or was cancelled.
    freed: it was paused, and what it had parked was given up.
    progress lies in 0..1; seconds_left is None until it can be told. Both are set by the work.
    """

    def __init__(self, worker: Worker, title: str, owner: str, tag: str = "") -> None:
        self.id, self.title, self.owner, self.tag = uuid.uuid4().hex, title, owner, tag
        self.state, self.error, self.result = "waiting", None, None
        self.messages: list[dict] = []
        self.progress, self.seconds_left = 0.0, None
        self.cancelled, self.freed, self._began, self._rested = False, False, 0.0, 0.0
        self._asked = 0.0
        self._worker, self._resting = worker, threading.Condition()
        self._release: Callable[[], None] | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more comes from this job; a paused one goes on as another."""
        return self.state not in ("waiting", "running")

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return (self._rested or time.monotonic()) - self._began if self._began else 0.0

    @property
    def seconds_parked(self) -> float:
        """How long it has been paused; 0 where it is not."""
        return time.monotonic() - self._rested if self.state == "paused" else 0.0

    @property
    def forsaken(self) -> bool:
        """Whether it is parked for too long, or no page has asked about it for too long."""
        unasked = time.monotonic() - max(self._asked, self._rested)
        return self.state == "paused" and (self.seconds_parked > PARKED_SECONDS
                                           or unasked > GRACE_SECONDS)

    def tell(self, message: dict) -> None:
        self.messages.append(message)

    def check(self) -> None:
        """Raise Cancelled if the job was; its work calls this after every event."""
        if self.cancelled:
            raise Cancelled

    def cancel(self, parked: bool = True) -> None:
        """End the job: at once where it does not run, else when its work next looks.

        parked: also where it is paused, which frees what is parked.
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
        """Called by the work, which then returns: what it began is parked.

        release: frees what is parked; called where the job is cancelled while it rests.
        """
        with self._resting:
            seconds_left, cancelled = self.seconds_left, self.cancelled
            self._end("cancelled" if cancelled else "paused")
            if not cancelled:
                self._release, self.seconds_left = release, seconds_left
        if cancelled:
            release()

    def hand_over(self) -> bool:
        """Another job takes what is parked here and goes on; False where it was freed already."""
        with self._resting:
            if self.state != "paused":
                return False
            self._release, self.seconds_left = None, None
            self.state = "done"
            return True

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the job is over within `timeout` seconds."""
        with self._resting:
            return self._resting.wait_for(lambda: self.over, timeout)

    def feed(self, after: int = 0) -> dict:
        """What a page is told that has seen the first `after` messages."""
        self._asked = time.monotonic()
        position, after = self._worker.position(self), max(0, after)
        with self._resting:
            # The state before the messages: after an end has been told, no message may be missing.
            told = {"state": self.state, "position": position, "error": self.error,
                    "progress": self.progress, "seconds_left": self.seconds_left}
        messages = self.messages[after:]
        return {**told, "messages": messages, "next": after + len(messages)}

    def _begin(self) -> bool:
        """Whether the job may run now."""
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
    """The one thread that runs jobs, first come, first served."""

    def __init__(self, idle: Callable[[], None] = lambda: None) -> None:
        """idle: called on the thread whenever a job has ended and none waits."""
        self.running: Job | None = None
        self._idle = idle
        self.last_error: str | None = None  # for Doctor
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[tuple[Job, Callable[[Job], Any]]] = deque()
        self._changed, self._closed = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name="studio worker", daemon=True)
        self._thread.start()

    def submit(self, title: str, work: Callable[[Job], Any], owner: str = "",
               tag: str = "") -> Job:
        """Queue `work`; what it returns becomes the job's result."""
        job = Job(self, title, owner, tag)
        with self._changed:
            if self._closed:
                raise SSDError("the program is closing: start it again")
            self._forget()
            self._jobs[job.id] = job
            self._waiting.append((job, work))
            self._changed.notify_all()
        return job

    def job(self, id_: str) -> Job | None:
        return self._jobs.get(id_)

    def position(self, job: Job) -> int:
        """0 for the running job and for those that do not wait, 1 for the next one."""
        with self._changed:
            queue = [one for one, _ in self._waiting if one.state == "waiting"]
            return queue.index(job) + 1 if job in queue else 0

    def feed(self, id_: str, after: int = 0) -> dict:
        """`Job.feed` of this job; state "gone" where it was forgotten, or never was."""
        job = self.job(id_)
        if job is not None:
            return job.feed(after)
        return {"state": "gone", "position": 0, "messages": [], "next": max(0, after),
                "error": None, "progress": 0.0, "seconds_left": None}

    def of(self, owner: str, *titles: str) -> list[Job]:
        """A visitor's jobs of these titles that are still known, the oldest first."""
        with self._changed:
            return [job for job in self._jobs.values()
                    if job.owner == owner and job.title in titles]

    def latest(self, owner: str, *titles: str) -> Job | None:
        return next(reversed(self.of(owner, *titles)), None)

    def forget(self, *jobs: Job) -> None:
        """Ended jobs that nobody will ask about again."""
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

    def _run(self) -> None:
        while True:
            self._expire()
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting or self._closed, LOOK_SECONDS):
                    continue
                if self._closed:
                    return
                job, work = self._waiting.popleft()
                self.running = job if job._begin() else None
            if self.running is not None:
                self._do(job, work)
            del job, work  # or they would keep their results until the next one comes
            if not self._waiting:
                self._idle()

    def _do(self, job: Job, work: Callable[[Job], Any]) -> None:
        state, error = "done", None
        try:
            job.result = work(job)
        except Cancelled:
            state = "cancelled"
        except SSDError as problem:
            state, error = "failed", str(problem)
        except Exception as problem:
            log.exception("%s", job.title)
            state, error = "failed", fault(problem)
        self.last_error, self.running = error or self.last_error, None
        if job.state == "running":  # else it was paused, and perhaps cancelled since
            job._end(state, error)

    def _expire(self) -> None:
        """Free what nobody comes back to; its owner may be gone without a word."""
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
    """One line about an error that is not the user's."""
    first = (str(error).splitlines() or [""])[0]
    return (f"a fault of this program: {type(error).__name__}: {first}; "
            "see the Doctor tab or the terminal")
