"""How the sequences of an edit are fed the old picture: each once, and no further than needed.

Where the bits of a cell do not depend on its pass, the unconditional sequences are taken over from
the pass under the old words, and the words without a thing are fed up to the first cell that the
new words move. Elsewhere one pass feeds all. This changes no token.
"""

from __future__ import annotations

import torch

from ..events import Pass
from ..state import DecodeState
from .lanes import Lane


def feed_words(state: DecodeState, before: DecodeState) -> Pass:
    """Feed the new words all cells; before: the pictures under the old words."""
    if not in_parts(state):
        return state.prefill(state.region.end)
    prefill, all_ = state.prefill(), Lane(state, 0, state.branches)
    unconditional = slice(state.pictures, state.guidance * state.pictures)
    known = state.prompts[unconditional] == before.prompts[unconditional]
    if known:  # without guidance there are none
        state.cache.take(before.cache, unconditional)
        state.hidden[unconditional] = before.hidden[unconditional]
    Lane(state, 0, 1 if known else state.guidance).select()
    state.feed(state.region.end)
    all_.select()
    state.stale = state.region.first
    return prefill


def feed_things(state: DecodeState, moved: torch.Tensor) -> int:
    """Feed the words without things the cells before the first moved one; returns its slot.

    moved [B, slots + 1] bool: the cells that the new words free.
    """
    first, end = state.region.first, state.region.end
    if not in_parts(state):
        return end
    certain = state.stats.certain_at(slice(first, end))
    free = moved[:, first:end] if certain is None else moved[:, first:end] & ~certain
    stop = first + int(torch.cat((free.any(0), free.new_ones(1))).int().argmax())
    if stop > first and state.branches > state.guidance:
        all_ = Lane(state, 0, state.branches)
        Lane(state, state.guidance, state.branches).select()
        state.feed(stop)
        all_.select()
        state.stale = first
    return stop


def in_parts(state: DecodeState) -> bool:
    """Whether a pass may feed some of the sequences, without any difference to their bits."""
    return state.backbone.batch_invariant and not state.run.padded
