"""The outputs of nodes that draw: pictures, tokens, statistics and a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from comfy_api.v0_0_2 import io
from comfy_execution.graph_utils import ExecutionBlocker

from ..ssd_core.engine.run_statistics import together
from ..ssd_core.output.recipe import to_bytes
from ..ssd_core.runs.comparison import Comparison
from . import report, running
from .language import localized
from .types import RunStats, StatsType, TokenPictures, TokensType, image_of


def outputs() -> list[io.Output]:
    return [
        io.Image.Output(display_name="images", tooltip="The pictures."),
        TokensType.Output(display_name="tokens", tooltip="For 'picture' and Tokens to Image."),
        StatsType.Output(display_name="stats", tooltip="For Run Viewer and Save Image."),
        io.String.Output(display_name="report",
                         tooltip="Forward passes, seconds, acceptance rate and notes.")]


def typed() -> list[io.Output]:
    """Outputs for file names and notes; they come last, because links refer to outputs by index."""
    return [io.Int.Output(display_name="seed",
                          tooltip="The seed that was used; of a batch the first picture's."),
            io.String.Output(display_name="prompt",
                             tooltip="The prompt that was used, as it was typed; the report has "
                                     "the words that were filled in.")]


def typed_of(run: running.NodeRun) -> tuple[int, str]:
    """The values of `typed`."""
    return run.request.sampling.seed, run.request.prompt


def image_output(
        runs: Sequence[running.NodeRun],
        make: Callable[[list[torch.Tensor]], torch.Tensor] = torch.cat,
) -> torch.Tensor | ExecutionBlocker:
    """IMAGE that `make` returns for the runs' images, [B, H, W, 3] each.

    If a run has no images, the placeholder that blocks the nodes connected to the output.
    """
    missing = next((run.output for run in runs if run.images is None), None)
    if missing is not None:
        return missing
    return make([run.images for run in runs if run.images is not None])


def sheet_output(runs: Sequence[running.NodeRun],
                 notes: Sequence[str] = ()) -> torch.Tensor | ExecutionBlocker:
    """IMAGE [1, H, W, 3] of one labelled sheet with the first picture of every run."""
    comparison = Comparison.of((run.result for run in runs), notes)
    return image_output(runs, lambda images: image_of([
        comparison.sheet([to_bytes(image[0]) for image in images])]))


def of(runs: Sequence[running.NodeRun]) -> tuple:
    """The values of `outputs` for finished runs of one backbone and size."""
    results = [run.result for run in runs]
    images = image_output(runs)
    recipes = tuple(recipe for result in results for recipe in result.recipes())
    stats = RunStats(
        runs[0].request.label, together([result.measured for result in results]),
        recipes,
        np.concatenate([run.share for run in runs]),
        to_bytes(images) if isinstance(images, torch.Tensor) else None,
        tuple(message for run in runs for message in run.messages))
    tokens = TokenPictures.of(runs[0].request.backbone,
                              torch.cat([result.tokens for result in results]), recipes,
                              images if isinstance(images, torch.Tensor) else None)
    return images, tokens, stats, localized("\n\n".join(map(report.sampled, runs)))
