"""How ComfyUI moves our weights: as a whole, or a decoder's layers one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import comfy.model_management as mm
import torch
from comfy.model_patcher import ModelPatcher
from comfy.utils import ProgressBar
from torch import nn

from ..ssd_core.backbones.offload import StreamedLayers, plain_parts
from ..ssd_core.backbones.sessions import KeptSession
from ..ssd_core.model.transformer import Decoder
from ..ssd_core.weights.model_size import stored_bytes

READING = Lock()  # held while weights are used outside of ComfyUI's queue


class SSDWeights(nn.Module):
    """A wrapper that a patcher moves: a module without one part, and its plain tensors.

    torch does not move plain tensors by itself. ComfyUI sets attributes such as `device` on the
    modules that it moves; they stay on this wrapper.
    """

    def __init__(self, module: nn.Module, without: nn.Module | None = None) -> None:
        super().__init__()
        self.whole = (module,)  # in a tuple, so that torch does not register it
        # what a backbone's last run left on the device; its graphs read the weights there
        self.session: KeptSession = getattr(module, "session", None) or KeptSession()
        for name, part in module.named_children():
            if part is not without:
                self.add_module(name, part)
        for name, weight in module.named_parameters(recurse=False):
            self.register_parameter(name, weight)

    def plain_tensors(self) -> Iterator[tuple[nn.Module, str, torch.Tensor]]:
        """(owner, attribute, tensor)."""
        for owner in (*self.whole, *(part for part in self.modules() if part is not self)):
            for name, value in list(vars(owner).items()):
                if isinstance(value, torch.Tensor):
                    yield owner, name, value

    @property
    def nbytes(self) -> int:
        """Stored bytes; a quantised matrix reports a larger size."""
        plain = (value for *_, value in self.plain_tensors())
        return sum(map(stored_bytes, (*self.parameters(), *plain)))

    def move_without(self, waiting: Sequence[nn.Module], device: torch.device) -> None:
        """Move all but some layers to a device, the other layers one at a time."""
        self.session.release()
        layers = [layer for part in self.children() if isinstance(part, Decoder)
                  for layer in part.layers]
        move_each([layer for layer in layers if layer not in waiting], device)
        left = {id(part) for layer in waiting for part in layer.modules()}

        def there(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(device)

        nn.Module._apply(self, there, recurse=False)
        for part in self.modules():  # what is left, module by module
            if part is not self and id(part) not in left:
                part._apply(there, recurse=False)
        self._own(there, left)

    def _own(self, fn: Callable, left: Collection[int] = ()) -> None:
        """Apply fn to plain tensors and to the parameters of the module itself."""
        for name, weight in self.named_parameters(recurse=False):
            setattr(self.whole[0], name, weight)
        for owner, name, value in self.plain_tensors():
            if id(owner) not in left:
                setattr(owner, name, fn(value))

    def _apply(self, fn: Callable, *args) -> SSDWeights:
        self.session.release()
        super()._apply(fn, *args)
        self._own(fn)
        return self


class WholePatcher(ModelPatcher):
    """Loads either all of the weights to the device or none.

    ComfyUI can leave single layers on the CPU only if they are layers of comfy.ops. Ours would
    compute with tensors of two devices.
    """

    def partially_load(self, device_to, extra_memory=0, **options):
        return super().partially_load(device_to, 1e32, **options)

    def partially_unload(self, *_, **__) -> int:
        return 0

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """A run, whose tensors refer to the weights."""
        yield


class StreamingPatcher(WholePatcher):
    """Loads all weights of a backbone, or all but the decoder's last layers, which are streamed.

    ComfyUI says how many bytes may be on the device. The layers that do not fit wait on the other
    device, and each pass copies them (StreamedLayers), from pinned memory where ComfyUI can pin it.
    The first layer never waits. During a run nothing is unloaded in part.
    """

    runs = 0  # under way

    def __init__(self, shell: SSDWeights, *devices: torch.device, decoder: Decoder) -> None:
        self.pins: list[torch.Tensor] = []
        super().__init__(shell, *devices, size=shell.nbytes)
        self.decoder = decoder

    # What ComfyUI calls

    def partially_load(self, device_to, extra_memory=0, **options):
        return ModelPatcher.partially_load(self, device_to, extra_memory, **options)

    def load(self, device_to=None, lowvram_model_memory=0, force_patch_weights=False,
             full_load=False):
        try:
            if full_load or lowvram_model_memory >= self.model_size():
                self._place(device_to, self.layers)
                super().load(device_to, lowvram_model_memory, force_patch_weights, True)
            else:
                self._place(device_to, self._fitting(lowvram_model_memory))
        except BaseException:  # an interrupt, too, must leave all weights in one place
            self.detach()
            raise

    def loaded_size(self) -> int:
        """Bytes on the device, with those of the session, which ComfyUI can have back."""
        return super().loaded_size() + self.model.session.nbytes

    def partially_unload(self, device_to, memory_to_free=0, *_, **__) -> int:
        freed = self.model.session.nbytes
        self.model.session.release()
        if freed >= memory_to_free:
            return freed
        return freed + self._unloaded(memory_to_free - freed)

    def _unloaded(self, memory_to_free: float) -> int:
        """Let more layers wait; returns the bytes that this frees."""
        before = self.loaded_size()
        first = self._fitting(before - memory_to_free)
        if self.runs or first >= self.first or self._bytes(first) > before - memory_to_free:
            return 0  # ComfyUI then unloads all
        self._place(self.load_device, first)
        return before - self.loaded_size()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        self.runs += 1
        try:
            yield
        finally:
            self.runs -= 1

    def unpatch_model(self, device_to=None, unpatch_weights=True):
        if unpatch_weights:
            self._reclaim()
        return super().unpatch_model(device_to, unpatch_weights)

    def unpin_all_weights(self) -> None:
        """ComfyUI asks for it when the patcher ends, too."""
        while self.pins:
            mm.unpin_memory(self.pins.pop())

    # Layers

    @property
    def layers(self) -> int:
        return len(self.decoder.layers)

    @property
    def waiting(self) -> int:
        """How many layers wait."""
        return 0 if self.decoder.streaming is None else self.decoder.streaming.waiting

    @property
    def first(self) -> int:
        """The first layer that waits, behind all if none does."""
        return self.layers - self.waiting

    def _bytes(self, first: int) -> int:
        """Bytes on the device if layers wait from the `first` on; one more layer holds them."""
        each = bytes_of(self.decoder.layers[-1])
        return self.model_size() - each * max(0, self.layers - first - 1)

    def _fitting(self, memory: float) -> int:
        """The most layers that may be on the device within so many bytes, at least one."""
        fitting = (first for first in range(self.layers - 2, 0, -1) if self._bytes(first) <= memory)
        return next(fitting, 1)

    @torch.inference_mode(False)
    def _place(self, device: torch.device, first: int) -> None:
        """Put the first layers and all but the decoder on the device, and let the others wait."""
        self._reclaim()
        waiting = list(self.decoder.layers)[first:]
        move_each(waiting, self.offload_device)
        self.model.move_without(waiting, device)
        if waiting:
            self._pin(waiting)
            self.decoder.streaming = StreamedLayers(self.decoder, first, device)
        self.model.device, self.model.model_lowvram = device, bool(waiting)
        self.model.model_loaded_weight_memory = self._bytes(first)
        self.model.current_weight_patches_uuid = self.patches_uuid

    def _reclaim(self) -> None:
        """Before weights move: no layer is streamed, and no memory pinned."""
        self.decoder.streaming = None
        self.unpin_all_weights()

    def _pin(self, layers: Sequence[nn.Module]) -> None:
        """Pin the layers' memory; ComfyUI does so on cards that have it, up to its own limit."""
        self.pins += [part for layer in layers for part in map(by_row, plain_parts(layer))
                      if mm.pin_memory(part)]


