"""How much the width of a pass changes its logits, with each of PyTorch's attention kernels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..backbones.base import Backbone
from ..backbones.invariance import Work, rounding
from ..engine.graphs import Recorder
from ..weights.rounding import passes_on
from .machine import Machine

CHOSEN = "as PyTorch chooses"
KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION,
           "memory-efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
ROWS = 8  # of the picture, in the widest pass


@dataclass(frozen=True)
class Rounding:
    """Root-mean-square difference of logits between passes of different width.

    0: a cell has the same bits in all of them. None: the kernel does not take these passes, or
    there are no graphs. graphs: passes replayed as graphs, compared with a direct one.
    """

    direct: float | None
    graphs: float | None


def rounding_by_kernel(backbone: Backbone, machine: Machine) -> dict[str, Rounding]:
    """The rounding by attention kernel. A device other than a card has one kernel."""
    kernels = KERNELS if backbone.device.type == "cuda" else {}
    return {name: Rounding(rounding_with(backbone, kernel, None),
                           machine.recorder and rounding_with(backbone, kernel, machine.recorder))
            for name, kernel in {CHOSEN: None, **kernels}.items()}


def rounding_with(backbone: Backbone, kernel: SDPBackend | None,
                  recorder: Callable[[], Recorder] | None) -> float | None:
    """One figure of a `Rounding`; recorder: of `Machine`, None: without graphs."""
    try:
        with nullcontext() if kernel is None else sdpa_kernel(kernel):
            passes = passes_on(backbone, ROWS * backbone.grid.width)
            if recorder is None:
                return max(rounding(backbone, widths) for widths in passes)
            with closing(recorder()) as graphs:
                return max(rounding(backbone, widths, lambda work: replayed(graphs, work))
                           for widths in passes)
    except RuntimeError:  # no available kernel, or passes that cannot be captured
        return None


def replayed(recorder: Recorder, work: Work) -> torch.Tensor:
    """What a captured graph of the work gives."""
    recorder.warm_up(work)
    result: torch.Tensor = recorder.record(work)()
    return result.clone()
