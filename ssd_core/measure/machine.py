"""The machine of a measurement: processor, bandwidth, and whether other programs were busy."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

from .. import openmp
from ..backbones.base import Backbone
from ..model.processor import processor

__all__ = ["OtherWork", "processor", "waiting"]

IDLE = 0.3  # a smaller share of the cores used by other programs counts as idle
COPY_BYTES = {"cuda": 1 << 30}
ON_OTHERS = 1 << 28
PARTS = ("decoder", "norm", "projection", "head")  # of a backbone, read by every pass


def waiting() -> str:
    """Return how OpenMP's threads wait, such as " (passive)"; empty if the library decides."""
    policy = os.environ.get(openmp.VARIABLE)
    return f" ({policy.lower()})" if policy else ""


def busy_seconds() -> float | None:
    """Busy seconds of all cores together since the machine started; None if unknown."""
    try:
        first = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()
        ticks = os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError, AttributeError):
        return None
    user, nice, system, _, _, *interrupts = map(int, first[1:9])
    return (user + nice + system + sum(interrupts)) / ticks


def own_seconds() -> float:
    """CPU seconds of this process and its finished children."""
    return sum(os.times()[:4])


class OtherWork:
    """Measures from now on how busy other programs keep the machine.

    The system's load average would include this process and work of a minute ago.
    """

    def __init__(self) -> None:
        self.start = self.now()

    @staticmethod
    def now() -> tuple[float, float | None, float]:
        return time.perf_counter(), busy_seconds(), own_seconds()

    def load(self) -> float | None:
        """Mean share of the cores used by other programs; None if unknown."""
        (wall, busy, own), (begun, before, mine) = self.now(), self.start
        if busy is None or before is None or wall <= begun:
            return None
        others = busy - before - (own - mine)
        return max(0.0, others / (wall - begun) / (os.cpu_count() or 1))

    def words(self) -> str:
        """Return "idle", "busy (load 0.8)", or "unknown load"."""
        load = self.load()
        if load is None:
            return "unknown load"
        return "idle" if load < IDLE else f"busy (load {load:.1f})"


def synchronised(device: torch.device) -> float:
    """Wall-clock seconds, after the card has finished its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


@torch.inference_mode()
def copy_bandwidth(device: torch.device, repeats: int = 10) -> float:
    """Bytes a second that a plain copy reads and writes: the best of several."""
    size = COPY_BYTES.get(device.type, ON_OTHERS)
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target, best = torch.empty_like(source), float("inf")
    for _ in range(repeats + 1):
        began = synchronised(device)
        target.copy_(source)
        best = min(best, synchronised(device) - began)
    return 2 * size / best


def read_bytes(backbone: Backbone, rows: int, slots: int) -> int:
    """The bytes a pass must read: layers, norm, image head, and keys and values so far.

    rows: sequences, two for a guided picture. slots: of the cache.
    """
    weights = [weight for name, weight in backbone.named_parameters()
               if name.split(".")[0] in PARTS]
    s = backbone.decoder.shape
    cache = 2 * s.layers * rows * s.kv_heads * slots * s.head_dim * backbone.dtype.itemsize
    return sum(weight.numel() * weight.element_size() for weight in weights) + cache
