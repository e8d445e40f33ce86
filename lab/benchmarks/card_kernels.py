"""Parts of card_session.py about single operations and passes: each yields rows of its table.

A value that could not be measured is the beginning of the error instead.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import product

import torch
import torch.nn.functional as F
from card_tools import SHOWN, Card, attempted, pass_over, state_amid
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity
from torch.profiler import profile as profiler

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.invariance import Widths, rounding
from ssd_core.engine.decode import alone
from ssd_core.engine.first_replay import TOLERANCE, difference
from ssd_core.engine.graphs import Work
from ssd_core.engine.heads import DraftHeads
from ssd_core.machine_faults import driver_version
from ssd_core.measure.machine import copy_bandwidth, read_bytes
from ssd_core.model.attention_kernel import attention_kernel
from ssd_core.model.int8_kernels import importable
from ssd_core.model.products import (
    Int8Matrix,
    int8_kernel,
    integer_product,
    whole_numbers,
)
from ssd_core.model.transformer import two_products

try:
    from skinny import skinny
except ImportError:  # no Triton
    skinny = None

Row = dict[str, object]
Products = Callable[[], list[torch.Tensor]]
READ_BYTES = {False: 1 << 32, True: 1 << 22}  # of the sum that is timed; by `tiny`
CACHES = 300e6  # bytes of different weights, more than a card's caches hold
BACKENDS = {"efficient": SDPBackend.EFFICIENT_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "math": SDPBackend.MATH}
WARM_UP = 7  # queries of the first calls of all, which load libraries
SHAPES = {"7B qkv": (12288, 4096), "7B out": (4096, 4096), "7B gate_up": (22016, 4096),
          "7B down": (4096, 11008), "7B head": (16384, 4096), "1B qkv": (6144, 2048),
          "1B gate_up": (11264, 2048), "1B down": (2048, 5632)}
LAYER = ("7B qkv", "7B out", "7B gate_up", "7B down")
CELLS = (1, 2, 4, 16, 48, 96, 196)
FP8_LARGEST = 448
ATTENTION = re.compile(r"fmha|flash|attention|sdpa", re.IGNORECASE)  # before PRODUCT: fmha_cutlass
PRODUCT = re.compile(r"gemm|gemv|cutlass|nvjet|splitk|xmma|cublas|::mm|addmm", re.IGNORECASE)
SHOWN_KERNELS = 14


def environment(card: Card) -> Iterator[Row]:
    """Which card and libraries are these, and how many bytes a second can be read at all?

    Shares are of the read bandwidth, which is more than half of what a copy moves.
    """
    row: Row = {"device": "cpu", "torch": torch.__version__, "triton": version("triton")}
    if card.real:
        properties = torch.cuda.get_device_properties(card.device)
        row |= {"device": properties.name, "GiB": properties.total_memory / 2**30,
                "processors": properties.multi_processor_count, "driver": driver_version(),
                "cuDNN": torch.backends.cudnn.version(),
                "allocator": torch.cuda.get_allocator_backend(),
                "BLAS": str(torch.backends.cuda.preferred_blas_library())}
    numbers = torch.zeros(READ_BYTES[card.tiny] // 4, device=card.device)
    card.read = numbers.nbytes / (1e-6 * card.microseconds(numbers.sum))
    yield row | {"copy, GB/s": copy_bandwidth(card.device) / 1e9, "read, GB/s": card.read / 1e9}
    yield {"attention of runs": attention_kernel(card.device),
           "int8 of runs": int8_kernel(card.device)}


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


# Attention


def attention(card: Card) -> Iterator[Row]:
    """Which kernel of attention with a mask is fast, repeatable, and ready at its first call?

    Decides which one is pinned; and whether one cell attends by two products, whose bits do not
    depend on the width of a pass.
    """
    heads, slots = (2, (64,)) if card.tiny else (32, (256, 704, 768, 2496, 2560))
    for cells, keys in ((WARM_UP, 128), *product((1, 24, 98), slots)):
        q, k, v = (card.random(2, heads, count, 128) for count in (cells, keys, keys))
        mask = card.random(2, 1, cells, keys).zero_()
        mask[..., keys // 2 :] = float("-inf")
        for name in ("default", *(BACKENDS if card.real else ()), "products"):
            call = two_products if name == "products" else F.scaled_dot_product_attention
            with backend(name, card):
                row = timed_attention(card, partial(call, q, k, v, mask))
            if cells != WARM_UP:
                yield {"cells": cells, "keys": keys, "kernel": name, **row}


@contextmanager
def backend(name: str, card: Card) -> Iterator[None]:
    """Only this kernel of attention, if it has a name of PyTorch's and there are several."""
    with sdpa_kernel(BACKENDS[name]) if card.real and name in BACKENDS else nullcontext():
        yield


