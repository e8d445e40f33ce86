"""Modules that take turns on a small card: one is there, the others wait on the CPU."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn

CPU = torch.device("cpu")


class TakesTurns(Protocol):
    """What a backbone asks for the module that it is about to use."""

    def take(self, module: nn.Module) -> None: ...


class Turns:
    """Who is on `device` now. Views of a backbone share one of these, as they share weights."""

    def __init__(self, device: torch.device, *modules: nn.Module) -> None:
        """All but the first module go to the CPU at once."""
        self.device, self.modules = device, modules
        self.present: nn.Module | None = None
        self.take(modules[0])

    @torch.inference_mode(False)  # tensors made under it could not be used outside
    def take(self, module: nn.Module) -> None:
        """Have `module` on the device, the others off it first. Nothing moves where it is."""
        if module is self.present:
            return
        for other in self.modules:
            if other is not module:
                other.to(CPU)
        module.to(self.device)
        self.present = module
