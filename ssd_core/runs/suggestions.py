"""Several suggestions for a region, in the order of how well they fit. Knows no host.

Cells are drawn in raster order, so nothing below and to the right of a region speaks to the cells
inside. How likely the kept cells that follow are tells which suggestion suits them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..backbones.base import Backbone
from ..engine.decode import alone
from ..engine.edits.maps import parts
from ..engine.region import by_slot
from ..engine.state import DecodeState
from ..model.sampling import Sampling, guide
from .request import Request, Result


def log_likelihood(backbone: Backbone, branches: Sequence[list[int]], sampling: Sampling,
                   tokens: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    """Mean log p [B] of those cells of pictures [B, R, C], in nats, by one pass over all cells.

    branches: prompt ids of all sequences, see `PreparedRun`. cells: bool [B or 1, R, C], some in
    every picture. Filters and temperature play no part: they would make many tokens impossible.
    """
    with alone(backbone.device):
        state = DecodeState(backbone, branches, len(tokens), sampling, None)
        codes = by_slot(backbone.grid, tokens.to(backbone.device))[:, :-1]
        state.write(slice(0, state.slots), codes)
        state.prefill()
        state.feed(state.slots)
        counted = by_slot(backbone.grid, cells.to(backbone.device))[:, :-1].bool()
        total = sum(_scores(state, slots, counted) for slots in parts(state))
        assert isinstance(total, torch.Tensor)
        return (total / counted.sum(1)).cpu().clone()


def _scores(state: DecodeState, slots: slice, counted: torch.Tensor) -> torch.Tensor:
    """[B]: the sum of log p of the counted cells among these slots."""
    logits = guide(state.backbone.logits(state.hidden_at(slots)), state.sampling.cfg)
    own = logits.log_softmax(-1).gather(-1, state.codes(slots)[..., None])[..., 0]
    return own.masked_fill(~counted[:, slots], 0).sum(1)


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
