"""The text of a bug report: versions, device, attention, found models, last error.

Knows no host; each host passes what it found.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable

import torch

from .. import openmp
from ..files import ASSETS
from .shelf import Found, Shelf, named, places


def report(found: Iterable[str], last_error: str | None = None, host: str = "",
           device: str | None = None, memory: tuple[int, int] | None = None) -> str:
    """Lines about this machine, then `found`, then the last error.

    host: name and version of the host program. device: its name, by default the best device.
    memory: the device's (free, total) bytes, None if the host does not know them.
    """
    return "\n".join([*versions(host), device_line(device or device_name(), memory),
                      attention_line(), *threads_line(), *found,
                      f"last error: {last_error or 'none since the start'}"])


def versions(host: str) -> list[str]:
    from .. import __version__

    parts = [f"ssd-decoding {__version__}", host, f"torch {torch.__version__}",
             f"Python {platform.python_version()}", f"{platform.system()} {platform.machine()}"]
    return [", ".join(filter(None, parts))]


def device_line(name: str, memory: tuple[int, int] | None) -> str:
    if memory is None:
        return f"device: {name}"
    free, total = (size / 2**30 for size in memory)
    return f"device: {name}, {free:.1f} GiB free of {total:.1f}"


def device_name() -> str:
    """Name of the graphics card, or the number of CPU threads in use."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"cpu, {torch.get_num_threads()} threads"


def threads_line() -> list[str]:
    """A warning if OpenMP's threads spin on a machine of few cores."""
    few = (os.cpu_count() or 1) <= openmp.SMALL
    if torch.cuda.is_available() or torch.get_num_threads() == 1 or openmp.SLEEPING or not few:
        return []
    return ["threads: they spin while they wait; if other programs use the processor, start with "
            f"{openmp.VARIABLE}=passive"]


def attention_line() -> str:
    flash, efficient = torch.backends.cuda.flash_sdp_enabled(), (
        torch.backends.cuda.mem_efficient_sdp_enabled())
    return (f"attention: torch scaled_dot_product_attention (flash {flash}, memory-efficient "
            f"{efficient} where the device has them)")


def shelf(there: Shelf) -> list[str]:
    """Where backbones and draft heads were searched, and what was found."""
    return [f"backbones in {places(there.backbone_folders)}:",
            *(f"  {backbone_line(found)}" for found in there.backbones().values()),
            *(f"  not read: {found.name} ({found.why_not})" for found in there.unread()),
            f"draft heads in {places(there.heads_folders)}:",
            *(f"  {label}" for label in there.heads() or ["none; postcard's are bundled"]),
            *(f"  not read: {named(path)} (no draft heads of this version)"
              for path in there.unread_heads())]


def backbone_line(found: Found) -> str:
    """A backbone's name, whether it is bundled, and whether it has draft heads."""
    bundled = " (bundled)" if found.path.is_relative_to(ASSETS) else ""
    return f"{found.name}{bundled}{', with draft heads' if found.heads else ''}"
