"""Shared by the training stages: schedules, optimizer steps, precision."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from ..errors import SSDError
from ..model.processor import cpu_has_bf16

REQUIRED = dataclasses.MISSING
# M_MMAP_THRESHOLD (32 MiB is its maximum), M_TRIM_THRESHOLD and M_TOP_PAD of malloc.h, in bytes.
MALLOC_OPTIONS = {-3: 32 << 20, -1: (1 << 31) - 1, -2: 64 << 20}
Say = Callable[[str], None]


def silent(line: str) -> None:
    """Discard a line of a stage's output."""


def require_least(recipe: Any, **least: int) -> None:
    """Raise SSDError for a field of the recipe that is less than its number here."""
    for name, number in least.items():
        if getattr(recipe, name) < number:
            raise SSDError(f"{name} {getattr(recipe, name)}: must be at least {number}")


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def cosine(step: int, steps: int, warmup: int, floor: float = 0.0) -> float:
    """Factor on the peak learning rate: linear warm-up, then a half cosine down to `floor`."""
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def trapezoid(step: int, steps: int, warmup: int, cooldown: float) -> float:
    """Factor on the peak learning rate: linear warm-up, a plateau, and a linear fall to zero over
    the last `cooldown` (0..1) of the steps."""
    falling = max(1.0, cooldown * steps)
    return min(1.0, (step + 1) / warmup, (steps - step) / falling)


def set_rate(optimizers: list[torch.optim.Optimizer], factor: float) -> None:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor


def remember_rates(optimizers: list[torch.optim.Optimizer]) -> list[torch.optim.Optimizer]:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
    return optimizers


def descend(loss: torch.Tensor, optimizers: list[torch.optim.Optimizer],
            weights: list[nn.Parameter]) -> None:
    """Compute gradients and take one step, with the gradient's norm clipped at 1."""
    loss.backward()
    take_step(optimizers, weights)


def take_step(optimizers: list[torch.optim.Optimizer], weights: list[nn.Parameter]) -> None:
    """Take one step along existing gradients, clipped at norm 1, and then remove them."""
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def keep_freed_memory() -> None:
    """Make glibc's allocator keep freed memory for reuse. Does nothing elsewhere.

    Each training step frees hundreds of megabytes and allocates them again. By default glibc
    returns large blocks to the kernel, which then has to clear every page again.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is not None and hasattr(libc, "mallopt"):
        for option, value in MALLOC_OPTIONS.items():
            libc.mallopt(option, value)


def multiplies_bfloat16(device: str) -> bool:
    """Whether the device has units for bfloat16 products: recent GPUs, CPUs with AMX or AVX-512.
    """
    if torch.device(device).type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.device(device).type == "cpu" and cpu_has_bf16()


def mixed_precision(device: str) -> AbstractContextManager:
    """Products in bfloat16 where that is faster; weights, norms and losses stay in float32."""
    if not multiplies_bfloat16(device):
        return nullcontext()
    return torch.autocast(torch.device(device).type, torch.bfloat16)
