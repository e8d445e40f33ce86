"""How much memory a device has free, in bytes. Knows no model."""

from __future__ import annotations

from pathlib import Path

import torch


def free_bytes(device: torch.device) -> int | None:
    """Free memory of a device in bytes, or None if unknown."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "xpu":
        return torch.xpu.mem_get_info(device)[0]
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory()
    return free_main_memory()


def free_main_memory() -> int | None:
    """Free main memory, from psutil if it is installed, else from Linux."""
    try:
        import psutil
    except ImportError:
        return free_linux_memory()
    return psutil.virtual_memory().available


def free_linux_memory(path: Path = Path("/proc/meminfo")) -> int | None:
    try:
        lines = dict(line.split(":") for line in path.read_text(encoding="ascii").splitlines())
        return int(lines["MemAvailable"].removesuffix("kB")) * 1024
    except (OSError, KeyError, ValueError):
        return None
