"""A rate limit on guessing: after some wrong passwords, one try in a while. Knows no HTTP."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict

FREE, PAUSE = 10, 6.0  # wrong tries at once; seconds until one more is allowed
MOST = 4096  # visitors that are remembered; the latest


class RateLimit:
    """Wrong tries by visitor; they are forgotten at one per PAUSE seconds."""

    def __init__(self, free: int = FREE, pause: float = PAUSE) -> None:
        self.free, self.pause = free, pause
        self._tries: OrderedDict[str, tuple[float, float]] = OrderedDict()  # number, when
        self._lock = threading.Lock()

    def wait(self, visitor: str) -> int:
        """Whole seconds until this visitor may try again; 0 for now."""
        with self._lock:
            over = self._left(visitor) - self.free + 1
        return math.ceil(over * self.pause) if over > 0 else 0

    def wrong(self, visitor: str) -> None:
        """A try of this visitor was wrong."""
        with self._lock:
            self._tries[visitor] = self._left(visitor) + 1, time.monotonic()
            self._tries.move_to_end(visitor)
            if len(self._tries) > MOST:
                self._tries.popitem(last=False)

    def _left(self, visitor: str) -> float:
        """The tries that still count."""
        number, when = self._tries.get(visitor, (0.0, 0.0))
        return max(0.0, number - (time.monotonic() - when) / self.pause)
