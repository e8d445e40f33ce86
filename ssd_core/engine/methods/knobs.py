"""Knobs that several methods share, each described once; `knob` describes all others."""

from __future__ import annotations

from typing import Any

from ...model.grid import LONGEST_SIDE
from ...model.knobs import knob

__all__ = ["cells_drafted", "knob", "verification_rounds"]


def cells_drafted() -> Any:
    """The knob k_h."""
    return knob(None, "Cells drafted at a time along a row.", low=1, high=LONGEST_SIDE,
                shown="basic", own="the backbone's own")


def verification_rounds(default: int | None) -> Any:
    """The knob `rounds`."""
    return knob(default, "Verification rounds over what was drafted: more rounds give better "
                         "pictures and take more passes; 0 only drafts.", low=0, shown="basic",
                own="the backbone's own")
