"""The device that a self-test runs on: how it captures graphs, and the memory that it holds."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from ..engine.graphs import (
    CudaRecorder,
    EagerRunner,
    GraphRunner,
    PassRunner,
    Recorder,
    graphs_off_reason,
)

SHARED_POOL = (0, 0)  # of all tensors outside of graphs


@dataclass(frozen=True)
class Machine:
    """recorder: makes what captures graphs; None where there are none. held: bytes in use."""

    device: torch.device
    recorder: Callable[[], Recorder] | None
    held: Callable[[], int]

    @classmethod
    def of(cls, device: torch.device) -> Machine:
        """This machine; graphs that the user has switched off are not tested."""
        graphs = not graphs_off_reason(device)
        return cls(device, partial(CudaRecorder, device) if graphs else None,
                   partial(held_bytes, device))

    def direct(self) -> PassRunner:
        """A runner without graphs whose passes have the same sizes as with graphs."""
        return EagerRunner(padded=self.recorder is not None or self.device.type != "cpu")

    def replaying(self) -> GraphRunner:
        assert self.recorder is not None
        return GraphRunner(self.recorder())


def held_bytes(device: torch.device) -> int:
    """Memory of a card that this process cannot give back, in bytes; 0 on other devices.

    That is all tensors, and the whole pools of graphs. Gaps between tensors are not counted, which
    are others after weights were moved.
    """
    if device.type != "cuda":
        return 0
    gc.collect()
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    if torch.cuda.get_allocator_backend() != "native":  # cudaMallocAsync has no segments
        return torch.cuda.memory_reserved(device)
    index = torch.cuda.current_device() if device.index is None else device.index
    return sum(segment["allocated_size"] if segment["segment_pool_id"] == SHARED_POOL
               else segment["total_size"] for segment in torch.cuda.memory_snapshot()
               if segment["device"] == index)
