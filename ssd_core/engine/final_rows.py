"""Which rows of a run are final, and the event that says so."""

from __future__ import annotations

from ..errors import SSDError
from .events import FinalRows
from .state import DecodeState


def final_rows(state: DecodeState) -> int:
    """The number of rows that are final in every picture; known cells always are."""
    return state.region.next(min(state.final, state.slots)) // state.grid.width


def rows_event(state: DecodeState, first: int, last: int) -> FinalRows:
    """The event of rows first..last-1."""
    require_finite(state, last)
    return FinalRows(first, last, state.picture()[:, first:last])


def require_finite(state: DecodeState, rows: int) -> None:
    """Raise SSDError if the hidden state that predicts the last cell drawn in these rows is not
    finite.
    """
    drawn = state.region.count(0, rows * state.grid.width)
    if drawn and not state.hidden[:, state.region.slots[drawn - 1]].isfinite().all():
        raise SSDError(state.backbone.overflowed())
