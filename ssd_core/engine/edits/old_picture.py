"""How the sequences of an edit are fed the old picture: each once, and no further than needed.

Where the bits of a cell do not depend on its pass, the unconditional sequences are taken over from
the pass under the old words, and the words without an object are fed up to the first cell that the
new words move. Elsewhere one pass feeds all. This changes no token.
"""

from __future__ import annotations

import torch

from ..events import Pass
from ..state import DecodeState


def feed_words(state: DecodeState, before: DecodeState) -> Pass:
    """Feed the new words all cells; before: the pictures under the old words."""
    if not in_parts(state):
        return state.prefill(state.region.end)
    prefill = state.prefill()
    unconditional = slice(state.pictures, state.guidance * state.pictures)
    known = state.prompts[unconditional] == before.prompts[unconditional]
    if known:  # without guidance there are none
        state.cache.take(before.cache, unconditional)
        state.hidden[unconditional] = before.hidden[unconditional]
    with state.only(0, 1 if known else state.guidance):
        state.feed(state.region.end)
    state.stale = state.region.first
    return prefill


def feed_objects(state: DecodeState, mask: torch.Tensor) -> int:
    """Feed the words without objects the cells before the first masked one; returns its slot.

    mask [B, slots + 1] bool: the cells that the new words free.
    """
    first, end = state.region.first, state.region.end
    if not in_parts(state):
        return end
    known = state.stats.known_at(slice(first, end))
    mask = mask[:, first:end] if known is None else mask[:, first:end] & ~known
    stop = first + int(torch.cat((mask.any(0), mask.new_ones(1))).int().argmax())
    if stop > first and state.branches > state.guidance:
        with state.only(state.guidance, state.branches):
            state.feed(stop)
        state.stale = first
    return stop


def in_parts(state: DecodeState) -> bool:
    """Whether a pass may feed some of the sequences, without any difference to their bits."""
    return state.backbone.batch_invariant and not state.run.padded
