"""How a backbone's weights are stored: the dtype of its layers, and the bytes of a tensor."""

from __future__ import annotations

import torch

from ..model.products import INTEGERS, int8_kernel, parts_of
from .base import Backbone

SHORT_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


def stored_dtype(backbone: Backbone) -> str:
    """Name the dtype that layers are stored in; the `dtype` of quantised tensors is another."""
    if backbone.in_int8:
        return "int8"
    weight = backbone.decoder.layers[0].get_parameter("qkv")
    each = stored_bytes(weight) / weight.numel()
    if each >= 1.5:
        return SHORT_NAMES[backbone.dtype]
    return "int4" if each < 0.75 else "fp8"


def int8_kernel_of(backbone: Backbone) -> str:
    """What multiplies int8 matrices on the backbone's device; pictures by other kernels than
    INTEGERS differ in details from those by it.
    """
    in_halves = backbone.in_int8 and backbone.dtype != torch.float32
    return int8_kernel(backbone.device) if in_halves else INTEGERS


def stored_bytes(weight: torch.Tensor) -> int:
    """Bytes of a tensor; of a quantised tensor, those of all its parts."""
    return sum(part.numel() * part.element_size() for part in parts_of(weight))
