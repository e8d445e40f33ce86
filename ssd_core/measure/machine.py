"""On what a measurement ran: the processor's name, and whether other programs were at work."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .. import openmp
from ..model.processor import processor

__all__ = ["OtherWork", "processor", "waiting"]

IDLE = 0.3  # of the machine's cores taken by others: below that it is called idle


def waiting() -> str:
    """How OpenMP's threads wait, such as " (passive)"; empty where the library decides."""
    policy = os.environ.get(openmp.VARIABLE)
    return f" ({policy.lower()})" if policy else ""


def busy_seconds() -> float | None:
    """Seconds that all cores together have worked since the machine started; None if unknown."""
    try:
        first = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()
        ticks = os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError, AttributeError):
        return None
    user, nice, system, _, _, *interrupts = map(int, first[1:9])
    return (user + nice + system + sum(interrupts)) / ticks


def own_seconds() -> float:
    """Seconds that this process and its finished children have worked."""
    return sum(os.times()[:4])


class OtherWork:
    """How busy other programs keep the machine from now on.

    The system's own load average would count this process, too, and what ran a minute ago.
    """

    def __init__(self) -> None:
        self.start = self.now()

    @staticmethod
    def now() -> tuple[float, float | None, float]:
        return time.perf_counter(), busy_seconds(), own_seconds()

    def load(self) -> float | None:
        """Mean share of the cores that others took; None where the system does not tell."""
        (wall, busy, own), (begun, before, mine) = self.now(), self.start
        if busy is None or before is None or wall <= begun:
            return None
        others = busy - before - (own - mine)
        return max(0.0, others / (wall - begun) / (os.cpu_count() or 1))

    def words(self) -> str:
        """ "idle", "busy (load 0.8)", or "unknown load"."""
        load = self.load()
        if load is None:
            return "unknown load"
        return "idle" if load < IDLE else f"busy (load {load:.1f})"
