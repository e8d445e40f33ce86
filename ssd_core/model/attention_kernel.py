"""Which of SDPA's kernels computes attention on a CUDA card: measured once, then always the same.

By default torch chooses by card and version: on Hopper and Blackwell cuDNN comes first, which
builds a plan for every new shape. Passes have masks, which flash attention does not take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..measured import tuned
from .processor import has_bf16
from .products import best_of, clock_of
from .surroundings import scaled_dot_product_attention

DEFAULT, EFFICIENT = "default", "efficient"
# Each name's kernel first, then those for what it does not take, such as fp32 or no mask.
OTHERS = (SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH)
KERNELS = {EFFICIENT: OTHERS, "cudnn": (SDPBackend.CUDNN_ATTENTION, *OTHERS)}
QUERIES = (1, 24, 98)  # of AR, of a row of Janus-Pro, and of two rows of Lumina-mGPT
WARM_UP = 7  # queries of the first call of all, which loads libraries
SHAPE = (2, 32, 1024, 128)  # of keys: sequences, heads, slots, numbers
FIRST_CALL = 20e-3  # seconds that planning for one shape may take


@dataclass(frozen=True)
class Timed:
    """Seconds of a kernel's first call with a new shape, and of a later one."""

    first: float
    later: float


def faster(times: Mapping[str, Sequence[Timed]]) -> str:
    """The kernel with the least time of later calls; the efficient one if that one plans too long.

    times: of each kernel that runs, for each shape. Without any, torch chooses.
    """
    if not times:
        return DEFAULT
    best = min(times, key=lambda name: sum(each.later for each in times[name]))
    planning = sum(each.first for each in times[best]) / len(times[best])
    return EFFICIENT if planning > FIRST_CALL and EFFICIENT in times else best


def timed(kernel: SDPBackend, device: torch.device) -> list[Timed]:
    """Times with a mask, for each of QUERIES; RuntimeError if the kernel does not run here."""
    dtype = torch.bfloat16 if has_bf16(device) else torch.float16
    keys = torch.zeros(SHAPE, dtype=dtype, device=device)
    found = []
    for n in (WARM_UP, *QUERIES):
        q = torch.zeros(*SHAPE[:2], n, SHAPE[3], dtype=dtype, device=device)
        mask = torch.zeros(1, 1, n, SHAPE[2], dtype=dtype, device=device)

        def attend(q: torch.Tensor = q, mask: torch.Tensor = mask) -> None:
            scaled_dot_product_attention(q, keys, keys, mask)

        with sdpa_kernel([kernel], set_priority=True):
            begin = clock_of(device)
            attend()
            first = clock_of(device) - begin
            found.append(Timed(first, best_of(attend, device)))
    return found[1:]


def measured_kernel(device: torch.device) -> str:
    """`faster` of what runs here; torch before 2.6 cannot order kernels, and chooses itself."""
    times: dict[str, list[Timed]] = {}
    for name, order in KERNELS.items():
        with suppress(RuntimeError, TypeError):
            times[name] = timed(order[0], device)
    return faster(times)


@cache
def attention_kernel(device: torch.device) -> str:
    """The name of the kernel that runs use on a device, of KERNELS or DEFAULT."""
    if device.type != "cuda":
        return DEFAULT
    return tuned("attention", device, lambda: measured_kernel(device))


def one_attention_kernel(device: torch.device) -> AbstractContextManager[object]:
    """Inside the block, attention with a mask is computed by `attention_kernel`."""
    order = KERNELS.get(attention_kernel(device))
    return sdpa_kernel(list(order), set_priority=True) if order else nullcontext()
