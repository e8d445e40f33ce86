"""What the parts of card_session.py share: the device, its backbones, and replayed work."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import torch
from passes import seconds_of
from random_backbones import random_backbone, random_heads, scaled

from ssd_core import Sampling
from ssd_core.backbones.base import Backbone
from ssd_core.engine.decode import prepare
from ssd_core.engine.graphs import CudaRecorder, EagerRunner, Work
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR
from ssd_core.engine.state import DecodeState
from ssd_core.measure.machine import synchronised
from ssd_core.model.grid import Grid
from ssd_core.weights.catalogue import known

T = TypeVar("T")
TINY_SIDE = 8  # rows and columns of a tiny picture with row ends; Janus has one grid
SHOWN = 70  # characters of an error in a table


@dataclass
class Card:
    """Where a session runs. tiny: narrow layers and small grids, for a CPU.

    read: bytes a second that it reads; the part `env` measures it.
    """

    device: torch.device
    dtype: torch.dtype
    tiny: bool
    read: float = 1e9

    @property
    def real(self) -> bool:
        return self.device.type == "cuda"

    def now(self) -> float:
        """Seconds, after the card has finished its queue."""
        return synchronised(self.device)

    def backbone(self, name: str, layers: int | None = None) -> tuple[Backbone, DraftHeads]:
        """A backbone of the catalogue and its heads, of random weights."""
        row = known(name)
        if self.tiny:
            grid = Grid(TINY_SIDE, TINY_SIDE, True) if row.grid.row_end else row.grid
            row = replace(scaled(row), grid=grid)
        elif layers:
            row = replace(row, shape=replace(row.shape, layers=layers))
        with torch.inference_mode(False), torch.no_grad():
            backbone = random_backbone(row, self.device, self.dtype)
            return backbone, random_heads(backbone, backbone.preset.k_h, backbone.preset.k_v)

    def random(self, *sizes: int) -> torch.Tensor:
        return torch.randn(sizes, device=self.device, dtype=self.dtype)

    def replaying(self, work: Work, measure: Callable[[Work], T], repeats: int = 1) -> T:
        """What `measure` finds with a function that replays `repeats` calls of the work as one
        graph; on a CPU it calls the work.
        """
        def repeated() -> None:
            for _ in range(repeats):
                work()

        if not self.real:
            return measure(repeated)
        recorder = CudaRecorder(self.device)
        try:
            for _ in range(2):
                recorder.warm_up(work)
            return measure(recorder.record(repeated))
        finally:
            recorder.close()

    def on_capture_stream(self, work: Work) -> None:
        """Call the work on a stream of captures, but capture nothing."""
        if not self.real:
            work()
            return
        recorder = CudaRecorder(self.device)
        recorder.warm_up(work)
        recorder.close()

    def microseconds(self, work: Work, repeats: int = 1) -> float:
        """Of one call in a replayed graph, the best of several."""
        timed = partial(seconds_of, repeats=7 if self.real else 1, clock=self.now)
        return 1e6 * min(self.replaying(work, timed, repeats)) / repeats

    def share(self, size: int, microseconds: float) -> float:
        """Per cent of the read bandwidth, if so many bytes are read in this time."""
        return 100 * size / (1e-6 * microseconds) / self.read

    def tidy(self) -> None:
        """Free what nothing refers to."""
        gc.collect()
        if self.real:
            torch.cuda.empty_cache()


def attempted(measure: Callable[[], float | str]) -> float | str:
    """What is measured, or the beginning of the error."""
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 - other libraries' kernels fail in many ways
        return f"{type(error).__name__}: {error}".splitlines()[0][:SHOWN]


def state_amid(backbone: Backbone, heads: DraftHeads, cells: int, start: int) -> DecodeState:
    """The state of a run whose random cells before slot `start` are fed, `cells` at a time."""
    prepared = prepare(backbone, "a house " * 40, AR(), heads, Sampling(seed=1))
    state = prepared.allocate(EagerRunner(padded=True))
    codes = torch.randint(backbone.codes, (1, state.slots), device=backbone.device)
    state.write(slice(0, codes.shape[1]), codes)
    state.prefill()
    for first in range(0, start, cells):
        last = min(first + cells, start)
        state.feed_each(state.slots_between(first, last), last)
    return state


def pass_over(state: DecodeState, start: int, cells: int) -> Work:
    """One forward pass over so many cells from slot `start` on, which can be captured."""
    return partial(state.feed_each, state.slots_between(start, start + cells).clone(),
                   start + cells)
