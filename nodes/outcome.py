"""The outputs of nodes that draw: pictures, tokens, statistics and a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.front.recipe import to_bytes
from . import report, running
from .types import RunStats, StatsType, TokenPictures, TokensType


def outputs() -> list[io.Output]:
    return [
        io.Image.Output(display_name="images", tooltip="The pictures."),
        TokensType.Output(display_name="tokens", tooltip="For 'keep' and Decode Tokens."),
        StatsType.Output(display_name="stats", tooltip="For Acceptance Map, Replay and Save "
                                                       "Image."),
        io.String.Output(display_name="report",
                         tooltip="Forward passes, seconds, acceptance rate and notes.")]


def of(runs: Sequence[running.Run]) -> tuple:
    """The values of `outputs` for finished runs of one backbone and size."""
    results = [run.result for run in runs]
    missing = next((run.output for run in runs if run.images is None), None)
    drawn = [run.images for run in runs if run.images is not None]
    images = torch.cat(drawn) if missing is None else None
    stats = RunStats(
        runs[0].request.label, together([result.measured for result in results]),
        tuple(recipe for result in results for recipe in result.recipes()),
        np.concatenate([run.count.share() for run in runs]),
        None if images is None else to_bytes(images),
        tuple(message for run in runs for message in run.story))
    tokens = TokenPictures.of(runs[0].request.backbone,
                              torch.cat([result.tokens for result in results]))
    return (missing if images is None else images, tokens, stats,
            "\n\n".join(map(report.sampled, runs)))


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
