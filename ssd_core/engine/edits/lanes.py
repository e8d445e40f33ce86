"""Which sequences of an edit a pass feeds: all, or only those of the words where no thing is near.

The words without a thing matter only in and around that thing. Elsewhere a pass leaves their
sequences out, and one pass feeds them what they missed before they are needed again. This changes
no token. With graphs or rounded sizes every pass feeds all sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from ..events import Pass
from ..state import DecodeState

if TYPE_CHECKING:
    from ..methods.window import Window


class Lanes:
    """Chooses the sequences of each window's pass."""

    def __init__(self, state: DecodeState) -> None:
        self.state = state
        self.used = state.branches > state.guidance and not state.run.padded
        self.fed = min(state.front) if self.used else 0  # things' sequences know the slots before
        if self.used:
            assert state.rule is not None
            self._wanted = [0, *accumulate(state.rule.wanted())]

    def draft(self) -> None:
        """Leave things out while first guesses are made."""
        if self.used:
            self.state.select(0, self.state.guidance)

    def ready(self, window: Window) -> Iterator[Pass]:
        """Select the sequences for the window, and feed those of things what they missed."""
        if not self.used:
            return
        state, start = self.state, min(window.starts)
        stop = max(window.starts) + window.slots.shape[1]
        if self._wanted[min(stop + 1, len(self._wanted) - 1)] == self._wanted[start + 1]:
            return
        behind = max(window.starts)
        if self.fed < behind:
            state.select(state.guidance, state.all_branches)
            state.stale = self.fed
            state.feed(behind)
            state.clock.lap("commit")
            yield state.passed("commit", 0, behind, behind)
        state.select(0, state.all_branches)
        self.fed = -1  # known after the pass: see `passed`

    def passed(self) -> None:
        """After a window's pass: the slots before the new frontier are known where it fed all."""
        if self.used and self.fed < 0:
            self.fed = min(self.state.front)

    def close(self) -> None:
        """Select all sequences again."""
        if self.used:
            self.state.select(0, self.state.all_branches)
