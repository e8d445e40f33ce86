"""The text of a bug report: versions, device, attention, found models, last error.

Knows no host; each host passes what it knows.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable

import torch

from .. import openmp
from ..engine.graphs import VARIABLE, graphs_off_reason
from ..engine.threads import free_now
from ..errors import SSDError
from ..machine_faults import found_on
from ..model.processor import has_bf16
from ..weights.eight_bits import about, about_int8
from ..weights.find import is_bundled
from ..weights.load import pick_device
from ..weights.registry import LocalModel, ModelRegistry, named, places

COMMAND = "ssd selftest"
WAITS = {openmp.OWN: f"{openmp.VARIABLE}={{policy}}, which you set",
         openmp.SPINNING: "spinning, which is the fastest while the cores are free",
         openmp.SLEEPING: "sleeping, because spinning was slower here than a single thread"}


def report(models: Iterable[str], last_error: str | None = None, host: str = "",
           device: str | None = None, memory: tuple[int, int] | None = None,
           place: torch.device | None = None) -> str:
    """Lines about this machine, then `models` (lines of `registry`), then the last error.

    host: name and version of the host program. device: its name. place: the device itself; None:
    the best one. memory: the device's (free, total) bytes, None if the host does not
    know them.
    """
    place = place or pick_device("auto")
    return "\n".join([*versions(host), device_line(device or device_name(), memory),
                      attention_line(place), graphs_line(place), about(place), about_int8(place),
                      *selftest_lines(place),
                      *threads_line(), *models,
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
    """The number of threads that a run on the CPU takes now, how they wait for work, and why."""
    most = torch.get_num_threads()
    if torch.cuda.is_available() or most == 1:
        return []
    now = free_now(most)
    reason = ", because other programs need the others' cores" if now < most else ""
    return [f"threads: a run now takes {now} of {most}{reason}; how they wait: "
            f"{WAITS[openmp.WAITING].format(policy=os.environ.get(openmp.VARIABLE))}"]


def attention_line(place: torch.device) -> str:
    """The kernels of PyTorch's attention that a Janus-Pro-7B could use on this device."""
    if place.type != "cuda":
        return f"attention: torch scaled_dot_product_attention, {place.type}'s own kernel"
    rows, heads, cells, width, slots = 2, 32, 24, 128, 640
    dtype = torch.bfloat16 if has_bf16(place) else torch.float16
    q, k = (torch.empty(rows, heads, n, width, dtype=dtype, device=place) for n in (cells, slots))
    mask = torch.zeros(rows, 1, cells, slots, dtype=dtype, device=place)
    return (f"attention: torch scaled_dot_product_attention; a row of 24 cells in {str(dtype)[6:]} "
            f"can use {usable_kernels(q, k, mask)}, a prompt {usable_kernels(q, q, None)}")


def usable_kernels(q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor | None) -> str:
    """Names of the kernels that support this attention; PyTorch prefers a fused one."""
    cuda = torch.backends.cuda
    params = cuda.SDPAParams(q, k, k, mask, 0.0, mask is None, False)
    takes = {"flash": cuda.can_use_flash_attention, "cuDNN": cuda.can_use_cudnn_attention,
             "memory-efficient": cuda.can_use_efficient_attention}
    return " or ".join(name for name, can in takes.items() if can(params)) or "math only, slow"


def graphs_line(place: torch.device) -> str:
    """Whether passes on this device are replayed as CUDA graphs; if not, why."""
    try:
        reason = graphs_off_reason(place)
    except SSDError as error:
        return f"graphs: {error}"
    return f"graphs: none, {reason}" if reason else (
        f"graphs: forward passes are captured once and replayed; {VARIABLE}=off switches that off")


def selftest_lines(place: torch.device) -> list[str]:
    """What the self-test found on this device, and what is switched off because of it."""
    found = found_on(place)
    off = [f"switched off: {path} ({reason})" for path, reason in found.faults.items()]
    if found.summary:
        return [f"self-test: {found.summary}", *off]
    return [f"self-test: not done yet on this device with these versions; {COMMAND} does it", *off]


def registry(models: ModelRegistry) -> list[str]:
    """The folders that are searched for backbones and draft heads, and their contents."""
    return [f"backbones in {places(models.backbone_folders)}:",
            *(f"  {backbone_line(backbone)}" for backbone in models.backbones().values()),
            *(f"  not read: {backbone.name} ({backbone.why_not})" for backbone in models.unread()),
            f"draft heads in {places(models.heads_folders)}:",
            *(f"  {label}" for label in models.heads() or ["none; postcard's are bundled"]),
            *(f"  not read: {named(path)} (no draft heads of this version)"
              for path in models.unread_heads())]


def backbone_line(backbone: LocalModel) -> str:
    """A backbone's name, whether it is bundled, and whether it has draft heads."""
    bundled = " (bundled)" if is_bundled(backbone.path) else ""
    return f"{backbone.name}{bundled}{', with draft heads' if backbone.heads else ''}"
