"""Running out of memory: detect it, and free what is unused. Knows no host."""

from __future__ import annotations

import gc

import torch

from ..backbones.sessions import release_all

TEXTS = ("out of memory", "not enough memory", "can't allocate memory")
CUDA_CODE = 2  # cudaErrorMemoryAllocation, for errors whose text does not say it


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on any device, including those without an exception type for it."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and (
        getattr(error, "error_code", None) == CUDA_CODE
        or any(text in str(error).lower() for text in TEXTS))


def empty_caches() -> None:
    """Free unreferenced memory on every device, and what backbones keep for the next run."""
    release_all()
    gc.collect()
    for name, present in (("cuda", torch.cuda), ("mps", torch.backends.mps), ("xpu", torch.xpu)):
        if present.is_available():
            getattr(torch, name).empty_cache()
