"""The statistics of a run: counters, the seconds of its stages, and what docs/contract.md lists."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from ..model.noise import Slots
from .events import Plan

if TYPE_CHECKING:
    from .state import DecodeState

Moment = Any  # float seconds, or torch.cuda.Event


class RunCounters:
    """Counters of one batch of B pictures: acceptance by stage and offset, and others.

    converged_rows [B]: rows whose rounds ended because nothing changed any more. converged [B]
    bool: whether the last round changed nothing. finished_early [B]: passes that ran after a
    picture was complete. drafter_passes: passes of a second backbone that drafts.
    """

    def __init__(self, pictures: int, device: torch.device, known: torch.Tensor | None) -> None:
        """known [slots] or [B, slots] bool: row ends and known cells, which are not counted."""
        self.known = known
        self.drafter_passes = 0
        self.converged_rows = torch.zeros(pictures, dtype=torch.long, device=device)
        self.converged = torch.zeros(pictures, dtype=torch.bool, device=device)
        self.finished_early = torch.zeros_like(self.converged_rows)
        self._accepted: dict[str, list[torch.Tensor]] = defaultdict(list)

    def add_acceptance(self, key: str, accepted: torch.Tensor, slots: Slots) -> None:
        """Record accepted [B, n] bool of slots under `key`; given tokens do not count."""
        counted = torch.ones_like(accepted)
        if (known := self.known_at(slots)) is not None:
            counted = ~known.expand_as(accepted)
        self._accepted[key].append(torch.stack(((accepted & counted).sum(), counted.sum())))

    def known_at(self, slots: Slots) -> torch.Tensor | None:
        """bool [n] or [B, n]: which slots are row ends or known; None if none are anywhere."""
        if self.known is None:
            return None
        if self.known.dim() == 1:
            return self.known[slots]
        return self.known[:, slots] if isinstance(slots, slice) else self.known.gather(1, slots)

    def add_offsets(self, stage: str, accepted: torch.Tensor, stop: int, reach: int) -> None:
        """Record acceptance by draft offset d; accepted [B, n] covers the n slots before `stop`.

        Each offset covers `reach` slots; the first may lack the slot that was sampled exactly.
        """
        count = -(-accepted.shape[1] // reach)
        for d in range(1, count + 1):
            end = stop - (count - d) * reach
            begin = max(stop - accepted.shape[1], end - reach)
            part = accepted[:, begin - stop : end - stop or None]
            self.add_acceptance(f"{stage}+{d}", part, slice(begin, end))

    def acceptance(self, mark: str) -> dict[str, float]:
        """Mean acceptance of keys with `mark`: "/" for stage/round, "+" for stage+offset."""
        counts = {key: torch.stack(each).float() for key, each in self._accepted.items()
                  if mark in key}
        counts = {key: each[each[:, 1] > 0] for key, each in counts.items()}
        return {key: (each[:, 0] / each[:, 1]).mean().item()
                for key, each in counts.items() if len(each)}


def statistics(state: DecodeState, plan: Plan) -> dict:
    """The statistics that docs/contract.md lists, from the counters of a finished run."""
    each = state.passes - state.stats.finished_early
    stages = state.clock.seconds
    seconds = {"total": sum(stages.values()), **stages}
    mask = state.region.mask
    tokens = int(mask.sum()) * state.pictures // len(mask)
    return {"passes": state.passes, "ar_passes": plan.ar_passes,
            "step_acceleration": plan.ar_passes / state.passes, "seconds": seconds,
            "tokens_per_second": tokens / max(seconds["total"], 1e-9),
            "acceptance": state.stats.acceptance("/"),
            "acceptance_by_offset": state.stats.acceptance("+"),
            "passes_each": each.tolist(),
            "converged_rows": state.stats.converged_rows.tolist(),
            "drafter_passes": state.stats.drafter_passes,
            "captured": state.run.captured, "cache_bytes": state.cache.nbytes}


def nothing_drawn(plan: Plan, pictures: int) -> dict:
    """The statistics of a run without a pass."""
    return {"passes": 0, "ar_passes": plan.ar_passes, "step_acceleration": float(plan.ar_passes),
            "seconds": {"total": 0.0, "prefill": 0.0, "draft": 0.0, "verify": 0.0, "commit": 0.0},
            "tokens_per_second": 0.0, "acceptance": {}, "acceptance_by_offset": {},
            "passes_each": [0] * pictures, "converged_rows": [0] * pictures, "drafter_passes": 0,
            "captured": 0, "cache_bytes": 0, "threads": []}


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


def together(stats: Sequence[Mapping]) -> Mapping:
    """The statistics of consecutive runs as one: sums, and the mean acceptance by round."""
    if len(stats) == 1:
        return stats[0]
    rounds = dict.fromkeys(key for run in stats for key in run["acceptance"])
    passes, ar_passes = (sum(run[key] for run in stats) for key in ("passes", "ar_passes"))
    seconds = {stage: sum(run["seconds"].get(stage, 0.0) for run in stats)
               for stage in stats[0]["seconds"]}
    tokens = sum(run["tokens_per_second"] * run["seconds"]["total"] for run in stats)
    return {**stats[0], "passes": passes, "ar_passes": ar_passes, "seconds": seconds,
            "step_acceleration": ar_passes / passes,
            "tokens_per_second": tokens / max(seconds["total"], 1e-9),
            "acceptance": {key: fmean(run["acceptance"][key] for run in stats
                                      if key in run["acceptance"]) for key in rounds}}
