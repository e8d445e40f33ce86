"""Products of activations with weight matrices, in floating point or in 8-bit integers (W8A8).

`Int8Matrix` quantises a matrix by row (one scale per output channel) and each cell's activations by
their own largest value, so that a cell's numbers never depend on the other cells of a pass. Sums of
integers are exact, so a cell has the same bits at any width of the pass. torchao 0.18 has the same
scheme, but takes 9 to 48 times as long in eager mode, because it multiplies in fp32
(lab/benchmarks/low_precision.py measures both). On a card, activations in half precision may be
multiplied by another kernel (int8_kernels.py) that is faster there: `int8_kernel` says by which.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from math import inf

import torch
import torch.nn.functional as F
from torch import nn

from ..machine_faults import fault_of
from ..measured import tuned
from .int8_kernels import Multiply, importable, is_right
from .processor import has_bf16

LARGEST = 127  # of an 8-bit integer, symmetric about 0
TINY, LEAST = 1e-34, 1e-37  # far below all numbers; TINY keeps zeros from being divided by zero
EXACT = 1040  # products of two such integers whose sum stays below 2^24, exact in fp32
CARD_ROWS, CARD_STEP = 32, 8  # CUDA's kernel takes more than 16 rows, and multiples of 8 numbers
KERNEL = "kernel"
TIMED = {"cpu": (32, 512), "cuda": (96, 4096)}  # cells and width of the product that is timed
INTEGERS = "integers"  # both factors are rounded to 8 bits, by PyTorch's operations
IN_A_ROW = 10  # products between two looks at a card's clock, whose launches take time too
STORED_AS_FP32 = 1 << 20  # without a kernel, smaller matrices are stored as integers in fp32
QUANTISED_AT_ONCE = 1 << 22  # numbers, so that a large matrix needs little memory besides its own
SCALAR = torch.tensor(TINY, device="cpu")


class Int8Matrix(nn.Module):
    """A frozen matrix [out, in] as int8 `values` and fp32 `scales` [out].

    On a device without an integer kernel that is correct and fast, the same integers are multiplied
    in fp32, in pieces short enough for the sums to be exact: the results are the same bits.
    """

    def __init__(self, values: torch.Tensor, scales: torch.Tensor) -> None:
        super().__init__()
        self.shape = values.shape
        self._choose(values)
        if values.numel() <= STORED_AS_FP32 and not self.by_kernel and self.in_halves is None:
            values = values.float()
        self.values = nn.Parameter(values, requires_grad=False)
        self.scales = nn.Parameter(scales, requires_grad=False)

    def _apply(self, fn: Callable, recurse: bool = True) -> Int8Matrix:
        """Move or convert; another device has other kernels."""
        super()._apply(fn, recurse)
        if not self.values.is_floating_point():
            self._choose(self.values)
        return self

    def _choose(self, values: torch.Tensor) -> None:
        """Set how integers, and activations in half precision, are multiplied on this device."""
        suits, device = suits_kernel(values), values.device
        self.by_kernel = suits and has_kernel(device)
        self.in_halves = importable(device).get(int8_kernel(device)) if suits else None

    @classmethod
    def of(cls, weight: torch.Tensor) -> Int8Matrix:
        """Quantise a floating-point matrix [out, in], some rows at a time."""
        values = torch.empty(weight.shape, dtype=torch.int8, device=weight.device)
        scales = torch.empty(len(weight), dtype=torch.float32, device=weight.device)
        step = max(1, QUANTISED_AT_ONCE // weight.shape[1])
        for start in range(0, len(weight), step):
            part = slice(start, start + step)
            values[part], scale = quantised(weight.detach()[part])
            scales[part] = scale[:, 0]
        return cls(values, scales)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x @ weight.T for x [..., in]."""
        return self.of_rows(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], self.shape[0])

    def dequantised(self) -> torch.Tensor:
        """The matrix in fp32, up to the rounding of the quantisation."""
        return self.values * self.scales[:, None]

    def of_rows(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """residual + x @ weight.T for x [m, in]; the result has the residual's or x's dtype."""
        if self.in_halves is None or x.dtype == torch.float32:
            return by_integers(x, self.values, self.scales, self.by_kernel, residual)
        y = self.in_halves(x, self.values, self.scales)
        return y if residual is None else in_dtype(residual + y, residual.dtype)


Matrix = torch.Tensor | Int8Matrix


def parts_of(weight: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors that a quantised tensor consists of, or the tensor itself."""
    if not hasattr(weight, "__tensor_flatten__"):
        return [weight]
    names = weight.__tensor_flatten__()[0]
    return [part for name in names for part in parts_of(getattr(weight, name))]


def put(module: nn.Module, name: str, value: Matrix) -> None:
    """Replace the matrix or parameter `name` of a module with a frozen one of either kind."""
    if name in module._parameters or name in module._modules:
        delattr(module, name)
    setattr(module, name, value if isinstance(value, nn.Module)
            else nn.Parameter(value, requires_grad=False))


def product(x: torch.Tensor, weight: Matrix, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x @ weight.T + bias for x [..., in] and a matrix [out, in] of either kind."""
    if not isinstance(weight, Int8Matrix):
        return F.linear(x, weight, bias)
    y = weight(x)
    return y if bias is None else y + bias


def added(residual: torch.Tensor, x: torch.Tensor, weight: Matrix) -> torch.Tensor:
    """residual [m, out] + x [m, in] @ weight.T, for a matrix of either kind."""
    if isinstance(weight, Int8Matrix):
        return weight.of_rows(x, residual)
    if (type(weight) is nn.Parameter and not torch.is_grad_enabled()
            and residual.dtype == x.dtype):  # autocast would round the residual
        return torch.addmm(residual, x, weight.t())
    # torchao's tensors know F.linear only
    return residual + F.linear(x, weight)


def by_integers(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor, by_kernel: bool,
                residual: torch.Tensor | None = None) -> torch.Tensor:
    """`Int8Matrix.of_rows` with activations rounded to integers: the same bits on all devices."""
    integers, scale = whole_numbers(x)
    y = (integer_product(integers.to(torch.int8), values) if by_kernel
         else exact_product(integers, values)) * scales
    if residual is None:
        return in_dtype(y.mul_(scale), x.dtype)
    return in_dtype(torch.addcmul(residual, y, scale), residual.dtype)


def quantised(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """rows [m, d] -> int8 [m, d] and the fp32 scale [m, 1] of each row: its largest value / 127."""
    integers, scale = whole_numbers(rows)
    return integers.to(torch.int8), scale


def whole_numbers(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`quantised`, with the integers in fp32; a row of zeros is zeros."""
    rows = in_dtype(rows, torch.float32)
    scale = largest(rows).mul_(1 / LARGEST)
    return rows.div(scale).round_(), scale


def largest(rows: torch.Tensor) -> torch.Tensor:
    """The largest absolute value of each row [m, d] fp32 as [m, 1], or some TINY one instead of 0.

    On a CPU, smooth L1 is both in one operation: |x - TINY| has the bits of |x| above 1e-26. (A
    norm of infinite order takes up to ten times as long as these two steps.)
    """
    if rows.is_cpu:
        return torch.ops.aten.smooth_l1_loss(rows, SCALAR, 0, LEAST).amax(-1, True)
    return rows.abs().amax(-1, True).clamp_(min=TINY)


def in_dtype(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`x.to(dtype)`, without asking PyTorch where nothing is to be done."""
    return x if x.dtype == dtype else x.to(dtype)


def integer_product(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """x [m, in] @ values [out, in].T, both int8 -> int32 [m, out]; pads x for CUDA's kernel."""
    if x.is_cuda and (padding := CARD_ROWS - len(x)) > 0:
        return torch._int_mm(F.pad(x, (0, 0, 0, padding)), values.t())[: len(x)]
    return torch._int_mm(x, values.t())


def exact_product(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """`integer_product` by fp32 products of whole numbers, x [m, in] float32, in exact pieces."""
    parts = zip(x.split(EXACT, dim=1), values.split(EXACT, dim=1), strict=True)
    sums = [F.linear(piece, in_dtype(part, torch.float32)) for piece, part in parts]
    if len(sums) == 1:
        return sums[0]
    return torch.stack([piece.to(torch.int32) for piece in sums]).sum(0)


def suits_kernel(values: torch.Tensor) -> bool:
    """Whether the kernel of the matrix's device takes its shape [out, in]."""
    return values.device.type != "cuda" or not any(size % CARD_STEP for size in values.shape)


def has_kernel(device: torch.device) -> bool:
    """Whether `torch._int_mm` multiplies correctly on a device and faster than fp32 would."""
    return measured_kernel(device) and not fault_of("int8 kernel", device)


@cache
def measured_kernel(device: torch.device) -> bool:
    """`has_kernel` by sums computed now, and by times measured once on this machine: `auto` decides
    by it between two dtypes, whose pictures differ.
    """
    with torch.inference_mode(False), torch.no_grad():
        try:
            return all(sums_agree(device, *sizes) for sizes in ((1, 64, 64), (33, 1048, 128))) \
                and tuned("integers", device, lambda: KERNEL if kernel_is_faster(device)
                          else "fp32") == KERNEL
        except (RuntimeError, NotImplementedError, AttributeError):
            return False


def sums_agree(device: torch.device, rows: int, inner: int, out: int) -> bool:
    """Whether the kernel gives the exact sums of integers as large as they can be."""
    x = (torch.arange(rows * inner, device=device).view(rows, inner) * 37 % 255 - 127).char()
    values = (torch.arange(out * inner, device=device).view(out, inner) * 59 % 255 - 127).char()
    x[0], values[0] = LARGEST, -LARGEST
    exact = exact_product(x.float(), values).to(torch.int32)
    return torch.equal(integer_product(x, values), exact)


def kernel_is_faster(device: torch.device) -> bool:
    """Whether the kernel beats what would be done instead on a matrix of one layer's size.

    That is a product in fp32: of a matrix in fp32 on a CPU, where small ones are stored so, and
    elsewhere of one that is converted each time. Each is the best of a few, on a CPU in one thread:
    beside busy programs several wait for each other, and the answer would depend on them.
    """
    rows, width = TIMED.get(device.type, TIMED["cuda"])
    x, values = (torch.ones(size, width, dtype=torch.int8, device=device)
                 for size in (rows, width))
    weight = values.float() if device.type == "cpu" else values
    floats, threads = x.float(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return best_of(lambda: integer_product(x, values), device) < best_of(
            lambda: exact_product(floats, weight), device)
    finally:
        torch.set_num_threads(threads)


def int8_kernel(device: torch.device) -> str:
    """How int8 matrices multiply activations in half precision on a device: INTEGERS or the name of
    a kernel that is right and the fastest there.
    """
    best = fastest_kernel(device)
    return INTEGERS if best == INTEGERS or fault_of("int8 kernel", device) else best


@cache
def fastest_kernel(device: torch.device) -> str:
    """`int8_kernel` as measured once for these kernels on this machine."""
    if not (kernels := importable(device)):
        return INTEGERS
    ways: dict[str, Multiply] = {
        INTEGERS: partial(by_integers, by_kernel=has_kernel(device)), **kernels}

    def fastest() -> str:
        seconds = {name: seconds_of(multiply, device) for name, multiply in ways.items()}
        return min(seconds, key=lambda name: seconds[name])

    return tuned(f"int8 product among {', '.join(ways)}", device, fastest)


def seconds_of(multiply: Multiply, device: torch.device) -> float:
    """Seconds of a single cell's product and a row's, with guidance; infinite if one is wrong."""
    dtype, width = torch.bfloat16 if has_bf16(device) else torch.float16, TIMED[device.type][1]
    with torch.inference_mode(False), torch.no_grad():
        try:
            if not is_right(multiply, device, dtype):
                return inf
            values = torch.ones(width, width, dtype=torch.int8, device=device)
            scales = torch.ones(width, device=device)
            return sum(best_of(partial(multiply, values[:rows].to(dtype), values, scales), device)
                       for rows in (2, TIMED[device.type][0]))
        except Exception:  # noqa: BLE001 - other people's code; what fails is not taken
            return inf


def best_of(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of the fastest of five runs, after one that only warms up."""
    seconds, in_a_row = [], 1 if device.type == "cpu" else IN_A_ROW
    for _ in range(6):
        begin = clock_of(device)
        for _ in range(in_a_row):
            work()
        seconds.append((clock_of(device) - begin) / in_a_row)
    return min(seconds[1:])


def clock_of(device: torch.device) -> float:
    """Wall-clock seconds, after the device has finished its queue."""
    if device.type in ("cuda", "xpu"):
        torch.get_device_module(device).synchronize(device)
    return time.perf_counter()