def timed_attention(card: Card, call: Callable[[], torch.Tensor]) -> Row:
    try:
        began = card.now()
        first = call()
        seconds = card.now() - began
        return {"first call, ms": 1e3 * seconds, "us": card.microseconds(call, 10),
                "same bits twice": torch.equal(first, call())}
    except RuntimeError as error:  # a kernel that is not there, or does not take this mask
        return {"us": str(error).splitlines()[0][:SHOWN]}


# Products


def products(card: Card) -> Iterator[Row]:
    """How close do the products of a pass come to the read bandwidth?

    Decides whether they are left alone, whether the residual is added apart, and whether a Triton
    kernel is offered for the narrow ones.
    """
    for shape, cells in product(SHAPES, CELLS):
        out, inner = (size // 64 if card.tiny else size for size in SHAPES[shape])
        size = out * inner * card.dtype.itemsize
        copies = 2 if card.tiny else max(2, int(CACHES / size))
        weights = [card.random(out, inner) * inner**-0.5 for _ in range(copies)]
        x, row = card.random(cells, inner), Row(shape=shape, cells=cells)
        expected = [F.linear(x, weight) for weight in weights]
        for name, (way, library) in ways_to_multiply(card, x, expected[0].shape).items():
            took = timed(card, partial(applied, way, weights), expected, library)
            row[name] = took
            if isinstance(took, float):
                row[f"{name}, % of read"] = card.share(size, took)
        yield row


def ways_to_multiply(card: Card, x: torch.Tensor, shape: torch.Size
                     ) -> dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]]:
    """Functions of a weight, and the library that each prefers. shape: of the result."""
    linear, residual = partial(F.linear, x), x.new_zeros(shape)
    ways = {"linear": (linear, "default"),
            "addmm": (lambda weight: torch.addmm(residual, x, weight.t()), "default")}
    if card.real and len(x) in (2, 96):
        ways |= {"cublas": (linear, "cublas"), "cublaslt": (linear, "cublaslt")}
    if card.real and skinny is not None:
        ways |= {f"triton {columns}": (partial(skinny, x, columns=columns, step=step), "default")
                 for columns, step in ((32, 256), (64, 128))}
    return ways


def applied(way: Callable[[torch.Tensor], torch.Tensor], weights: Sequence[torch.Tensor]
            ) -> list[torch.Tensor]:
    return [way(weight) for weight in weights]


def timed(card: Card, work: Products, expected: Sequence[torch.Tensor],
          library: str = "default") -> float | str:
    """Microseconds of one of the products, or why they are not computed, or not rightly."""
    def measure() -> float:
        with blas(card, library):
            if (apart := max(map(difference, work(), expected))) > TOLERANCE:
                raise ArithmeticError(f"differs by {apart:.2g}")
            return card.microseconds(work) / len(expected)

    return attempted(measure)


