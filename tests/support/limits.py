"""Limits of time and memory around a piece of a test, where the system has them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None


@contextmanager
def limits(seconds: float = 20, memory: int = 3 << 30) -> Iterator[None]:
    """Within the block AssertionError after so long, MemoryError beyond so many bytes more."""
    def over(*_):
        raise AssertionError(f"it took longer than {seconds} s")

    statm = Path("/proc/self/statm")
    if resource is None or not statm.is_file():
        yield
        return
    former = resource.getrlimit(resource.RLIMIT_AS)
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    handler = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, former)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
