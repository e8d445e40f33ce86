"""What is wrong with a picture that should be the same as another one."""

from __future__ import annotations

from ..engine.first_replay import difference
from .drawing import SelfTestPictures

SAME = 0.01  # the largest difference of hidden states between two ways to compute the same
# The largest difference of the hidden states of a dtype from those of fp32.
FROM_FP32 = {"fp32": 0.001, "fp16": 0.05, "bf16": 0.1, "fp8": 0.3, "int8": 0.3, "int4": 0.6}


def unlike(found: SelfTestPictures, expected: SelfTestPictures, tolerance: float = SAME) -> str:
    """In which way two pictures differ more than rounding explains; empty if they do not.

    Compares hidden states up to the first cell with another token, since all after it follow from
    that token. Another token is rounding if the hidden states before it differ, but less than the
    tolerance (see `difference`).
    """
    if found.failure or expected.failure:
        return found.failure or expected.failure
    if not found.hidden.isfinite().all():
        return "hidden states are not finite"
    first, cells = first_unlike(found, expected), found.tokens[0].numel()
    apart = difference(found.hidden[:, : first + 1], expected.hidden[:, : first + 1])
    if not apart <= tolerance:
        return f"hidden states differ by {apart:.2g}, {tolerance:g} is allowed"
    if first < cells and apart == 0:
        return f"token {first} differs, although the hidden states before it are the same"
    return ""


def first_unlike(found: SelfTestPictures, expected: SelfTestPictures) -> int:
    """The first cell, in raster order, whose token differs in a picture; behind them if none."""
    differs = (found.tokens != expected.tokens).flatten(1).any(0).nonzero()
    return int(differs[0]) if len(differs) else found.tokens[0].numel()
