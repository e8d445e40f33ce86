"""The first pass: prompts of different length, kept tokens behind them, and the states it gives."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def followed(prompt: torch.Tensor, lengths: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Insert kept tokens [rows, n, d] right after each row's prompt; [rows, P + n, d], padded.

    lengths: [rows] int64, the lengths of the prompts in prompt [rows, P, d].
    """
    n = kept.shape[1]
    x = F.pad(prompt, (0, 0, 0, n))
    at = lengths[:, None] + torch.arange(n, device=x.device)
    x[torch.arange(len(x), device=x.device)[:, None], at] = kept.to(x.dtype)  # autocast
    return x


def predicting(out: torch.Tensor, lengths: torch.Tensor, count: int) -> torch.Tensor:
    """h [rows, count, d] of the first image slots, from a prefill's states [rows, n, d]."""
    source = (lengths - 1)[:, None] + torch.arange(count, device=out.device)
    return out.gather(1, source[..., None].expand(-1, -1, out.shape[2]))
