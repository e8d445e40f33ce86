"""The tensors of a model that transformers has loaded, as a checkpoint that lends them.

A backbone computes on the model's own tensors. Where it stores several matrices as one (q, k and v;
gate and up), they are joined one group at a time, and the model's parameters become views of the
joined matrix: the values, their order and the memory stay the same, and the model works as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from ...errors import SSDError
from .adapters import refuse_adapter_keys
from .checkpoint import Checkpoint
from .key_names import plain_names
from .quantised import refuse_quantiser

Piece = tuple[str, int, int]  # name of a tensor, first row, row after the last


class LoadedModel(Checkpoint):
    """A model's tensors by the names of its state dict; `folder` has its tokenizer."""

    adopted = True

    def __init__(self, model: nn.Module, folder: Path) -> None:
        self.model, self.folder, self.root = model, folder, folder
        self.files = (Path(type(model).__name__),)  # for error messages
        self.transform = lambda name, value: value
        self.metadata, self._scale_of = {}, {}
        tensors = model.state_dict(keep_vars=True)
        refuse_adapter_keys(tensors, self.files[0])
        refuse_quantiser(tensors, self._quantisation(), self.files[0])
        names = plain_names(tensors)
        self._tensors: dict[str, torch.Tensor] = {names[name]: tensors[name] for name in tensors}
        self.shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def file_of(self, name: str) -> Path:
        if name not in self._tensors:
            raise SSDError(f"{self.files[0]}: tensor {name} is missing: load the complete model")
        return self.files[0]

    def tensor(self, name: str) -> torch.Tensor:
        self.file_of(name)
        return self._tensors[name].detach()

    def views(self) -> Iterator[Checkpoint]:
        """This model alone: its class has named the tensors."""
        yield self

    def close(self) -> None:
        """There is no file to close."""

    def config(self) -> dict:
        to_dict = getattr(getattr(self.model, "config", None), "to_dict", None)
        return to_dict() if to_dict else {}

    def joined(self, parts: list[Piece]) -> torch.Tensor:
        """Return pieces as one tensor that shares the model's memory; few rows are copied."""
        tensors = [self.tensor(name)[start:stop] for name, start, stop in parts]
        if len(tensors) == 1:
            return tensors[0]
        if (together := as_one(tensors)) is not None:
            return together
        together = torch.cat(tensors)
        if all(len(rows) == len(self._tensors[name])
               for rows, (name, _, _) in zip(tensors, parts, strict=True)):
            views = together.split([len(rows) for rows in tensors])
            for (name, _, _), view in zip(parts, views, strict=True):
                self._tensors[name].data = view
        return together

    def place(self) -> tuple[torch.device, torch.dtype]:
        """The device and dtype of all weights; SSDError if they have several."""
        weights = [value for value in self._tensors.values() if value.is_floating_point()]
        devices, dtypes = {value.device for value in weights}, {value.dtype for value in weights}
        if len(devices) != 1 or torch.device("meta") in devices:
            raise SSDError(f"{self.files[0]}: its weights lie on {listed(devices)}: load it on one "
                           "device, without device_map")
        if len(dtypes) != 1:
            raise SSDError(f"{self.files[0]}: its weights are {listed(dtypes)}: convert them to "
                           "one dtype, for example by model.to(torch.bfloat16)")
        return devices.pop(), dtypes.pop()


def as_one(tensors: list[torch.Tensor]) -> torch.Tensor | None:
    """A view of tensors that follow each other in memory, as an earlier call leaves them."""
    first, offset = tensors[0], tensors[0].storage_offset()
    for rows in tensors:
        if (rows.untyped_storage().data_ptr() != first.untyped_storage().data_ptr()
                or rows.storage_offset() != offset or not rows.is_contiguous()):
            return None
        offset += rows.numel()
    shape = (sum(map(len, tensors)), *first.shape[1:])
    return first.as_strided(shape, first.stride(), first.storage_offset())


def listed(values: set) -> str:
    return ", ".join(sorted(str(value).removeprefix("torch.") for value in values))
