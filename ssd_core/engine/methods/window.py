"""The sliding window of `strict` and `exact`: each picture has its own frontier.

The token at the frontier is final but not yet fed. A pass feeds it together with the guesses behind
it. Guesses that prove right become final, the first wrong one is corrected, and the frontier moves
to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from ..events import Pass
from ..state import DecodeState

Drafted = TypeVar("Drafted")
Guess = Callable[[DecodeState, torch.Tensor, torch.Tensor], Drafted]
Judge = Callable[[DecodeState, torch.Tensor, torch.Tensor, Drafted], torch.Tensor]


def sliding_window(state: DecodeState, first: int, window: int, guess: Guess[Drafted],
                   judge: Judge[Drafted]) -> Iterator[Pass]:
    """Fill every picture from slot `first` on.

    guess(state, slots [B, n], frontier [B]) writes guesses after the frontier and returns what
    `judge` needs to know about them, such as their draft_probs [B, n - 1, V]. After the pass over
    `slots`, judge(state, slots, frontier, drafted) writes corrected tokens to slots + 1 and returns
    how many guesses [B] were right.
    """
    state.choose(first)
    frontier = torch.full((state.pictures,), first, device=state.tokens.device)
    lowest = first
    while lowest < state.slots - 1:
        count = min(window, state.slots - lowest)
        starts = frontier.clamp(max=state.slots - count)
        slots = starts[:, None] + state.noise.slots[:count]
        drafted = guess(state, slots, frontier)
        state.clock.lap("draft")
        state.feed_at(slots)
        stood = judge(state, slots, frontier, drafted)
        state.finished_early += frontier >= state.slots - 1
        frontier = (starts + 1 + stood).clamp(max=state.slots)
        lowest = int(frontier.min())
        state.clock.lap("verify")
        state.final = lowest + 1
        yield state.passed_at("verify", slots, slots < frontier[:, None])
    state.final = state.slots


def known(slots: torch.Tensor, frontier: torch.Tensor) -> torch.Tensor:
    """[B, n] bool: which tokens are already final. Windows at the end of a picture contain some."""
    return slots <= frontier[:, None]
