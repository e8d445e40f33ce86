"""What can be claimed of a picture: the share of tokens equal to AR's, and a verdict."""

from __future__ import annotations

import torch

from ..backbones.base import Backbone
from ..engine.methods import AR, Method
from ..model.grid import Grid


def identical_share(tokens: torch.Tensor, others: torch.Tensor) -> float:
    """Share of cells with equal tokens; both [..., R, C]."""
    return (tokens == others).float().mean().item()


def promise_holds(backbone: Backbone) -> bool:
    """Whether methods that promise AR's picture keep the promise on this backbone, as loaded.

    They do where a pass gives the same bits at any width; in fp32 AR's own passes decide near ties.
    """
    return backbone.batch_invariant or backbone.dtype == torch.float32


def verdict(method: Method, holds: bool, identical: float | None,
            grid: Grid | None = None) -> str:
    """What can be claimed of a picture, as one word for previews, sheets and reports.

    "identical" if all tokens were compared with AR's, or if the promise of AR's picture holds.
    Otherwise rounding can decide between two nearly even tokens; AR could have chosen either.
    holds: see `promise_holds`. identical: measured share of tokens equal to AR's, None if AR did
    not run. grid: of the picture; None: what the method promises with any knobs on any grid.
    """
    if identical == 1 or isinstance(method, AR):
        return "identical"
    own = method.verdict if grid is None else method.verdict_on(grid)
    if own != "identical":
        return own
    return "identical" if holds and identical is None else "same distribution"
