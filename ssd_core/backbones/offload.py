"""Offload for small graphics cards.

`DeviceOffloader` keeps one module on the card while the others wait on the CPU. `StreamedLayers`
keeps the first layers of a decoder there; the others are copied to it for each pass.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Protocol

import torch
from torch import nn

from ..model.products import parts_of
from ..model.transformer import Decoder

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


class StreamedLayers:
    """Lends the layers of a decoder; those from `first` on wait elsewhere.

    All that wait are copied into the memory of a single layer, `place`, one after the other, so
    that every layer has the same shapes and a pass needs no memory beyond that. The copies are
    ordered like all work of the device, so none overtakes the layer before it. A pass takes at
    least as long as copying them.
    """

    @torch.inference_mode(False)
    def __init__(self, decoder: Decoder, first: int, device: torch.device) -> None:
        """The first layers are on the device already. At least one is, and at least one is not."""
        self.first, self.layers = first, decoder.layers
        self.place = deepcopy(self.layers[first]).to(device)
        self._present = -1

    @property
    def waiting(self) -> int:
        """How many layers wait."""
        return len(self.layers) - self.first

    def load_layer(self, index: int) -> nn.Module:
        """The layer on the device; what was loaded before is overwritten if both wait."""
        if index < self.first:
            return self.layers[index]
        if index != self._present:
            self._present = -1  # until it is whole
            for target, source in zip(plain_parts(self.place), plain_parts(self.layers[index]),
                                      strict=True):
                target.copy_(source, non_blocking=True)
            self._present = index
        return self.place


def plain_parts(module: nn.Module) -> list[torch.Tensor]:
    """The memory of a module's weights; a quantised matrix of torchao has several tensors."""
    return [part.detach() for weight in module.parameters() for part in parts_of(weight)]
