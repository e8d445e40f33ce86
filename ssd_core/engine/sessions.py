"""Buffers and captured graphs that outlive a run, so that the next picture replays them.

A backbone keeps one session (backbones/sessions.py): the state of its last run, whose runner has
captured graphs over the state's buffers. The next run of the same shape fills the buffers anew,
whatever its prompts, seed, guidance and temperature. Only its judges depend on the last two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch

from ..backbones.base import Backbone
from ..backbones.offload import plain_parts
from ..model.grid import Grid
from ..model.sampling import Sampling
from .heads import DraftHeads
from .state import DecodeState


class RunShape(NamedTuple):
    """What must agree between runs that share buffers.

    sequences: guidance branches of all pictures. scratch: cache slots behind the picture. hides:
    whether slots of a prompt are hidden from attention.
    """

    grid: Grid
    size: tuple[int, int]
    device: torch.device
    dtype: torch.dtype
    pictures: int
    sequences: int
    heads: DraftHeads | None
    scratch: int
    hides: bool


@dataclass
class RunSession:
    """A state between two runs of this shape. places: what `places_read` said before it captured.
    """

    shape: RunShape
    state: DecodeState
    places: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return self.state.nbytes + self.state.run.nbytes

    def close(self) -> None:
        device = self.state.tokens.device
        self.state.run.close()
        del self.state  # now that no graph refers to it, and its buffers can go
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.empty_cache()

    def suits(self, shape: RunShape | None, prompts: Sequence[list[int]]) -> bool:
        """Whether a run can use the buffers, and all weights are where the graphs read them."""
        return (self.shape == shape and self.state.takes(prompts)
                and self.places == places_read(self.state))


@contextmanager
def state_of(backbone: Backbone, shape: RunShape | None, prompts: Sequence[list[int]],
             sampling: Sampling, margin: float, make: Callable[[], DecodeState], widest: int
             ) -> Iterator[DecodeState]:
    """The state of a run: the session's, if it suits, or what `make` returns.

    shape: None for a run that shares its buffers with no other. widest: cells of its widest pass.
    """
    session = None if shape is None else backbone.session.take()
    if isinstance(session, RunSession) and session.suits(shape, prompts):
        state, places = session.state, session.places
        begin = partial(state.again, prompts, sampling, margin)
    else:
        if session is not None:
            session.close()
        state = make()
        places = () if shape is None else places_read(state)
        begin = partial(state.prepare, widest)
    try:
        if shape is not None:
            begin()
        yield state
    except BaseException:
        state.run.close()
        raise
    if shape is None or not state.run.lasting:
        state.run.close()
    else:
        state.run.captured = 0
        backbone.session.keep(RunSession(shape, state, places))


def is_ready(backbone: Backbone, shape: RunShape) -> bool:
    """Whether the last run has left graphs for a run of this shape."""
    session = backbone.session.latest
    return isinstance(session, RunSession) and session.shape == shape


def places_read(state: DecodeState) -> tuple[int, ...]:
    """The addresses of the weights and tables that graphs of this state read."""
    backbone = state.backbone
    modules = [module for module in backbone.children() if module is not backbone.picture_codec]
    modules += [] if state.heads is None else [state.heads]
    tables = (value for value in vars(backbone).values() if isinstance(value, torch.Tensor))
    return tuple(tensor.data_ptr() for tensor in (
        *backbone.parameters(recurse=False), *tables,
        *(part for module in modules for part in plain_parts(module))))
