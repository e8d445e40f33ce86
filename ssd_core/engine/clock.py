"""The seconds that the stages of a run take."""

from __future__ import annotations

import time
from typing import Any

import torch

Moment = Any  # float seconds, or torch.cuda.Event


class Stopwatch:
    """Seconds per stage, without the time that the consumer of the events spends.

    On a card the moments are events in its queue, so recording them does not wait.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_card = device.type == "cuda"
        self._laps: list[tuple[str, Moment, Moment]] = []
        self.restart()

    def _now(self) -> Moment:
        if not self._on_card:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def restart(self) -> None:
        self._mark = self._now()

    def lap(self, stage: str) -> None:
        now = self._now()
        self._laps.append((stage, self._mark, now))
        self._mark = now

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds so far by stage; waits for the card to finish the recorded work."""
        seconds = dict.fromkeys(("prefill", "draft", "verify", "commit"), 0.0)
        if self._on_card and self._laps:
            self._laps[-1][2].synchronize()
        for stage, start, end in self._laps:
            seconds[stage] += start.elapsed_time(end) / 1000 if self._on_card else end - start
        return seconds
