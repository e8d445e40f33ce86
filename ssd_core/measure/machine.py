"""Describes the machine of a measurement: its processor, and whether other programs were busy."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .. import openmp
from ..model.processor import processor

__all__ = ["OtherWork", "processor", "waiting"]

IDLE = 0.3  # a smaller share of the cores used by other programs counts as idle


def waiting() -> str:
    """Return how OpenMP's threads wait, such as " (passive)"; empty if the library decides."""
    policy = os.environ.get(openmp.VARIABLE)
    return f" ({policy.lower()})" if policy else ""


def busy_seconds() -> float | None:
    """Busy seconds of all cores together since the machine started; None if unknown."""
    try:
        first = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()
        ticks = os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError, AttributeError):
        return None
    user, nice, system, _, _, *interrupts = map(int, first[1:9])
    return (user + nice + system + sum(interrupts)) / ticks


def own_seconds() -> float:
    """CPU seconds of this process and its finished children."""
    return sum(os.times()[:4])


class OtherWork:
    """Measures from now on how busy other programs keep the machine.

    The system's load average would include this process and work of a minute ago.
    """

    def __init__(self) -> None:
        self.start = self.now()

    @staticmethod
    def now() -> tuple[float, float | None, float]:
        return time.perf_counter(), busy_seconds(), own_seconds()

    def load(self) -> float | None:
        """Mean share of the cores used by other programs; None if unknown."""
        (wall, busy, own), (begun, before, mine) = self.now(), self.start
        if busy is None or before is None or wall <= begun:
            return None
        others = busy - before - (own - mine)
        return max(0.0, others / (wall - begun) / (os.cpu_count() or 1))

    def words(self) -> str:
        """Return "idle", "busy (load 0.8)", or "unknown load"."""
        load = self.load()
        if load is None:
            return "unknown load"
        return "idle" if load < IDLE else f"busy (load {load:.1f})"
