"""Which sequences of an edit a pass feeds: all, or only those of the words where no object is near.

The words without an object matter only in and around that object. Elsewhere a pass leaves their
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
        self.used = state.rule is not None and bool(state.rule.branches) and not state.run.padded
        self.state = state
        self.fed = state.slots  # the sequences of objects have been fed the slots before
        if not self.used:
            return
        assert state.rule is not None
        self.fed = state.rule.fed
        self._wanted = [0, *accumulate(state.rule.wanted())]
        words, all_ = state.guidance, state.branches
        self.words, self.objects, self.all = (
            Lane(state, *each) for each in ((0, words), (words, all_), (0, all_)))

    def draft(self) -> None:
        """Leave objects out, at first, and for first guesses."""
        if self.used:
            self.words.select()

    def ready(self, window: Window) -> Iterator[Pass]:
        """Select the sequences for the window, and feed those of objects what they missed."""
        if not self.used or not self._near(window):
            return
        state, behind = self.state, max(window.starts)
        if self.fed < behind:
            self.objects.select()
            state.stale = self.fed
            state.feed(behind)
            state.clock.lap("commit")
            yield state.record_pass("commit", 0, behind, behind)
        self.all.select()

    def _near(self, window: Window) -> bool:
        """Whether objects matter in any slot that the window's pass predicts."""
        first, last = min(window.starts) + 1, max(window.starts) + window.slots.shape[1]
        return self._wanted[min(last + 1, len(self._wanted) - 1)] > self._wanted[first]

    def passed(self) -> None:
        """Note, after a window's pass, what the sequences of objects know."""
        if self.used and self.state.branches == self.all.branches:
            self.fed = min(self.state.front)

    def close(self) -> None:
        """Select all sequences again."""
        if self.used:
            self.all.select()


class Lane:
    """Some branches of a run, as if there were no others: what a pass over them reads and writes.
    """

    def __init__(self, state: DecodeState, first: int, last: int) -> None:
        start, stop = first * state.pictures, last * state.pictures
        self.state, self.branches = state, last - first
        prompts = state.prompts[start:stop]
        lengths = {len(ids) for ids in prompts}
        self.view = {
            "branches": self.branches, "prompts": prompts, "lengths": state.lengths[start:stop],
            "hidden": state.hidden[start:stop], "seq_index": state.seq_index[: stop - start],
            "cache": state.cache.of_sequences(start, stop),
            "offset": lengths.pop() if len(lengths) == 1 else None}

    def select(self) -> None:
        """Let passes feed these branches only; the others keep what they have."""
        vars(self.state).update(self.view)
