"""Bytes a second: what a plain copy reaches on a device, and what a pass must read."""

from __future__ import annotations

import time

import torch

from ..backbones.base import Backbone

COPY_BYTES = {"cuda": 1 << 30}
ON_OTHERS = 1 << 28
PARTS = ("decoder", "norm", "projection", "head")  # of a backbone, read by every pass


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