@contextmanager
def blas(card: Card, library: str, split: bool = True) -> Iterator[None]:
    """Prefer this library. split: whether it may add up parts of a sum in half precision."""
    if not card.real:
        yield
        return
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_bf16_reduced_precision_reduction
    torch.backends.cuda.preferred_blas_library(library)
    try:
        if not split:
            matmul.allow_bf16_reduced_precision_reduction = (False, False)
        yield
    finally:
        matmul.allow_bf16_reduced_precision_reduction = before
        torch.backends.cuda.preferred_blas_library("default")


def invariance(card: Card) -> Iterator[Row]:
    """Does a cell have the same bits at any width of a pass? The rms of its logits; 0: it does.

    Decides whether *Faithful* can set something for it on this card, or is approximate.
    """
    backbone, _ = card.backbone("Janus-Pro-1B", layers=2)
    libraries = ("default", "cublas", "cublaslt") if card.real else ("default",)
    for library, split, kernel in product(libraries, (True, False),
                                          ("default", "efficient", "math")):
        def measure(library: str = library, split: bool = split, kernel: str = kernel) -> float:
            with blas(card, library, split), backend(kernel, card):
                return rounding(backbone, Widths(48, (1, 3, 8, 16, 24), 256))

        yield {"library": library, "split sums": split, "attention": kernel,
               "rms of logits": attempted(measure)}


# Passes


def profile(card: Card) -> Iterator[Row]:
    """Where do the microseconds of a replayed pass go?

    Decides whether small kernels are merged, and whether attention's choice matters.
    """
    for name in ("Janus-Pro-7B", "Lumina-mGPT-7B-768"):
        yield from profiled(card, *card.backbone(name))
        card.tidy()


def profiled(card: Card, backbone: Backbone, heads: DraftHeads) -> Iterator[Row]:
    """Passes over a cell, and over as many rows as SSD drafts at once."""
    width, start = backbone.grid.width, backbone.grid.slots // 2
    with alone(card.device):
        state = state_amid(backbone, heads, width, start)
        for cells in dict.fromkeys((1, width * backbone.preset.k_v)):
            work = pass_over(state, start, cells)
            took = card.microseconds(work)
            read = read_bytes(backbone, len(state.prompts), state.max_prompt + start + cells)
            yield {"backbone": backbone.name, "cells": cells, "us": took,
                   "% of read": card.share(read, took),
                   **card.replaying(work, partial(kernels_of, card))}


def kernels_of(card: Card, replay: Work, repeats: int = 3) -> Row:
    """Microseconds by kind of kernel in a replay, the number of kernels, and the longest ones."""
    activity, took_of = ((ProfilerActivity.CUDA, "self_device_time_total") if card.real
                         else (ProfilerActivity.CPU, "self_cpu_time_total"))
    with profiler(activities=[activity]) as seen:
        for _ in range(repeats):
            replay()
        card.now()
    found = [(event.key, event.count / repeats, getattr(event, took_of) / repeats)
             for event in seen.key_averages() if getattr(event, took_of) > 0]
    spent = dict.fromkeys(("products", "attention", "small"), 0.0)
    for name, _, took in found:
        spent[kind_of(name)] += took
    longest = sorted(found, key=lambda kernel: -kernel[2])[:SHOWN_KERNELS]
    return {**{f"{kind}, us": took for kind, took in spent.items()},
            "kernels": sum(count for _, count, _ in found),
            "longest": [[name[:SHOWN], round(count, 1), round(took, 1)]
                        for name, count, took in longest]}


def kind_of(kernel: str) -> str:
    """ "attention", "products" or "small", by the name of a kernel."""
    if ATTENTION.search(kernel):
        return "attention"
    return "products" if PRODUCT.search(kernel) else "small"


