"""How an edit by words begins: its prefill has fed the old picture, so its cells can be judged."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .. import repeat_near_ties
from ..edits.branches import ObjectBranches
from ..edits.maps import parts
from ..events import Pass
from ..state import DecodeState, at
from .window import Window, at_end, sample_first

MOST = 0.5  # share of freed cells above which the old picture says little about the new one


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
