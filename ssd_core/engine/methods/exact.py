"""AR's picture for the same seed in fewer forward passes, with or without heads.

A window of cells slides along the raster. Every pass samples all its cells again with their fixed
noise. Unchanged tokens at the front are final, because AR would sample them too.

The tokens are identical in fp32. In half precision a pass over a window can round differently from
a pass over one cell. If another token then wins, the picture continues from that token
(lab/benchmarks/results/exact.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import sub
from typing import ClassVar

import torch

from ...model.noise import Slots
from ...model.sampling import guide, sample
from ..edits.verified import ObjectBranches, verified
from ..events import Pass
from ..graphs import rounded_cells
from ..state import DecodeState, PictureSlots
from .base import drafted_by
from .parent import guessed, guessed_by
from .row_drafts import carry_over, draft_by_row
from .window import Window, Windowed, is_final, sliding_windows


@dataclass(frozen=True)
class Exact(Windowed):
    """Samples a whole window of cells again in every pass.

    With drafter "row" the row drafter drafts the cells that enter the window, and before the next
    pass it carries the changes of a pass over to the cells after them.
    """

    drafter: str = drafted_by()
    guess: str = guessed_by()
    name: ClassVar[str] = "exact"
    uses_heads: ClassVar[bool] = True
    takes_words: ClassVar[bool] = True
    guarantee: ClassVar[str] = "identical"

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        most, by_row = self.window_on(state.grid), self.needs_row_drafter()
        guess = FirstGuess(state, by_row)
        objects = ObjectBranches(state)
        if state.rule is not None:
            yield from verified(state, objects)
        for window in sliding_windows(state, most):
            with objects.left_out():
                guess.fill(window)
            yield from objects.caught_up(window)
            with objects.over(window):
                window.feed()
                yield from window.advance(*resample(window, by_row=by_row))


class FirstGuess:
    """Drafts the slots that enter the window.

    Drafts come from the parent, the row drafter, the vertical head, or the token above. A slot that
    the last pass has sampled already keeps its token.
    """

    def __init__(self, state: DecodeState, by_row: bool) -> None:
        self.by_row = by_row
        # slots before these have a token
        self.guessed = PictureSlots(torch.zeros_like(state.tokens[:, 0]), [0] * state.pictures)

    def fill(self, window: Window) -> None:
        """Write tokens to the slots of the window that have none."""
        state, slots, frontier = window.state, window.slots, window.frontier
        count = slots.shape[1]
        stops = [start + count for start in window.start.host]
        self.guessed = self.guessed.at_least(state.frontier.plus(1))
        entering = max(map(sub, stops, self.guessed.host))
        if entering > 0:
            if state.run.padded:  # some are old, so that there are few sizes
                entering = rounded_cells(entering, state.grid.width)
            fresh = slots[:, -min(entering, count):]
            known = self.guessed.device
            old = fresh < known[:, None]
            if self.by_row:
                draft_by_row(state, fresh, state.noise.fixed_at(fresh), old.sum(-1))
                tokens = (state.codes(fresh) if state.rule is None
                          else state.judge(state.sampled_at, fresh))
            else:
                tokens = self._tokens(state, fresh, frontier, stops)
            if not self.by_row or state.parent is not None:
                tokens = guessed(state, fresh, known, tokens)
                state.write(fresh, torch.where(old, state.codes(fresh), tokens))
        self.guessed = self.guessed.at_least(window.start.plus(count + 1))

    def _tokens(self, state: DecodeState, slots: torch.Tensor, frontier: torch.Tensor,
                stops: list[int]) -> torch.Tensor:
        """The first tokens for slots [B, n], which end before `stops`."""
        width = state.grid.width
        above = slots - width
        source = torch.where(above >= 0, above, frontier[:, None])
        copied = state.codes(source)
        some_exact = any(max(stop - slots.shape[1] - width, 0) <= min(front, stop - 1 - width)
                         for stop, front in zip(stops, state.frontier.host, strict=True))
        if state.heads is None or not state.heads.k_v or not some_exact:
            return copied
        exact = (above >= 0) & is_final(above, frontier)
        estimate = state.heads.vertical[0](state.hidden_at(source), state.embedding_at(source))
        if state.rule is not None:
            return torch.where(exact, state.judge(drafted_by_rule, state, estimate, slots), copied)
        drafted = sample(state.draft_probs(estimate, slots), state.noise.fixed_at(slots))
        return torch.where(exact, drafted, copied)


def drafted_by_rule(state: DecodeState, estimate: torch.Tensor,
                    slots: torch.Tensor) -> torch.Tensor:
    """Capturable: the tokens [B, n] that an edit's rule takes by estimates of h [N, n, d]."""
    assert state.rule is not None
    logits = state.draft_heads.space.logits(state.backbone, estimate)
    guided = guide(logits[: state.guidance * state.pictures], state.sampling.cfg)
    return state.rule.drafted(state, guided, slots)


def resample(window: Window, by_row: bool = False, deadline: torch.Tensor | None = None,
             share: torch.Tensor | None = None
             ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Choose the next slots of a fed window again; returns the arguments of `Window.advance`.

    deadline [B] int64: tokens up to these slots become final as they are. share [B, n]: a token
    stays, too, while it is at least this share as probable as the one that AR would take (see
    `DecodeState.sampled_or_kept`). With by_row, tokens after the first change are sampled once
    more, given that change.
    """
    state, slots = window.state, window.slots
    next_slots = state.predicted_slots(slots)
    right, same, tokens, known, ties = state.judge(resampled, state, slots, next_slots,
                                                   window.frontier, deadline, share)
    if by_row:
        next_slots = window.next_slots
        carry_over(state, next_slots, tokens, known, state.noise.fixed_at(next_slots))
    else:
        state.write(next_slots, tokens)
    return right, same, ties if deadline is None and state.margin else None


def resampled(state: DecodeState, slots: torch.Tensor, next_slots: Slots, frontier: torch.Tensor,
              deadline: torch.Tensor | None, share: torch.Tensor | None
              ) -> tuple[torch.Tensor, ...]:
    """Capturable part of `resample`.

    Returns how many drafts before the first change are right [B], which drafts are right
    [B, n - 1] bool, tokens [B, n] for slots + 1, which of these no earlier change affects, and
    which rounding may have decided (only with a margin).
    """
    current, final = state.codes(next_slots), slots < frontier[:, None]
    if share is not None:
        sampled, ties = state.sampled_or_kept(next_slots, share), final
    elif state.margin:
        sampled, ties = state.sampled_with_ties(next_slots)
    else:
        sampled, ties = state.sampled_at(next_slots), final
    tokens = torch.where(final, current, sampled)
    same = (tokens == current)[:, :-1]
    right = same if deadline is None else same | (slots[:, 1:] <= deadline[:, None])
    right = right.long().cumprod(-1).sum(-1)
    index = state.noise.slots[: slots.shape[1]]
    tokens = torch.where(index < right[:, None], current, tokens)
    return right, same, tokens, final | (index <= right[:, None]), ties
