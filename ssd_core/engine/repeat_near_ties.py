"""Repeats samples that rounding may have decided, with passes of AR's own shape.

Where the bits of a cell depend on the width of a pass (fp32 on CPUs), a window can sample another
token than AR only if two tokens score almost the same, or a filter almost kept another one
(model/near_ties.py). Then what AR's passes have not fed before that cell is fed again as AR feeds
it, and the cell is sampled from the result, which has AR's exact bits. For `postcard` this happens
in about five pictures of a hundred. Once a run would take more passes than AR does, AR draws the
rest, so that a run takes at most twice AR's passes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import torch

from ..backbones.base import Backbone
from ..model.sampling import Sampling
from .events import Pass
from .state import DecodeState

SPREADS = 5 * 2**0.5  # times the measured rounding: how far two logits may move against each other
MOST = 1e-4  # rounding in nats above which too many samples would be repeated: several a picture


def repeats(backbone: Backbone) -> bool:
    """Whether near ties are repeated: in fp32, unless rounding would make them frequent."""
    return backbone.dtype == torch.float32 and (backbone.rounding or 0.0) <= MOST


def margin(backbone: Backbone, sampling: Sampling, objects: int = 0) -> float:
    """How far rounding may move two logits against each other; 0: it never decides.

    objects: the branches of an edit, each of which is added to the guided logits or subtracted.
    """
    if not backbone.rounding or not repeats(backbone):
        return 0.0
    cfg = sampling.cfg
    guided = ((cfg + objects) ** 2 + (cfg - 1) ** 2 + objects) ** 0.5  # the spread under guidance
    return SPREADS * guided * backbone.rounding


def decided(state: DecodeState, slots: torch.Tensor, ties: torch.Tensor, before: torch.Tensor,
            frontier: torch.Tensor) -> Generator[Pass, None, torch.Tensor]:
    """Repeat the near ties among the tokens that a window's pass made final.

    ties [B, n] bool: which tokens in slots + 1 are near ties. The pass made the slots after
    `before` [B] up to `frontier` [B] final. Where AR samples another token, writes that token and
    moves the frontier back to it. Returns the frontier, the last slot if AR has drawn the rest.
    """
    if beyond_ar(state, 1):
        return (yield from rest_by_ar(state, frontier))
    final = ties & (slots >= before[:, None]) & (slots < frontier[:, None])
    frontier = frontier.clone()
    for picture, index in final.nonzero().tolist():
        slot = int(slots[picture, index]) + 1
        if slot <= frontier[picture]:
            if beyond_ar(state, 1 + len(unfed(state, slot))):
                return (yield from rest_by_ar(state, frontier))
            yield from as_ar(state, slot)
            if resample_slot(state, picture, slot):
                frontier[picture] = slot
    return frontier


def recheck(state: DecodeState, start: int, stop: int) -> Generator[Pass, None, int | None]:
    """Repeat the near ties in slots start..stop-1 up to the first that AR decides differently.

    The hidden states that predict these slots must match their tokens. Returns the first slot that
    changed, or None.
    """
    _, ties = state.judge(state.sampled_with_ties, state.span(start, stop))
    for index in ties.any(0).nonzero()[:, 0].tolist():
        slot = start + index
        yield from as_ar(state, slot)
        changed = [resample_slot(state, picture, slot)
                   for picture in ties[:, index].nonzero()[:, 0].tolist()]
        if any(changed):
            return slot
    return None


def as_ar(state: DecodeState, stop: int) -> Iterator[Pass]:
    """Feed the slots before `stop` as AR does, so that h of the masked cell `stop` has AR's bits.

    A pass feeds a masked cell and the known slots behind it: row ends and known cells.
    """
    cells = unfed(state, stop)
    for slot, after in zip(cells, [*cells[1:], stop], strict=False):  # none if stop is the first
        state.stale = slot
        state.feed(after)
        state.clock.lap("commit")
        yield state.record_pass("commit", 0, slot, after)
    state.fed_as_ar = max(state.fed_as_ar, stop)


def resample_slot(state: DecodeState, picture: int, slot: int) -> bool:
    """Choose a picture's token again from h; return whether it changed."""
    token = state.judge(state.sampled_at, state.span(slot, slot + 1))[picture, 0]
    changed = bool(token != state.tokens[picture, slot])
    state.tokens[picture, slot] = token
    return changed


def beyond_ar(state: DecodeState, passes: int) -> bool:
    """Whether so many more passes, the one that is judged among them, exceed AR's number."""
    return state.passes + passes > state.region.cells


def unfed(state: DecodeState, stop: int) -> list[int]:
    """The masked cells before `stop` that are not yet fed as AR feeds them."""
    return [slot for slot in state.region.slots if state.fed_as_ar <= slot < stop]


def rest_by_ar(state: DecodeState,
               frontier: torch.Tensor) -> Generator[Pass, None, torch.Tensor]:
    """Draw the rest of all pictures as AR does, from the first cell that its passes have not fed.

    Returns the frontier [B].
    """
    # what follows a frontier were drafts
    state.fed_as_ar = min(state.fed_as_ar, *state.frontier.host)
    yield from cells_by_ar(state, state.slots)
    return torch.full_like(frontier, state.region.last)


def cells_by_ar(state: DecodeState, stop: int) -> Iterator[Pass]:
    """Draw the cells before `stop` as AR does, from the first that its passes have not fed."""
    for slot in unfed(state, stop):
        yield from as_ar(state, slot)
        state.sample(slot)
