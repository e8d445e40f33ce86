"""What was measured of a finished picture: a line for everybody, and the rest for who asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from ssd_core.engine.methods import AR
from ssd_core.output.labels import percent
from ssd_core.runs.request import Result

from .words import say


@dataclass(frozen=True)
class Measured:
    """A finished picture's run. share: of tokens equal to the reference's, None if unknown."""

    stats: Mapping
    verdict: str
    is_ar: bool
    share: float | None = None

    @classmethod
    def of(cls, result: Result) -> Measured:
        return cls(result.measured, result.verdict, isinstance(result.request.method, AR),
                   result.share)


def summary(run: Measured, language: str) -> str:
    """What everybody reads: "0.4 s, 5.0× fewer passes, the reference picture"."""
    seconds, times = run.stats["seconds"]["total"], run.stats["step_acceleration"]
    parts = [say(language, "took", seconds=f"{seconds:.{1 if seconds < 10 else 0}f}")]
    if times is not None and times > 1:
        parts.append(say(language, "fewer", times=f"{times:.1f}"))
    parts.append(say(language, "race_ar" if run.is_ar else run.verdict))
    return say(language, "comma").join(parts)


def figures(run: Measured, language: str) -> list[list[str]]:
    """[name, value] of the passes, the pace, and the drafts that were accepted."""
    stats = run.stats
    accepted, pace = stats.get("acceptance") or {}, stats["tokens_per_second"]
    pairs = [("passes", f"{stats['passes']} / {stats['ar_passes']}"),
             ("seconds", f"{stats['seconds']['total']:.2f}"),
             ("pace", f"{pace:.0f}" if pace else ""),
             ("accepted", percent(fmean(accepted.values())) if accepted else ""),
             ("same_tokens", "" if run.share is None else percent(run.share))]
    return [[say(language, name), value] for name, value in pairs if value]
