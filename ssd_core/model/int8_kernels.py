"""Kernels that multiply activations in half precision with int8 matrices, where they are installed.

Each is a function of x [m, in] in bf16 or fp16, values [out, in] int8 and scales [out] fp32, and
returns x @ (values * scales[:, None]).T [m, out] in x's dtype. On cards they take fewer launches
than products of integers by PyTorch's operations; none gives the same bits as those.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import torch

Multiply = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def by_triton(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Activations are not rounded: the weights are converted in registers."""
    from .triton_int8 import multiply
    return multiply(x, values, scales)


def by_comfy_kitchen(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """ComfyUI's kernels: activations are rounded to 8 bits by row, too."""
    import comfy_kitchen
    return comfy_kitchen.int8_linear(x, values, scales, out_dtype=x.dtype)


def by_pytorch(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Activations are not rounded. On CPUs it ends the process with some shapes (torch 2.13)."""
    return torch._weight_int8pack_mm(x, values, scales)


KERNELS: dict[str, Multiply] = {
    "triton": by_triton, "comfy_kitchen": by_comfy_kitchen, "weight_int8pack_mm": by_pytorch}
WRONG = 0.03  # of a row's length; rounding activations to 8 bits makes about 0.01


def importable(device: torch.device) -> dict[str, Multiply]:
    """The kernels to try on a device: on a CPU none, where products of integers keep their bits."""
    if device.type != "cuda":
        return {}
    return {name: multiply for name, multiply in KERNELS.items()
            if name == "weight_int8pack_mm" or find_spec(name) is not None}


def is_right(multiply: Multiply, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether a kernel gives about what fp32 gives: for one row and many, long and short ones, of
    different size or zeros.
    """
    generator = torch.Generator().manual_seed(0)
    for rows, inner, out in ((1, 64, 48), (2, 1040, 96), (33, 4096, 64)):
        x, values, size, scales = (
            torch.randn(rows, inner, generator=generator),
            torch.randint(-127, 128, (out, inner), generator=generator, dtype=torch.int8),
            torch.rand(rows, 1, generator=generator), torch.rand(out, generator=generator) + 0.1)
        x[rows // 2 + 1:] = 0
        x = (x * (size + 0.1)).to(dtype)
        exact = x.float() @ (values * scales[:, None]).T
        y = multiply(x.to(device), values.to(device), scales.to(device))
        off = (y.float().cpu() - exact).norm(dim=1)
        if y.dtype != dtype or not bool((off <= WRONG * exact.norm(dim=1)).all()):
            return False
    return True
