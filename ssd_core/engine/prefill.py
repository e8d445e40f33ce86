"""Inputs and outputs of the prefill, for prompts of different lengths followed by kept tokens."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def followed(prompt: torch.Tensor, lengths: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Insert token embeddings [N, n, d] right after each prompt; [N, P + n, d], padded.

    lengths: [N] int64, the lengths of the prompts in prompt [N, P, d].
    """
    n = tokens.shape[1]
    x = F.pad(prompt, (0, 0, 0, n))
    index = lengths[:, None] + torch.arange(n, device=x.device)
    x[torch.arange(len(x), device=x.device)[:, None], index] = tokens.to(x.dtype)  # autocast
    return x


def predicting(out: torch.Tensor, lengths: torch.Tensor, count: int) -> torch.Tensor:
    """h [N, count, d] of the first image slots, from the prefill's hidden states [N, n, d]."""
    source = (lengths - 1)[:, None] + torch.arange(count, device=out.device)
    return out.gather(1, source[..., None].expand(-1, -1, out.shape[2]))
