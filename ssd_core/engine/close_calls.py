"""Choices that rounding may have decided are made again by passes of AR's own shape.

Where the bits of a cell depend on the width of a pass (fp32 on CPUs), a window can choose another
token than AR only if two tokens are almost even. Then everything before that cell is fed once more,
one cell a pass as AR does, and the cell is chosen from those numbers: they are AR's, bit by bit.
For `postcard` that happens in about five pictures of a hundred.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import torch

from ..backbones.base import Backbone
from ..model.sampling import COLD, Sampling
from .events import Pass
from .state import DecodeState

SPREADS = 5 * 2**0.5  # of the measured rounding: how far two logits may move against each other


def margin(backbone: Backbone, sampling: Sampling) -> float:
    """How much nearer than by this share two candidates must be for rounding to decide; 0: never.
    """
    if not backbone.rounding or backbone.dtype != torch.float32:
        return 0.0
    cfg = sampling.cfg
    guided = 1.0 if cfg == 1 else (cfg**2 + (cfg - 1) ** 2) ** 0.5  # the spread of a mix
    return SPREADS * guided * backbone.rounding / max(sampling.temperature, COLD)


def decided(state: DecodeState, first: int, slots: torch.Tensor, close: torch.Tensor,
            before: torch.Tensor, frontier: torch.Tensor) -> Generator[Pass, None, torch.Tensor]:
    """Make the close calls among the tokens that a window's pass made final again.

    close [B, n] bool: of the tokens in slots + 1. Those behind `before` [B] up to `frontier` [B]
    are final. Where AR chooses another token, that is written and the frontier moves back to it.
    Returns the frontier.
    """
    final = close & (slots >= before[:, None]) & (slots < frontier[:, None])
    frontier = frontier.clone()
    for picture, place in final.nonzero().tolist():
        slot = int(slots[picture, place]) + 1
        if slot <= frontier[picture]:
            yield from as_ar(state, first, slot)
            if chosen_again(state, picture, slot):
                frontier[picture] = slot
    return frontier


def settled(state: DecodeState, first: int, start: int,
            stop: int) -> Generator[Pass, None, int | None]:
    """Make the close calls in slots start..stop-1 again; stop at the first that AR makes otherwise.

    The states that predict these slots are of the tokens they hold. Returns that slot, or None.
    """
    _, close = state.run(state.chosen_closely, state.span(start, stop))
    for place in close.any(0).nonzero()[:, 0].tolist():
        yield from as_ar(state, first, start + place)
        changed = [chosen_again(state, picture, start + place)
                   for picture in close[:, place].nonzero()[:, 0].tolist()]
        if any(changed):
            return start + place
    return None


def as_ar(state: DecodeState, first: int, stop: int) -> Iterator[Pass]:
    """Feed the slots first..stop-1, one a pass; then h of `stop` has the bits that AR computes."""
    cells = [slot for slot in range(first, stop) if not state.grid.is_row_end(slot)]
    for slot, after in zip(cells, [*cells[1:], stop], strict=False):  # none if stop is first
        state.stale = slot
        state.feed(after)  # a row end rides along
        state.clock.lap("commit")
        yield state.passed("commit", 0, slot, after)


def chosen_again(state: DecodeState, picture: int, slot: int) -> bool:
    """Choose a picture's token from the state's h; whether it is another one."""
    token = state.run(state.chosen_at, state.span(slot, slot + 1))[picture, 0]
    changed = bool(token != state.tokens[picture, slot])
    state.tokens[picture, slot] = token
    return changed
