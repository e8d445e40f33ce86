"""Offload for small graphics cards: one module is on the card, the others wait on the CPU."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn

CPU = torch.device("cpu")


class Offloader(Protocol):
    """Interface by which a backbone requests the module that it is about to use."""

    def take(self, module: nn.Module) -> None: ...


class DeviceOffloader:
    """Tracks which module is on `device`. Views of a backbone share one Turns, like the weights."""

    def __init__(self, device: torch.device, *modules: nn.Module) -> None:
        """Move all but the first module to the CPU."""
        self.device, self.modules = device, modules
        self.present: nn.Module | None = None
        self.take(modules[0])

    @torch.inference_mode(False)  # inference tensors could not be used outside
    def take(self, module: nn.Module) -> None:
        """Move the other modules to the CPU, then `module` to the device, unless it is there."""
        if module is self.present:
            return
        for other in self.modules:
            if other is not module:
                other.to(CPU)
        module.to(self.device)
        self.present = module
