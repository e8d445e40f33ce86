"""How much the width of a pass changes its logits, with each of PyTorch's attention kernels."""

from __future__ import annotations

from contextlib import nullcontext

from torch.nn.attention import SDPBackend, sdpa_kernel

from ..backbones.base import Backbone
from ..backbones.invariance import rounding

CHOSEN = "as PyTorch chooses"
KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION,
           "memory-efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}


def rounding_by_kernel(backbone: Backbone) -> dict[str, float | None]:
    """Root-mean-square difference of logits between passes of different width, by kernel.

    0: a cell has the same bits in all of them. None: the kernel does not take these passes. A
    device other than a card has one kernel.
    """
    on_card = backbone.device.type == "cuda"
    return {name: rounding_with(backbone, kernel)
            for name, kernel in ({CHOSEN: None, **KERNELS} if on_card else {CHOSEN: None}).items()}


def rounding_with(backbone: Backbone, kernel: SDPBackend | None) -> float | None:
    try:
        with nullcontext() if kernel is None else sdpa_kernel(kernel):
            return rounding(backbone)
    except RuntimeError:  # no available kernel
        return None
