"""Paths that failed on this machine, and why; each stays switched off until something is updated.

A path is a way to compute that works on some machines only, such as "graphs in bf16" or "dtype
fp8". Failures are found by the self-test, or by a run whose graph replayed a wrong pass. They are
kept in the user's cache (kept_files.py), for each combination of device, driver, torch and program.
After an update the combination is another one, which has no failures until they are found again.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import cache

import torch

from .kept_entries import KeptEntries
from .version import version

FILE = "selftest.json"
NONE, QUICK, FULL = "no", "quick", "full"
LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
LENGTH = 96  # bytes; NVML's own limit is 80


@dataclass(frozen=True)
class Found:
    """What is known of one combination.

    tested: which self-test it has passed through; NONE if only runs found something. faults: the
    reason by path. summary: one line about the self-test.
    """

    tested: str = NONE
    faults: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""


_retrying: ContextVar[bool] = ContextVar("retrying", default=False)


def combination(device: torch.device) -> str:
    """Device, driver, torch and program version, which together decide what works."""
    if device.type == "cuda" and torch.cuda.is_available():
        name = f"{torch.cuda.get_device_name(device)}, driver {driver_version() or 'unknown'}"
    else:
        name = f"{device.type} {platform.machine()}"
    return f"{name}, torch {torch.__version__}, ssd-decoding {version()}"


def found_on(device: torch.device) -> Found:
    """What is known of the present combination; nothing if there is no readable file."""
    entries = _kept.read()
    return entries.get(combination(device), Found()) if entries else Found()


def fault_of(path: str, device: torch.device) -> str:
    """Why a path is switched off on this machine; empty if it is not."""
    if _retrying.get():
        return ""
    return found_on(device).faults.get(path, "")


def note_fault(path: str, reason: str, device: torch.device) -> None:
    """Switch a path off until something is updated or a self-test finds that it works."""
    known = found_on(device)
    note(replace(known, faults={**known.faults, path: reason}), device)


def note(found: Found, device: torch.device) -> None:
    """Store what is known of the present combination in place of what was known before."""
    _kept.put(combination(device), found)


@contextmanager
def all_paths() -> Iterator[None]:
    """Inside the block no path is switched off, so that a self-test can try it again."""
    token = _retrying.set(True)
    try:
        yield
    finally:
        _retrying.reset(token)


def parsed(raw: Mapping) -> Found:
    """A stored entry; raises TypeError or AttributeError for impossible values."""
    faults = {str(path): str(reason) for path, reason in raw["faults"].items()}
    return Found(str(raw["tested"]), faults, str(raw["summary"]))


_kept = KeptEntries(FILE, parsed, asdict)


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
