"""The version of NVIDIA's driver, from the library that comes with it. Without torch."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
LENGTH = 96  # bytes; NVML's own limit is 80


@cache
def driver_version() -> str:
    """Such as "570.86.10"; empty without an NVIDIA driver."""
    try:
        nvml = ctypes.CDLL(LIBRARY)
        text = ctypes.create_string_buffer(LENGTH)
        if nvml.nvmlInit_v2() or nvml.nvmlSystemGetDriverVersion(text, LENGTH):
            return ""
        nvml.nvmlShutdown()
        return text.value.decode("ascii", "replace")
    except (OSError, AttributeError):
        return ""
