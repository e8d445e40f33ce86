"""Weight-only int8 and int4 quantisation of the decoder's matrices, by torchao.

A quantised matrix is still a parameter that F.linear accepts. Embeddings, norms, the image head and
the picture codec keep their dtype. Tested with torchao 0.18. Knows nothing about files.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from ..errors import SSDError
from ..model.transformer import Decoder

KINDS = ("int8", "int4")
MATRICES = ("qkv", "out", "gate_up", "down")  # names of a layer's matrices
GROUPS = (128, 64, 32)  # int4 weights per scale: the largest that divides a row
Become = Callable[[torch.Tensor], torch.Tensor]


def quantiser(kind: str, device: torch.device) -> Become:
    """A function that quantises a matrix on `device` to int8 or int4.

    Raises SSDError if torchao is missing or does not support the device. The returned function
    raises SSDError for a matrix that cannot be quantised.
    """
    try:
        import torchao.quantization as torchao
    except ImportError as error:
        raise SSDError(f"dtype {kind} needs torchao: pip install torchao") from error
    if kind == "int4":
        require_int4(device)

    def become(weight: torch.Tensor) -> torch.Tensor:
        rows, columns = weight.shape
        holder = nn.Linear(columns, rows, bias=False, device="meta")
        holder.weight = nn.Parameter(weight.contiguous(), requires_grad=False)
        try:
            torchao.quantize_(holder, config(kind, weight))
        except (ImportError, AttributeError, TypeError, ValueError, RuntimeError,
                AssertionError) as error:
            raise SSDError(f"dtype {kind} does not work here ({first_line(error)}): choose bf16, "
                           "or update torchao and torch") from error
        if type(holder.weight) is nn.Parameter:
            raise SSDError(f"dtype {kind}: torchao left a matrix of {tuple(weight.shape)} as it "
                           "was: choose bf16")
        return holder.weight.detach()

    return become


def require_int4(device: torch.device) -> None:
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 0):
        raise SSDError(f"dtype int4 needs a card of compute capability 8.0 or more, {device} has "
                       "less: choose int8")
    if device.type not in ("cuda", "cpu", "meta"):
        raise SSDError(f"dtype int4 runs on cuda and cpu, not on {device}: choose int8")


def config(kind: str, weight: torch.Tensor) -> object:
    """torchao's configuration for one matrix."""
    import torchao.quantization as torchao
    if kind == "int8":
        return torchao.Int8WeightOnlyConfig()
    group = next((size for size in GROUPS if weight.shape[1] % size == 0), None)
    if group is None:
        raise SSDError(f"dtype int4: rows of {weight.shape[1]} numbers do not divide into groups "
                       f"of {GROUPS[-1]}: choose int8")
    if weight.device.type == "cuda":
        return torchao.Int4WeightOnlyConfig(group, int4_packing_format="tile_packed_to_4d")
    from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
    return PrototypeInt4WeightOnlyConfig(group)


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def is_quantised(weight: torch.Tensor) -> bool:
    return type(weight) not in (torch.Tensor, nn.Parameter)


def quantise(decoder: Decoder, become: Become) -> None:
    """Quantise the matrices that are not quantised yet, one at a time."""
    for layer in decoder.layers:
        for name in MATRICES:
            if not is_quantised(weight := getattr(layer, name)):
                setattr(layer, name, nn.Parameter(become(weight.data), requires_grad=False))
