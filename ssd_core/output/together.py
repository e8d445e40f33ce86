"""Merge the statistics of consecutive runs. Knows no host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean


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
