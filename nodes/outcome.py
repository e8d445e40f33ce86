"""The outputs of nodes that draw: pictures, tokens, statistics and a report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.front.recipe import to_bytes
from ..ssd_core.front.together import together
from . import report, running
from .language import said
from .types import RunStats, StatsType, TokenPictures, TokensType


def outputs() -> list[io.Output]:
    return [
        io.Image.Output(display_name="images", tooltip="The pictures."),
        TokensType.Output(display_name="tokens", tooltip="For 'keep' and Decode Tokens."),
        StatsType.Output(display_name="stats", tooltip="For Acceptance Map, Replay and Save "
                                                       "Image."),
        io.String.Output(display_name="report",
                         tooltip="Forward passes, seconds, acceptance rate and notes.")]


def typed() -> list[io.Output]:
    """Outputs for file names and notes; they come after all others, as links count outputs."""
    return [io.Int.Output(display_name="seed",
                          tooltip="The seed that was used; of a batch the first picture's."),
            io.String.Output(display_name="prompt",
                             tooltip="The prompt that was used, as it was typed; the report has "
                                     "the words that were filled in.")]


def typed_of(run: running.Run) -> tuple[int, str]:
    """The values of `typed`."""
    return run.request.sampling.seed, run.request.prompt


def of(runs: Sequence[running.Run]) -> tuple:
    """The values of `outputs` for finished runs of one backbone and size."""
    results = [run.result for run in runs]
    missing = next((run.output for run in runs if run.images is None), None)
    drawn = [run.images for run in runs if run.images is not None]
    images = torch.cat(drawn) if missing is None else None
    recipes = tuple(recipe for result in results for recipe in result.recipes())
    stats = RunStats(
        runs[0].request.label, together([result.measured for result in results]),
        recipes,
        np.concatenate([run.share for run in runs]),
        None if images is None else to_bytes(images),
        tuple(message for run in runs for message in run.story))
    tokens = TokenPictures.of(runs[0].request.backbone,
                              torch.cat([result.tokens for result in results]), recipes)
    return (missing if images is None else images, tokens, stats,
            said("\n\n".join(map(report.sampled, runs))))
