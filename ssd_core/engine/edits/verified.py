"""How an edit by words begins: its prefill has fed the old picture, so its cells can be judged.

A pass feeds all branches, or only those of the words where no object is near. The words without an
object matter only in and around that object. Elsewhere a pass leaves these branches out, and one
pass feeds them what they missed before they are needed again. This changes no token. With graphs or
rounded sizes every pass feeds all branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import accumulate
from typing import TYPE_CHECKING

import torch

from .. import repeat_near_ties
from ..events import Pass
from ..methods.window import Window, at_end, sample_first
from ..state import DecodeState, at
from .maps import parts

if TYPE_CHECKING:
    from ..methods.window import Window

MOST = 0.5  # share of freed cells above which the old picture says little about the new one


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


def verified(state: DecodeState, objects: ObjectBranches) -> Iterator[Pass]:
    """Judge all cells by the prefill, and set each picture's frontier.

    What lies before the first change is final. What the cells behind it became here is the parent
    of their first guesses; those that the words without objects have not seen are judged without
    these. Yields passes only for near ties.
    """
    assert state.rule is not None
    sample_first(state)
    before = state.frontier.device
    window = Window(state, state.slots)
    slots, following = window.slots, window.next_slots
    count = min(max(objects.fed - max(window.start.host), 0), following.shape[1])  # judged by all
    tokens, ties = sampled_in_parts(state, following[:, :count])
    with objects.left_out():
        guesses = guessed_behind(state, following[:, count:])
    tokens = torch.cat((tokens, guesses), 1)
    ties = torch.cat((ties, torch.zeros_like(guesses).bool()), 1)
    same = (tokens == state.codes(following))[:, :-1]
    same = same & (state.noise.slots[: same.shape[1]] < count - 1)
    # where the very first cell changed, what the prefill says of the others is out of date
    stands = at(state.rule.parent, slots[:, :1]) == state.codes(slots[:, :1])
    stands = stands & (count > 0)
    state.write(following, tokens)
    if state.parent is not None:
        state.parent = state.tokens.clone()
    right = same.long().cumprod(-1).sum(-1)
    frontier = torch.where(stands[:, 0], window.start.device + 1 + right, before)
    frontier = yield from repeat_near_ties.decided(state, slots, ties & stands, before,
                                                   frontier.clamp(max=state.region.end))
    state.reach(at_end(state, frontier))
    objects.fed = min(state.frontier.host)


def guessed_behind(state: DecodeState, slots: torch.Tensor) -> torch.Tensor:
    """First guesses [B, n] for slots behind the first change; the old tokens if most are freed."""
    assert state.rule is not None
    freed = at(state.rule.mask, slots).float().mean()
    if state.parent is None or freed > MOST:
        return at(state.rule.parent, slots)
    return sampled_in_parts(state, slots)[0]


def sampled_in_parts(state: DecodeState, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens [B, n] of slots, and which of them rounding may have decided."""
    each = [(slots[:, :0], slots[:, :0].bool())]
    for part in parts(state):
        some = slots[:, part]
        if some.shape[1]:
            each.append(state.judge(state.sampled_with_ties, some) if state.margin else
                        (state.judge(state.sampled_at, some), torch.zeros_like(some).bool()))
    tokens, ties = zip(*each, strict=True)
    return torch.cat(tokens, 1), torch.cat(ties, 1)