def compiled(card: Card) -> Iterator[Row]:
    """What does torch.compile of a whole pass bring beyond a graph, and how long does it take?

    Below 12 % the subject is closed.
    """
    backbone, heads = card.backbone("Janus-Pro-7B", layers=8)
    start = backbone.grid.slots // 2
    with alone(card.device):
        state = state_amid(backbone, heads, backbone.grid.width, start)
        for tuned, cells in product((False, True), (1, backbone.grid.width)):
            work = pass_over(state, start, cells)
            plain = card.microseconds(work)
            torch._dynamo.reset()
            options = {"coordinate_descent_tuning": tuned} if card.real else None
            made = torch.compile(work, fullgraph=True, dynamic=False, options=options,
                                 backend="inductor" if card.real else "eager")
            began = card.now()
            made()
            seconds = card.now() - began
            yield {"layers": backbone.decoder.shape.layers, "cells": cells, "tuned": tuned,
                   "plain, us": plain, "compiled, us": card.microseconds(made),
                   "seconds to compile": seconds}


# Eight bits


def eight_bits(card: Card) -> Iterator[Row]:
    """Which product with 8-bit weights is faster than bf16 over one cell and over rows?

    Microseconds of one of a layer's four products, in the mean. Decides which kernel int8 uses, and
    what its label says: memory, or speed.
    """
    shapes = [tuple(size // 32 if card.tiny else size for size in SHAPES[name]) for name in LAYER]
    layers = [[card.random(*shape) * shape[1]**-0.5 for shape in shapes] for _ in range(2)]
    integers = [[Int8Matrix.of(weight) for weight in layer] for layer in layers]
    for cells in (2, 48, 96, 196):
        xs = [card.random(cells, inner) for _, inner in shapes]
        ways = ways_in_eight(card, xs, layers, integers)
        expected = ways["bf16"]()
        yield {"cells": cells, **{name: timed(card, work, expected)
                                  for name, work in ways.items()}}


def ways_in_eight(card: Card, xs: list[torch.Tensor], layers: list[list[torch.Tensor]],
                  integers: list[list[Int8Matrix]]) -> dict[str, Products]:
    """What computes the products of all layers in each way."""
    pairs = [(x, weight) for layer in layers for x, weight in zip(xs, layer, strict=True)]
    whole = [(x, matrix) for layer in integers for x, matrix in zip(xs, layer, strict=True)]
    ways: dict[str, Products] = {"bf16": partial(of_each, F.linear, pairs),
                                 "int8": lambda: [matrix(x) for x, matrix in whole]}
    if not card.real:
        return ways
    parts = [(x, matrix.values, matrix.scales) for x, matrix in whole]
    ways |= {"W8A8": partial(of_each, by_integers, parts),
             "fp8 by row": partial(of_each, by_fp8, [(x, *in_fp8(weight)) for x, weight in pairs]),
             **{name: partial(of_each, multiply, parts)
                for name, multiply in importable(card.device).items()}}
    if len(xs[0]) in (2, 96):  # compiling takes seconds for each shape
        torch._dynamo.reset()
        ways["W8A8 compiled"] = partial(of_each, torch.compile(by_integers, dynamic=False), parts)
    return ways


def of_each(multiply: Callable[..., torch.Tensor], arguments: Sequence[tuple[torch.Tensor, ...]]
            ) -> list[torch.Tensor]:
    return [multiply(*each) for each in arguments]


def by_integers(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Both factors as integers, by PyTorch's operations."""
    integers, scale = whole_numbers(x)
    y = integer_product(integers.to(torch.int8), values) * scales
    return y.mul_(scale).to(x.dtype)


def in_fp8(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """rows [m, d] -> fp8 [m, d] and the fp32 scale [m, 1] of each row."""
    scale = rows.float().abs().amax(1, True) / FP8_LARGEST
    return (rows.float() / scale).to(torch.float8_e4m3fn), scale


def by_fp8(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Both factors in fp8 with a scale for each row; the kernel takes multiples of 16 rows."""
    integers, scale = in_fp8(x)
    padding = (0, 0, 0, -len(x) % 16)
    integers = F.pad(integers.view(torch.uint8), padding).view(torch.float8_e4m3fn)
    return torch._scaled_mm(integers, values.t(), scale_a=F.pad(scale, padding, value=1.0),
                            scale_b=scales.t(), out_dtype=x.dtype)[: len(x)]
