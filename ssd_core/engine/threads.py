"""The number of threads that a run computes with: set for the run, restored after it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath

import torch

LOADAVG = "/proc/loadavg"
CGROUP, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
LOOKS, APART = 3, 0.001  # before a run: the number of looks, and the seconds between them
AGAIN = 0.05  # s between two looks during a run; a look takes 20 us
TRUSTED = 2  # looks in a row that must find free cores before a run uses more threads again


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Compute with `count` threads inside the context; None leaves the number unchanged."""
    before = torch.get_num_threads()
    if count is not None and count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


_under_way: set[object] = set()


@contextmanager
def under_way() -> Iterator[None]:
    """Mark a run as begun, so that nothing else is timed meanwhile."""
    _under_way.add(token := object())
    try:
        yield
    finally:
        _under_way.discard(token)


def drawing() -> bool:
    """Whether a run has begun in this process and has not ended."""
    return bool(_under_way)


def running() -> int | None:
    """The number of threads of all programs that compute now, ours included; None: unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(LOADAVG) as file:
        return int(file.read().split()[3].partition("/")[0])
    return None


def cores() -> int:
    """How many cores this process may use: the machine's, fewer by its affinity or container."""
    return max(1, min(os.cpu_count() or 1, affinity(), quota()))


def affinity() -> int:
    """The cores that the system lets this process run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def quota(place: Path = CGROUP, groups: Path = OWN_CGROUP) -> int:
    """How many cores' time the control groups of this process allow, rounded down."""
    allowed = sys.maxsize
    with contextlib.suppress(OSError, ValueError):
        own = next((line[3:] for line in groups.read_text().splitlines() if line[:3] == "0::"), "/")
        for group in (own, *map(str, PurePosixPath(own).parents)):
            with contextlib.suppress(OSError, ValueError):
                most, period = (place / group.strip("/") / "cpu.max").read_text().split()
                allowed = min(allowed, int(most) // int(period))
    return max(1, allowed)


def most_threads() -> int:
    """torch's number of threads, at most one for each of `cores`."""
    return min(torch.get_num_threads(), cores())


def spare(most: int, busy: int | None, own: int = 1) -> int:
    """How many of `most` threads have a core to themselves.

    busy: threads that compute now, of which `own` belong to this run. A thread that shares its core
    delays all the others at every product.
    """
    if busy is None:
        return most
    free = (os.cpu_count() or 1) - max(0, busy - own)  # of all cores: the others may use any
    return max(1, min(most, free))


def free_now(most: int, look: Callable[[], int | None] = running,
             wait: Callable[[float], None] = time.sleep) -> int:
    """How many of `most` threads find a free core: the maximum of a few looks.

    Work that only a single look shows does not count.
    """
    best = spare(most, look())
    for _ in range(LOOKS - 1):
        if best == most:
            break
        wait(APART)
        best = max(best, spare(most, look()))
    return best


def cores_held() -> bool:
    """Whether other programs compute on all cores, so that a single thread must wait, too."""
    busy = running()
    return busy is not None and busy > (os.cpu_count() or 1)


class Threads:
    """The number of threads for each step of a run; call it before each step.

    most: the limit for the run. The run uses the threads that find a free core now, and looks again
    every AGAIN seconds, because a run that shares its cores can become ten times slower.
    """

    def __init__(self, most: int, look: Callable[[], int | None] = running,
                 clock: Callable[[], float] = time.perf_counter) -> None:
        self.most, self.look, self.clock = most, look, clock
        self.free_looks, self.used = 0, set[int]()  # used: the numbers of all steps
        self.count, self.looked = 0, clock()

    @classmethod
    def of(cls, asked: int | None, device: torch.device) -> Threads | Fixed:
        """asked: the exact number; None: on a CPU, at most `most_threads`."""
        if asked is None and device.type == "cpu" and torch.get_num_threads() > 1:
            return cls(most_threads())
        return Fixed(asked)

    def __call__(self) -> int:
        if not self.count:
            self.count = free_now(self.most, self.look)
        elif self.clock() - self.looked >= AGAIN:
            self._look_again()
            self.looked = self.clock()
        self.used.add(self.count)
        return self.count

    def _look_again(self) -> None:
        free = spare(self.most, self.look(), self.count)
        if free < self.count:  # work that ends at once does not count
            time.sleep(APART)
            free = max(free, spare(self.most, self.look(), self.count))
        self.free_looks = self.free_looks + 1 if free > self.count else 0
        if free < self.count or self.free_looks >= TRUSTED:
            self.count, self.free_looks = free, 0


class Fixed:
    """The same number for each step; None leaves torch's number unchanged."""

    def __init__(self, count: int | None) -> None:
        self.count, self.used = count, set[int]()

    def __call__(self) -> int | None:
        self.used.add(self.count or torch.get_num_threads())
        return self.count
