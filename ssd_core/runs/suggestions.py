"""Several suggestions for a region, in the order of how well they fit. Knows no host.

Cells are drawn in raster order, so nothing below and to the right of a region speaks to the cells
inside. How likely the kept cells that follow are tells which suggestion suits them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..engine.likelihood import log_likelihood
from .request import Request, Result


def likeliest_first(results: Sequence[Result]) -> list[int]:
    """The numbers of all pictures of finished runs, from 0, those that fit best first.

    As they were drawn, if no kept cell follows the drawn ones.
    """
    return best_first([fit for result in results for fit in fit_of(result)])


def best_first(fits: Sequence[float]) -> list[int]:
    """The numbers of pictures by their `fit_of`, the best first; equal ones as they were drawn."""
    return sorted(range(len(fits)), key=lambda n: -fits[n])


def fit_of(result: Result) -> list[float]:
    """Of each picture the mean log probability, in nats, of the kept cells that follow the first
    drawn one; 0 where there are none, or where a sketch or source pictures were read first. Takes
    one pass.
    """
    request = result.request
    cells = following(request)
    run = request.prepare()
    more = run.sketch is not None or run.backbone.sources
    if more or not cells.flatten(1).any(1).all():
        return [0.0] * request.pictures
    return log_likelihood(run.backbone, run.branches, run.sampling, result.tokens, cells).tolist()


def following(request: Request) -> torch.Tensor:
    """bool [B or 1, R, C]: the kept cells after the first masked one, in raster order."""
    mask = request.region.mask
    begun = mask.flatten(1).cumsum(1).view(mask.shape) > 0
    return begun & ~mask
