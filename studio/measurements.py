"""What was measured of a finished picture: a line for everybody, and the rest for who asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from ssd_core.output.labels import percent
from ssd_core.runs.request import Result

from .words import say

DRAWN = {"identical": "drawn_exactly", "same distribution": "drawn_likely",
         "approximate": "drawn_close", "relaxed": "drawn_close"}


@dataclass(frozen=True)
class Measured:
    """A finished picture's run. share: of tokens equal to the reference's, None if unknown.

    pixels: the seconds that its pixels took after the run.
    """

    stats: Mapping
    guarantee: str
    share: float | None = None
    pixels: float = 0.0

    @classmethod
    def of(cls, result: Result) -> Measured:
        return cls(result.measured, result.guarantee, result.share, result.pixels_took)


NOT_MEASURED = Measured({}, "")


def summary(run: Measured, language: str) -> str:
    """What everybody reads: "0.4 s, exactly as the model draws it"; "" if nothing is known."""
    if not run.stats:
        return ""
    seconds = run.stats["seconds"]["total"] + run.pixels
    took = say(language, "took", seconds=f"{seconds:.{1 if seconds < 10 else 0}f}")
    return say(language, "comma").join((took, say(language, DRAWN[run.guarantee])))


def figures(run: Measured, language: str) -> list[list[str]]:
    """[name, value] of the passes, the speed, and the drafts that were accepted."""
    stats = run.stats
    if not stats:
        return []
    accepted, speed = stats.get("acceptance") or {}, stats["tokens_per_second"]
    pairs = [("passes", f"{stats['passes']} / {stats['ar_passes']}"),
             ("seconds", f"{stats['seconds']['total']:.2f}"),
             ("tokens_per_second", f"{speed:.0f}" if speed else ""),
             ("accepted", percent(fmean(accepted.values())) if accepted else ""),
             ("same_tokens", "" if run.share is None else percent(run.share))]
    return [[say(language, name), value] for name, value in pairs if value]
