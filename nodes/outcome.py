"""What nodes that draw put out: the pictures, and the run that drew them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from comfy_execution.graph_utils import ExecutionBlocker

from ..ssd_core.engine.run_statistics import together
from ..ssd_core.output.recipe import to_bytes
from ..ssd_core.runs.comparison import Comparison
from . import report, running
from .language import localized
from .types import Run, RunStats, TokenPictures, image_of


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
    """The values of `outputs` for runs of one backbone and size."""
    results = [run.result for run in runs]
    images = image_output(runs)
    drawn = images if isinstance(images, torch.Tensor) else None
    recipes = tuple(recipe for result in results for recipe in result.recipes())
    tokens = TokenPictures.of(runs[0].request.backbone,
                              torch.cat([result.tokens for result in results]), recipes, drawn)
    if not all(result.finished for result in results):
        return images, Run(tokens, report=localized(f"{results[0].rows} of "
                                                    f"{runs[0].request.grid.rows} rows are drawn"))
    labels = dict.fromkeys(run.request.label for run in runs)
    stats = RunStats(
        ", ".join(labels), together([result.measured for result in results]), recipes,
        np.concatenate([run.share for run in runs]),
        None if drawn is None else to_bytes(drawn),
        tuple(message for run in runs for message in run.messages))
    return images, Run(tokens, stats, localized("\n\n".join(map(report.sampled, runs))))
