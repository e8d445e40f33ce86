"""A product of activations in half precision with int8 weights as one Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

ROWS, COLUMNS, STEP = 16, 32, 128  # of a block; always the same, so that sums have the same order


@triton.jit
def kernel(x, values, scales, y, m, out, inner, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, inner, BK):
        k = start + tl.arange(0, BK)[None, :]
        a = tl.load(x + rows * inner + k, mask=(rows < m) & (k < inner), other=0.0)
        b = tl.load(values + columns[:, None] * inner + k,
                    mask=(columns[:, None] < out) & (k < inner), other=0)
        total = tl.dot(a, tl.trans(b.to(tl.float32).to(a.dtype)), total)
    total *= tl.load(scales + columns, mask=columns < out, other=0.0)[None, :]
    tl.store(y + rows * out + columns[None, :], total.to(y.dtype.element_ty),
             mask=(rows < m) & (columns[None, :] < out))


def multiply(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """x [m, in] @ (values [out, in] * scales [out, 1]).T as [m, out] in x's dtype."""
    (m, inner), out = x.shape, len(values)
    y = x.new_empty(m, out)
    with torch.cuda.device_of(x):
        kernel[triton.cdiv(m, ROWS), triton.cdiv(out, COLUMNS)](
            x.contiguous(), values, scales, y, m, out, inner, ROWS, COLUMNS, STEP)
    return y
