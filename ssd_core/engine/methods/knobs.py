"""Knobs that several methods share; `knob` declares all others."""

from __future__ import annotations

from typing import Any

from ...model.grid import LONGEST_SIDE
from ...model.knobs import knob

__all__ = ["cells_drafted", "codes_pooled", "drafted_by", "knob", "variation_bound",
           "verification_rounds"]


def cells_drafted() -> Any:
    """The knob k_h."""
    return knob(None, "Cells drafted at a time along a row.", low=1, high=LONGEST_SIDE,
                visibility="basic", none_means="the model's own")


def verification_rounds(default: int | None) -> Any:
    """The knob `rounds`."""
    return knob(default, "Verification rounds over what was drafted: more rounds give better "
                         "pictures and take more passes; 0 only drafts.", low=0, visibility="basic",
                none_means="the model's own")


def codes_pooled(default: int) -> Any:
    """The knob `similar`: k of LANTERN and MuLo-SD."""
    return knob(default, "Codes of the codebook, the draft's own and those nearest to it, whose "
                         "probabilities are added up for a draft.", low=1, high=1 << 16)


def variation_bound(default: float) -> Any:
    """The knob `delta` of LANTERN and MuLo-SD."""
    return knob(default, "Most probability that a draft may borrow from similar codes.", low=0,
                high=1, step=0.05)


def drafted_by() -> Any:
    """The knob `drafter`: draft heads, or the row drafter of the same file."""
    return knob("heads", "heads: draft heads, every cell on its own. row: the row drafter, whose "
                         "cells see their neighbours.", choices=("heads", "row"))
