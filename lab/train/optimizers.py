"""Optimizers of postcard's training."""

from __future__ import annotations

import torch
from torch import nn

from ssd_core.errors import SSDError
from ssd_core.train.common import multiplies_bfloat16, remember_rates

MUON_SINCE = "2.9"  # the first torch with torch.optim.Muon


def require_muon() -> None:
    """Raise SSDError if this torch is too old for `muon_and_adamw`."""
    if not hasattr(torch.optim, "Muon"):
        raise SSDError(f"training a backbone needs torch {MUON_SINCE} or newer, here is "
                       f"{torch.__version__}: update torch")


def muon_and_adamw(decoder: nn.Module, others: list[nn.Parameter],
                   rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the decoder's matrices, AdamW for its vectors and for the other parameters."""
    from .muon import Float32Muon  # an older torch can do all but this training

    matrices = [p for p in decoder.parameters() if p.dim() == 2]
    rest = [p for p in decoder.parameters() if p.dim() != 2] + others
    muon = torch.optim.Muon if multiplies_bfloat16(str(matrices[0].device)) else Float32Muon
    return remember_rates([
        muon(matrices, lr=rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)])
