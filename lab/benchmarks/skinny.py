"""A product of few rows by one Triton kernel, whose sums have one order at any number of rows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

ROWS, WARPS, STAGES = 16, 4, 4


@triton.jit
def _kernel(x, weight, y, m, out, inner, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(1) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, inner, BK):
        k = start + tl.arange(0, BK)[None, :]
        a = tl.load(x + rows * inner + k, mask=rows < m, other=0.0)
        b = tl.load(weight + columns[:, None] * inner + k)
        total = tl.dot(a, tl.trans(b), total)
    tl.store(y + rows * out + columns[None, :], total.to(y.dtype.element_ty), mask=rows < m)


def skinny(x: torch.Tensor, weight: torch.Tensor, columns: int, step: int) -> torch.Tensor:
    """x [m, in] @ weight [out, in].T, in blocks of so many columns and steps, which divide both."""
    (m, inner), out = x.shape, len(weight)
    y = x.new_empty(m, out)
    _kernel[out // columns, triton.cdiv(m, ROWS)](
        x, weight, y, m, out, inner, ROWS, columns, step, num_warps=WARPS, num_stages=STAGES)
    return y
