"""What a processor computes fast, asked of PyTorch; the rules that follow from it for weights.

Knows no backbone.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

BF16_UNITS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")  # of x86, and of ARM
ASKED = {"avx512_bf16": "_is_avx512_bf16_supported", "amx_bf16": "_is_amx_tile_supported"}


def capabilities() -> Mapping[str, object]:
    """What the CPU has, under PyTorch's names; older ones answer about little, or nothing."""
    if (ask := getattr(torch.cpu, "get_capabilities", None)) is not None:
        return ask()
    return {name: getattr(torch.cpu, asked, bool)() for name, asked in ASKED.items()}


def cpu_has_bf16() -> bool:
    """Whether the CPU multiplies in bf16 itself: others convert every matrix at every pass."""
    found = capabilities()
    return any(found.get(name) for name in BF16_UNITS)


def cpu_has_amx() -> bool:
    """Whether the CPU has units for whole tiles of bf16, which pay in large products too."""
    found = capabilities()
    return bool(found.get("amx_bf16") or found.get("amx_tile"))


def has_bf16(device: torch.device) -> bool:
    """Whether the device multiplies in bf16 itself; old cards and CPUs only pretend to."""
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


def likes_columns(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether a few rows are multiplied faster by matrices that lie column by column.

    A CPU's fp32 products are; its bf16 products are not, and slower where the matrices are large
    (benchmarks/speed.py --storage). A card does not care.
    """
    return device.type == "cpu" and dtype == torch.float32
