"""How likely the tokens of some cells are under the words and the cells before them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..backbones.base import Backbone
from ..model.sampling import Sampling, guide
from .decode import alone
from .edits.maps import parts
from .region import by_slot
from .state import DecodeState


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
