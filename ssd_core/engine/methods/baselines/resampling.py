"""The base of `sjd` and `gsd`, whose drafts are the tokens that the last pass sampled.

No draft heads are needed. A window of cells slides along the raster. Each pass verifies all drafts
in it from left to right against the distributions they were sampled from. Drafts after the first
rejection are sampled again for the next pass.

With `continuation` (SJD-PAC, 2603.18599) those drafts are accepted or repaired independently
instead, so that a token changes only as far as its distribution does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from ....model.noise import Purpose
from ....model.sampling import sample
from ... import accept
from ...events import Pass
from ...state import DecodeState, at
from ..base import knob
from ..parent import right_nearby
from ..window import Windowed, is_final, sliding_windows


@dataclass(frozen=True)
class Resampling(Windowed):
    """Drafts a window of cells from their own distributions one pass earlier."""

    init: str = knob(
        "repeat-above", "The first draft of a cell: a random code, the token to the left or "
                        "above, or a new sample from that cell's distribution.",
        choices=("random", "repeat-left", "repeat-above", "resample-left", "resample-above"))
    continuation: bool = knob(
        True, "Keep drafts after the first rejection as far as their distributions agree.")

    def acceptance_rule(self, state: DecodeState, tokens: torch.Tensor, draft_probs: torch.Tensor,
                        target_probs: torch.Tensor, uniforms: torch.Tensor,
                        noise: torch.Tensor) -> accept.AcceptResult:
        """Accept or repair each draft independently."""
        raise NotImplementedError

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        """Verify the last pass's tokens with p; sample those after the first rejection again."""
        drafts, most = Drafts(self.init), self.window_on(state.grid)
        for window in sliding_windows(state, most):
            q = drafts.guess(state, window.slots, window.frontier)  # [B, n - 1, V]
            window.feed()
            next_slots = window.next_slots
            p = state.target_probs(next_slots)  # [B, n, V]
            u = state.noise.uniform(Purpose.ACCEPT, state.passes, next_slots)
            result = self.acceptance_rule(
                state, state.codes(next_slots), F.pad(q, (0, 0, 0, 1)), p, u,
                state.noise.fresh(Purpose.REPAIR, state.passes, next_slots))
            # the last slot has no draft
            unchanged = (result.accepted | window.is_final(next_slots))[:, :-1]
            accepted = unchanged.long().cumprod(-1).sum(-1)
            fresh = sample(p, state.noise.fresh(Purpose.DRAFT, state.passes, next_slots))
            verified = self._verified(next_slots, accepted)
            window.write(next_slots, torch.where(verified, result.tokens, fresh))
            drafts.remember(next_slots, p)
            yield from window.advance(accepted, unchanged)

    def _verified(self, next_slots: torch.Tensor, accepted: torch.Tensor) -> torch.Tensor:
        """[B, n] bool: where the rule's token counts; all other tokens are sampled again."""
        index = torch.arange(next_slots.shape[1], device=next_slots.device)
        drafted = (index < next_slots.shape[1] - 1).expand_as(next_slots)
        return drafted if self.continuation else drafted & (index <= accepted[:, None])


class Drafts:
    """The distributions q that the window's tokens were sampled from."""

    def __init__(self, init: str) -> None:
        self.source, _, self.place = init.rpartition("-")
        # probs [B, n, V] of slots first [B, 1] to first + n - 1
        self.probs: torch.Tensor | None = None
        self.first: torch.Tensor | None = None
        self.starts: list[int] = []  # on the host: the first slot of each picture's last window

    def remember(self, slots: torch.Tensor, probs: torch.Tensor) -> None:
        """Store probs [B, n, V] of consecutive slots [B, n] as the q of the next drafts."""
        self.probs, self.first = probs, slots[:, :1]

    def guess(self, state: DecodeState, slots: torch.Tensor,
              frontier: torch.Tensor) -> torch.Tensor:
        """Write tokens to slots that have none; returns q [B, n - 1, V] of all but the first."""
        next_slots = slots[:, 1:]
        if self.probs is None or self.first is None:
            draft_probs = self._entering(state, next_slots, frontier[:, None])
            entering = torch.ones_like(next_slots, dtype=torch.bool)
        else:
            index = next_slots - self.first
            entering = index >= self.probs.shape[1]
            index = index.clamp(0, self.probs.shape[1] - 1)[..., None]
            draft_probs = self.probs.gather(1, index.expand(-1, -1, self.probs.shape[2]))
            if count := self._most_entering(state, *slots.shape[1:]):
                last = self.first + self.probs.shape[1] - 1
                fresh = self._entering(state, next_slots[:, -count:], last)
                new = entering[:, -count:, None]
                draft_probs[:, -count:] = torch.where(new, fresh, draft_probs[:, -count:])
        self.starts = [min(front, state.region.end - slots.shape[1])
                       for front in state.frontier.host]
        tokens = sample(draft_probs, state.noise.fixed_at(next_slots))
        write = entering & ~is_final(next_slots, frontier)
        state.write(next_slots, torch.where(write, tokens, state.codes(next_slots)))
        return draft_probs

    def _most_entering(self, state: DecodeState, count: int) -> int:
        """An upper bound of the window's slots, of `count`, without a q from the last pass."""
        assert self.probs is not None
        known, last = self.probs.shape[1], state.region.end
        entering = max(min(front + count - 1, last) - (start + known)
                       for front, start in zip(state.frontier.host, self.starts, strict=True))
        return min(max(entering, 0), count - 1)

    def _entering(self, state: DecodeState, slots: torch.Tensor,
                  last: torch.Tensor) -> torch.Tensor:
        """q [B, n, V] of tokens that enter the window; last [B, 1]: the last slot with a token."""
        usual = self._usual(state, slots, last)
        if state.parent is None:
            return usual
        right = right_nearby(state, slots, last[:, 0] + 1)[..., None]
        return torch.where(right, F.one_hot(at(state.parent, slots), usual.shape[-1]).float(),
                           usual)

    def _usual(self, state: DecodeState, slots: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        """`_entering` without a parent."""
        if self.place == "random":
            shape = (*slots.shape, state.backbone.codes)
            return torch.full(shape, 1 / state.backbone.codes, device=slots.device)
        left, above = slots - 1, slots - state.grid.width
        neighbour = torch.where(above >= 0, above, left) if self.place == "above" else left
        neighbour = torch.minimum(neighbour, last)  # later slots have no token yet
        if self.source == "resample":
            return state.target_probs(neighbour)
        return F.one_hot(state.codes(neighbour), state.backbone.codes).float()
