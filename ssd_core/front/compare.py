"""What can be claimed of a picture: the share of tokens equal to AR's, and a verdict."""

from __future__ import annotations

import torch

from ..backbones.base import Backbone
from ..engine.methods import AR, Method
from ..model.sampling import Sampling


def identical_share(tokens: torch.Tensor, others: torch.Tensor) -> float:
    """Share of cells with equal tokens; both [..., R, C]."""
    return (tokens == others).float().mean().item()


def rounds_alike(backbone: Backbone, sampling: Sampling) -> bool:
    """Whether a pass rounds as AR's would: with matched numerics, where that was proved (CPUs)."""
    return sampling.numerics == "matched" and backbone.device.type == "cpu"


def verdict(method: Method, dtype: torch.dtype, identical: float | None,
            matched: bool = False) -> str:
    """What can be claimed of a picture, as one word for previews, sheets and reports.

    "identical" if all tokens were compared with AR's, or if fp32 or matched numerics guarantee it.
    Otherwise rounding can decide between two nearly even tokens; AR could have chosen either.
    identical: measured share of tokens equal to AR's, None if AR did not run. matched: see
    `rounds_alike`.
    """
    if identical == 1 or isinstance(method, AR):
        return "identical"
    if method.verdict != "identical":
        return method.verdict
    certain = identical is None and (matched or dtype == torch.float32)
    return "identical" if certain else "same distribution"
