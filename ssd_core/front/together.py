"""The statistics of runs that follow each other, as those of one. Knows no host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean


def together(stats: Sequence[Mapping]) -> Mapping:
    """The statistics of runs one after the other: sums, and the mean acceptance by round."""
    if len(stats) == 1:
        return stats[0]
    rounds = dict.fromkeys(key for one in stats for key in one["acceptance"])
    passes, ar_passes = (sum(one[key] for one in stats) for key in ("passes", "ar_passes"))
    seconds = {stage: sum(one["seconds"].get(stage, 0.0) for one in stats)
               for stage in stats[0]["seconds"]}
    tokens = sum(one["tokens_per_second"] * one["seconds"]["total"] for one in stats)
    return {**stats[0], "passes": passes, "ar_passes": ar_passes, "seconds": seconds,
            "step_acceleration": ar_passes / passes,
            "tokens_per_second": tokens / max(seconds["total"], 1e-9),
            "acceptance": {key: fmean(one["acceptance"][key] for one in stats
                                      if key in one["acceptance"]) for key in rounds}}
