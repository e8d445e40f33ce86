"""The same picture as AR with the same seed, in fewer forward passes, with or without heads.

A window of cells slides along the raster. Every pass samples all its cells again with their fixed
noise. Unchanged tokens at the front are final: AR would have chosen them too.

The tokens are identical in fp32. In half precision a pass over a window can round differently from
a pass over one cell. Where another token wins by that, the picture goes on from it
(benchmarks/results/exact.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from ...model.grid import Grid
from ...model.noise import Slots
from ...model.sampling import choose
from ..events import Pass
from ..state import DecodeState
from .knobs import drafted_by
from .row_drafts import carry_over, draft_by_row
from .window import Window, Windowed, known, sliding_windows


@dataclass(frozen=True)
class Exact(Windowed):
    """Samples a whole window of cells again in every pass.

    With drafter "row" a cell that enters is drafted by the row drafter, and what a pass changed is
    carried over to the cells behind it before the next pass.
    """

    drafter: str = drafted_by()
    name: ClassVar[str] = "exact"
    uses_heads: ClassVar[bool] = True
    verdict: ClassVar[str] = "identical"

    def steps(self, state: DecodeState, first_row: int) -> Iterator[Pass]:
        most, by_row = self.width(state.grid, state.tokens.device.type), self.needs_row_drafter()
        guess = FirstGuess(state, by_row)
        for window in sliding_windows(state, first_row * state.grid.width, most):
            guess.fill(window)
            window.feed()
            yield from window.advance(*rechoose(window, by_row=by_row))


class FirstGuess:
    """Drafts the slots that enter the window.

    By the row drafter, or else from the vertical head, or with the token above. A slot that the
    last pass has chosen already keeps its token.
    """

    def __init__(self, state: DecodeState, by_row: bool) -> None:
        self.by_row = by_row
        self.guessed = torch.zeros_like(state.tokens[:, 0])  # slots before this have a token
        self.guessed_host = [0] * state.pictures  # the same on the host

    def fill(self, window: Window) -> None:
        state, slots, frontier = window.state, window.slots, window.frontier
        count = slots.shape[1]
        stops = [start + count for start in window.starts]
        entering = max(stop - max(guessed, front + 1) for stop, guessed, front
                       in zip(stops, self.guessed_host, state.front, strict=True))
        self.guessed = torch.maximum(self.guessed, frontier + 1)
        if entering > 0:
            fresh = slots[:, -min(entering, count):]
            old = fresh < self.guessed[:, None]
            if self.by_row:
                draft_by_row(state, fresh, state.noise.choosing_at(fresh), old.sum(-1))
            else:
                tokens = self._tokens(state, fresh, frontier, stops)
                state.write_at(fresh, torch.where(old, state.codes_at(fresh), tokens))
        self.guessed = torch.maximum(self.guessed, slots[:, -1] + 2)
        self.guessed_host = [stop + 1 for stop in stops]

    def _tokens(self, state: DecodeState, slots: torch.Tensor, frontier: torch.Tensor,
                stops: list[int]) -> torch.Tensor:
        """First guesses for slots [B, n], which end before `stops`."""
        width = state.grid.width
        above = slots - width
        source = torch.where(above >= 0, above, frontier[:, None])
        copied = state.codes_at(source)
        some_exact = any(max(stop - slots.shape[1] - width, 0) <= min(front, stop - 1 - width)
                         for stop, front in zip(stops, state.front, strict=True))
        if state.heads is None or not state.heads.k_v or not some_exact:
            return copied
        exact = (above >= 0) & known(above, frontier)
        estimate = state.heads.vertical[0](state.hidden_at(source), state.embedding_at(source))
        drafted = choose(state.draft_probs(estimate, slots), state.noise.choosing_at(slots))
        return torch.where(exact, drafted, copied)


def rechoose(window: Window, least: int = 1, by_row: bool = False
             ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Choose the tokens ahead of a window that was fed again; what `Window.advance` takes.

    The frontier moves on by at least `least` cells: those stay as they were fed. With by_row,
    tokens behind the first change are chosen once more, in view of the change.
    """
    state, slots = window.state, window.slots
    ahead = state.behind_fed(slots)
    right, same, tokens, settled, close = state.run(rechosen, state, slots, ahead, window.frontier,
                                                    least)
    if by_row:  # nothing before the first change needs a second thought
        ahead = window.ahead
        carry_over(state, ahead, tokens, settled, state.noise.choosing_at(ahead))
    else:
        state.write_at(ahead, tokens)
    return right, same, close if least == 1 and state.margin else None


def rechosen(state: DecodeState, slots: torch.Tensor, ahead: Slots, frontier: torch.Tensor,
             least: int) -> tuple[torch.Tensor, ...]:
    """Static part of `rechoose`: how many guesses are right [B] and which are [B, n - 1] bool.

    Also tokens [B, n] for slots + 1, which of them stay whatever is changed before them, and which
    rounding may have decided (with a margin only).
    """
    held, final = state.codes_at(ahead), slots < frontier[:, None]
    chosen, close = state.chosen_closely(ahead) if state.margin else (state.chosen_at(ahead), final)
    tokens = torch.where(final, held, chosen)
    same = (tokens == held)[:, :-1]
    right = same.long().cumprod(-1).sum(-1)
    behind = cells_on(state.grid, frontier, least) - 1
    right = torch.maximum(right, behind - slots[:, 0]).clamp(max=same.shape[1])
    place = state.noise.slots[: slots.shape[1]]
    tokens = torch.where(place < right[:, None], held, tokens)
    return right, same, tokens, final | (place <= right[:, None]), close


def cells_on(grid: Grid, slots: torch.Tensor, count: int) -> torch.Tensor:
    """The slots [B] of the cells that lie `count` cells behind slots [B]; row ends do not count."""
    if not grid.row_end:
        return slots + count
    y, x = slots // grid.width, slots % grid.width
    cell = y * grid.columns + (x + 1).clamp(max=grid.columns) + count - 1
    return cell // grid.columns * grid.width + cell % grid.columns
