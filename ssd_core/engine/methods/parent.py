"""First guesses from the parent, the picture whose tokens a run is given.

A cell starts from the parent's token while the parent has been right nearby, else from the usual
guess. This never changes what a method guarantees: a guess is a draft like any other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

from ..state import DecodeState, at
from .base import knob

# (row, column) of the cells that say whether the parent is right, relative to a cell
NEARBY = ((-1, -2), (-1, -1), (-1, 0), (-1, 1), (-1, 2), (-2, -1), (-2, 0), (-2, 1))
RIGHT = 0.5  # least share of them that must have the parent's token


def guessed_by() -> Any:
    """The knob `guess`."""
    return knob("auto", "First guess of a cell where another picture's tokens are given: parent, "
                        "their token while they were right nearby; usual, as without them; auto, "
                        "parent where cells are kept by a mask.",
                choices=("auto", "parent", "usual"), visibility="never")


def guessed(state: DecodeState, slots: torch.Tensor, stop: torch.Tensor,
            usual: torch.Tensor) -> torch.Tensor:
    """First tokens for slots [B, n]: the parent's where it is right nearby, else `usual` [B, n].

    stop [B]: slots before this have a token that a pass has chosen.
    """
    if state.parent is None:
        return usual
    return torch.where(right_nearby(state, slots, stop), at(state.parent, slots), usual)


def right_nearby(state: DecodeState, slots: torch.Tensor, stop: torch.Tensor) -> torch.Tensor:
    """[B, n] bool: whether the parent has the tokens of the sampled cells near slots [B, n].

    Known cells say nothing. Where nothing is sampled yet, the parent does not count as right.
    """
    assert state.parent is not None
    grid, offsets = state.grid, offsets_on(slots.device)
    row = slots[..., None] // grid.width + offsets[:, 0]
    column = slots[..., None] % grid.width + offsets[:, 1]
    near = (row * grid.width + column).clamp(0, state.slots).flatten(1)
    counted = ((row >= 0) & (column >= 0) & (column < grid.columns)).flatten(1)
    counted = counted & (near < stop[:, None])
    if state.known_cells is not None:
        counted = counted & ~at(state.known_cells.known, near)
    same = counted & (at(state.tokens, near) == at(state.parent, near))
    counted, same = (each.unflatten(1, (-1, len(NEARBY))).sum(-1) for each in (counted, same))
    return (counted > 0) & (same >= RIGHT * counted)


@lru_cache(maxsize=8)
def offsets_on(device: torch.device) -> torch.Tensor:
    """[8, 2] int64: NEARBY as a tensor, created once."""
    return torch.tensor(NEARBY, device=device)
