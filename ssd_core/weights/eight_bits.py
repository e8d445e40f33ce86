"""dtype `8bit`: int8 or fp8, whichever multiplies image rows faster on this device.

Devices differ too much to know it beforehand: int8 rounds activations by separate operations, fp8
needs a recent card and torchao.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial

import torch

from ..errors import SSDError
from ..machine_faults import fault_of
from ..measured import tuned
from ..model.products import INTEGERS, Int8Matrix, Matrix, best_of, int8_kernel, product
from .quantize import quantiser

EITHER = "8bit"
EIGHT_BITS = ("int8", "fp8")
CELLS, WIDTH = 96, 4096  # of the product that is timed: two image rows with guidance, a 7B layer
Times = dict[int, float]  # milliseconds by cells


def fastest(device: torch.device) -> str:
    """The 8-bit dtype to load on this device; measured once on a machine that has both."""
    kinds = offered(device)
    if len(kinds) == 1:
        return kinds[0]

    def fastest() -> str:
        return min(kinds, key=lambda kind: measured(device).get(kind, float("inf")))

    return tuned(f"dtype {EITHER}", device, fastest)


def offered(device: torch.device) -> list[str]:
    """int8, and fp8 if device and installation have it and the self-test did not switch it off."""
    with suppress(SSDError):
        quantiser("fp8", device)
        if not fault_of("dtype fp8", device):
            return list(EIGHT_BITS)
    return ["int8"]


@cache
def measured(device: torch.device) -> Mapping[str, float]:
    """Milliseconds of a product of CELLS cells, by dtype; one that fails is left out."""
    found = {}
    with torch.inference_mode(False), torch.no_grad():
        weight = numbers(WIDTH, WIDTH, device, torch.bfloat16)
        for kind in EIGHT_BITS:
            with suppress(SSDError, RuntimeError):
                quantised = quantiser(kind, device)(weight)
                found[kind] = timed([quantised], (CELLS,), 1, torch.bfloat16)[CELLS]
    return found


def about(device: torch.device) -> str:
    """Which dtype `8bit` loads here, and why; a line for reports."""
    kind = fastest(device)
    if len(offered(device)) == 1:
        return f"dtype {EITHER}: {kind}, as fp8 does not work here"
    times = ", ".join(f"{name} {ms:.3f} ms" for name, ms in measured(device).items())
    return (f"dtype {EITHER}: {kind}, measured by products of {CELLS} cells and {WIDTH} x {WIDTH} "
            f"weights ({times})")


def about_int8(device: torch.device) -> str:
    """How int8 matrices are multiplied here, and what that means for pictures; for reports."""
    if (kernel := int8_kernel(device)) == INTEGERS:
        return "int8: integer products, the same bits however many tokens a pass has"
    return (f"int8: by the kernel {kernel} in bf16 and fp16, measured to be the fastest here; "
            "pictures differ in details from those of products of integers")


def numbers(rows: int, columns: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Different numbers between -1 and 1, without the caller's random state."""
    return torch.linspace(-1, 1, rows * columns, device=device).view(rows, columns).to(dtype)


@torch.inference_mode()
def timed(weights: Sequence[Matrix], widths: tuple[int, ...], branches: int,
          dtype: torch.dtype) -> Times:
    """Milliseconds of the products with all weights, by cells of a pass."""
    device = weights[0].values.device if isinstance(weights[0], Int8Matrix) else weights[0].device
    found = {}
    for cells in widths:
        inputs = [numbers(branches * cells, weight.shape[1], device, dtype) for weight in weights]
        found[cells] = 1000 * sum(best_of(partial(product, x, weight), device)
                                  for x, weight in zip(inputs, weights, strict=True))
    return found