def by_row(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a matrix that is stored by columns, as one that is stored by rows."""
    return tensor if tensor.is_contiguous() or tensor.dim() != 2 else tensor.t()


def move_each(modules: Sequence[nn.Module], device: torch.device) -> None:
    """Move modules one after the other, with ComfyUI's progress bar; interruptible."""
    absent = [module for module in modules
              if any(weight.device != device for weight in module.parameters())]
    bar = ProgressBar(len(absent)) if absent else None
    for number, module in enumerate(absent, 1):
        mm.throw_exception_if_processing_interrupted()
        module.to(device)
        if bar is not None:
            bar.update_absolute(number, len(absent))


def bytes_of(module: nn.Module) -> int:
    return sum(map(stored_bytes, module.parameters()))


def patcher_of(module: nn.Module, without: nn.Module | None = None,
               idle_device: torch.device | None = None,
               streamed: Decoder | None = None) -> WholePatcher:
    """A patcher of a module. streamed: its decoder, whose layers may wait on the idle device."""
    shell = SSDWeights(module, without)
    devices = mm.get_torch_device(), idle_device or mm.unet_offload_device()
    if streamed is None:
        return WholePatcher(shell, *devices, size=shell.nbytes)
    return StreamingPatcher(shell, *devices, decoder=streamed)
