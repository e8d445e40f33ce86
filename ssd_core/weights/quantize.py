"""The decoder's matrices in int8, fp8 or int4.

int8 is this project's own (model/products.py): activations are quantised too, so that products are
of integers, which CPUs with VNNI and cards compute several times as fast as floating point. It
includes the image head and the draft heads. fp8 and int4 are torchao's. fp8 multiplies in fp8 with
a scale per matrix row and per cell. int4 saves memory; its kernel is fast for single cells only,
not for image rows (lab/benchmarks/low_precision.py). Embeddings, norms and the picture codec keep
their dtype. Tested with torchao 0.18. Knows nothing about files.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from ..backbones.base import Backbone
from ..errors import SSDError, first_line
from ..model.products import Int8Matrix, Matrix, put
from ..model.transformer import Decoder

KINDS = ("fp8", "int8", "int4")
MATRICES = ("qkv", "out", "gate_up", "down")  # names of a layer's matrices
FP8_CAPABILITY, INT4_CAPABILITY = (8, 9), (8, 0)
GROUPS = (128, 64, 32)  # int4 weights per scale: the largest that divides a row
IMAGE_HEAD = ("projection", "head")  # Janus-Pro has both, others the last one
ABOUT = ("int8 multiplies integers, the fastest on CPUs with VNNI; fp8 and int4 need torchao; fp8 "
         "needs an RTX 40 card or newer, L40 or H100; int4 saves memory, not time")
Become = Callable[[torch.Tensor], Matrix]


def quantiser(kind: str, device: torch.device) -> Become:
    """A function that quantises a matrix on `device` to one of KINDS.

    Raises SSDError if torchao is missing or does not support the device. The returned function
    raises SSDError for a matrix that cannot be quantised.
    """
    if kind == "int8":
        return Int8Matrix.of
    try:
        import torchao.quantization as torchao
    except ImportError as error:
        raise SSDError(f"dtype {kind} needs torchao: pip install torchao") from error
    require_device(kind, device)

    def transform(weight: torch.Tensor) -> torch.Tensor:
        rows, columns = weight.shape
        layer = nn.Linear(columns, rows, bias=False, device="meta")
        layer.weight = nn.Parameter(weight.contiguous(), requires_grad=False)
        try:
            torchao.quantize_(layer, config(kind, weight))
        except (ImportError, AttributeError, TypeError, ValueError, RuntimeError,
                AssertionError) as error:
            raise SSDError(f"dtype {kind} does not work here ({first_line(error)}): choose bf16, "
                           "or update torchao and torch") from error
        if type(layer.weight) is nn.Parameter:
            raise SSDError(f"dtype {kind}: torchao left a matrix of {tuple(weight.shape)} as it "
                           "was: choose bf16")
        return layer.weight.detach()

    return transform


def quantised_on(device: torch.device, transform: Become) -> Become:
    """Quantise each matrix on this device, whose kernels determine the layout, and put the result
    where the matrix was.
    """
    return lambda weight: transform(weight.to(device)).to(weight.device)


def require_device(kind: str, device: torch.device) -> None:
    """Raise SSDError if the device has no kernel for this kind."""
    if kind == "fp8":
        require_fp8(device)
    elif kind == "int4":
        require_int4(device)


def require_fp8(device: torch.device) -> None:
    if device.type != "cuda" or torch.version.hip is not None:
        raise SSDError(f"dtype fp8 runs on NVIDIA cards, not on {device}: choose bf16, or int8 to "
                       "save memory")
    if torch.cuda.get_device_capability(device) < FP8_CAPABILITY:
        raise SSDError(f"dtype fp8 needs a card of compute capability 8.9 or more, {device} has "
                       "less: choose bf16, or int8 to save memory")


def require_int4(device: torch.device) -> None:
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < INT4_CAPABILITY:
        raise SSDError(f"dtype int4 needs a card of compute capability 8.0 or more, {device} has "
                       "less: choose int8")
    if device.type not in ("cuda", "cpu", "meta"):
        raise SSDError(f"dtype int4 runs on cuda and cpu, not on {device}: choose int8")


def config(kind: str, weight: torch.Tensor) -> object:
    """torchao's configuration for one matrix."""
    import torchao.quantization as torchao
    if kind == "fp8":  # a scale per row: a cell's numbers do not depend on other cells of a pass
        return torchao.Float8DynamicActivationFloat8WeightConfig(
            granularity=torchao.PerRow(), set_inductor_config=False)
    group = next((size for size in GROUPS if weight.shape[1] % size == 0), None)
    if group is None:
        raise SSDError(f"dtype int4: rows of {weight.shape[1]} numbers do not divide into groups "
                       f"of {GROUPS[-1]}: choose int8")
    if weight.device.type == "cuda":
        return torchao.Int4WeightOnlyConfig(group, int4_packing_format="tile_packed_to_4d")
    from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
    return PrototypeInt4WeightOnlyConfig(group)


def is_quantised(weight: Matrix) -> bool:
    return type(weight) not in (torch.Tensor, nn.Parameter)


def quantise(decoder: Decoder, transform: Become) -> None:
    """Quantise the matrices that are not quantised yet, one at a time."""
    for layer in decoder.layers:
        for name in MATRICES:
            quantise_matrix(layer, name, transform)


def quantise_image_head(backbone: Backbone, transform: Become = Int8Matrix.of) -> None:
    """Convert the matrices between hidden state and logits to int8."""
    for name in IMAGE_HEAD:
        if hasattr(backbone, name):
            quantise_matrix(backbone, name, transform)


def unquantise_image_head(backbone: Backbone) -> None:
    """Convert them back to floating point: rounding to integers has no gradient."""
    for name in IMAGE_HEAD:
        if isinstance(matrix := getattr(backbone, name, None), Int8Matrix):
            put(backbone, name, matrix.dequantised().to(backbone.dtype))


def quantise_matrix(module: nn.Module, name: str, transform: Become) -> None:
    """Quantise a matrix of a module, if it is not quantised yet."""
    if not is_quantised(weight := getattr(module, name)):
        put(module, name, transform(weight.data))
