"""Which arithmetic is fast on a device, as PyTorch reports it, and how weights should be stored.

Knows no backbone.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import torch

BF16_UNITS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")  # x86, then ARM
ASKED = {"avx512_bf16": "_is_avx512_bf16_supported", "amx_bf16": "_is_amx_tile_supported"}


def processor() -> str:
    """The processor's name, or its architecture where the system does not report a name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(s.split(":", 1)[1].strip() for s in lines if s.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def capabilities() -> Mapping[str, object]:
    """CPU features by PyTorch's names; older versions of PyTorch report few or none."""
    if (ask := getattr(torch.cpu, "get_capabilities", None)) is not None:
        return ask()
    return {name: getattr(torch.cpu, query, bool)() for name, query in ASKED.items()}


def cpu_has_bf16() -> bool:
    """Whether the CPU computes in bf16; other CPUs convert every matrix in every pass."""
    features = capabilities()
    return any(features.get(name) for name in BF16_UNITS)


def has_bf16(device: torch.device) -> bool:
    """Whether the device computes in bf16; older cards and CPUs only emulate it."""
    if device.type == "cuda":
        with torch.cuda.device(device):
            return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        return cpu_has_bf16()
    try:
        ones = torch.ones(2, 2, dtype=torch.bfloat16, device=device)
        return (ones @ ones).device == ones.device
    except (RuntimeError, TypeError, NotImplementedError):
        return False


def prefers_column_major(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether products with few rows are faster if matrices are stored column by column.

    True for fp32 on a CPU. In bf16 this gains nothing on a CPU and is slower with large matrices
    (lab/benchmarks/speed.py --storage). On a graphics card it makes no difference.
    """
    return device.type == "cpu" and dtype == torch.float32
