"""Which branches of an edit a pass feeds: all, or only those of the words where no object is near.

The words without an object matter only in and around that object. Elsewhere a pass leaves these
branches out, and one pass feeds them what they missed before they are needed again. This changes no
token. With graphs or rounded sizes every pass feeds all branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import accumulate
from typing import TYPE_CHECKING

from ..events import Pass
from ..state import DecodeState

if TYPE_CHECKING:
    from ..methods.window import Window


class ObjectBranches:
    """The branches of an edit's objects. fed: they were fed all slots before this one."""

    def __init__(self, state: DecodeState) -> None:
        rule, self.state, self.fed = state.rule, state, state.slots
        self.used = rule is not None and bool(rule.branches) and not state.run.padded
        if rule is not None and self.used:
            self.fed, self._wanted = rule.fed, [0, *accumulate(rule.wanted())]

    def left_out(self) -> AbstractContextManager[None]:
        """Let passes feed only the branches of the words, as first guesses do."""
        return self.state.only(0, self.state.guidance) if self.used else nullcontext()

    def caught_up(self, window: Window) -> Iterator[Pass]:
        """Feed these branches what they missed, if the window needs them."""
        state, behind = self.state, max(window.start.host)
        if self._needed(window) and self.fed < behind:
            with state.only(state.guidance, state.branches):
                state.stale = self.fed
                state.feed(behind)
            state.clock.lap("commit")
            yield state.record_pass("commit", 0, behind, behind)

    @contextmanager
    def over(self, window: Window) -> Iterator[None]:
        """Let the window's pass feed these branches if it needs them."""
        if not self._needed(window):
            with self.left_out():
                yield
        else:
            yield
            self.fed = min(self.state.frontier.host)

    def _needed(self, window: Window) -> bool:
        """Whether objects matter in any slot that the window's pass predicts."""
        if not self.used:
            return False
        starts = window.start.host
        first, last = min(starts) + 1, max(starts) + window.slots.shape[1]
        return self._wanted[min(last + 1, len(self._wanted) - 1)] > self._wanted[first]
