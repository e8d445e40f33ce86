"""Weights under ComfyUI's model management, which moves and frees them; each is loaded once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import clear_frames
from typing import TypeVar
from weakref import WeakValueDictionary, finalize, ref

import comfy.model_management as mm
import torch
from torch import nn

from ..ssd_core import load_backbone, load_heads
from ..ssd_core.backbones.base import Backbone
from ..ssd_core.backbones.reading.adapters import files_of
from ..ssd_core.backbones.reading.checkpoint import watched
from ..ssd_core.engine.heads import DraftHeads
from ..ssd_core.engine.methods import AR
from ..ssd_core.errors import SSDError
from ..ssd_core.weights.fit import Fit, fit
from ..ssd_core.weights.load import auto_dtype, best_dtype, measure_rounding
from ..ssd_core.weights.memory import is_out_of_memory
from ..ssd_core.weights.model_size import stored_dtype
from ..ssd_core.weights.quantize import KINDS
from .folders import estimates
from .patchers import READING, StreamingPatcher, WholePatcher, patcher_of
from .reading import Reading

CPU = torch.device("cpu")
# One copy for all nodes; an entry lives as long as a node's output refers to it.
LOADED: WeakValueDictionary[tuple, LoadedWeights] = WeakValueDictionary()
Loaded = TypeVar("Loaded", bound="LoadedWeights")


@dataclass(eq=False)
class LoadedWeights:
    """Weights and their patcher; `path` is their file.

    again: the call that loads them; only this call is pickled. Where ComfyUI runs nodes in separate
    processes, links therefore carry a handle, and each process has one copy of the weights.
    """
    path: Path
    module: nn.Module
    patcher: WholePatcher
    again: tuple[Callable, tuple] = field(init=False, repr=False)

    def __reduce__(self) -> tuple[Callable, tuple]:
        return self.again

    @property
    def patchers(self) -> list[WholePatcher]:
        """The patchers whose weights must be on the device during the whole run."""
        return [self.patcher]


class LoadedHeads(LoadedWeights):
    module: DraftHeads


@dataclass(eq=False)
class LoadedBackbone(LoadedWeights):
    """`codec` moves the picture codec, which alone decodes pixels; `patcher` moves the rest."""

    module: Backbone
    patcher: StreamingPatcher
    codec: WholePatcher

    @property
    def patchers(self) -> list[WholePatcher]:
        return [self.patcher] if self.module.offloader else [self.patcher, self.codec]

    def measure(self) -> None:
        """Measure how passes round, once, when the weights have come to the device that draws."""
        waits = self.module.offloader is not None or self.patcher.waiting
        if self.module.rounding is None and not waits:
            measure_rounding(self.module, mm.get_torch_device())

    @property
    def notes(self) -> list[str]:
        """A line if layers wait elsewhere, which is known once the weights are on the device."""
        waiting, layers = self.patcher.waiting, self.patcher.layers
        return [f"the model does not fit on the card: {waiting} of {layers} layers wait beside it "
                "and are copied for every pass, which is slow; a smaller dtype or model is "
                "faster"] if waiting else []


class ManagedOffloader:
    """The engine's `DeviceOffloader` for ComfyUI: loads the decoder or the codec when a run needs
    it.

    It refers to the backbone weakly, because the backbone refers to it.
    """

    def __init__(self, loaded: LoadedBackbone) -> None:
        self.loaded, self.room = ref(loaded), 0
        self.present: nn.Module | None = None  # None: ask ComfyUI

    def take(self, module: nn.Module) -> None:
        loaded = self.loaded()
        if loaded is not None and module is not self.present:
            wanted = loaded.codec if module is loaded.module.picture_codec else loaded.patcher
            move([wanted], self.room)
            self.present = module

    def begin(self, room: int) -> None:
        """Start a run, as ComfyUI may have moved the weights; room: bytes besides the weights."""
        self.present, self.room = None, room


def backbone(path: Path, dtype: str, offload: bool = False, graphs: str = "auto",
             lora: tuple[tuple[Path, float], ...] = ()) -> LoadedBackbone:
    """Load a backbone from its file, or return it if it is loaded already.

    offload: decoder and picture codec take turns on the device; ignored on a CPU. graphs, lora: see
    `load_backbone`. Raises SSDError if it cannot be read or is too large for the device.
    """
    offload = offload and may_offload()

    def make() -> LoadedBackbone:
        idle_device = CPU if offload else mm.unet_offload_device()
        module = load(path, dtype, offload, idle_device, lora)
        module.graphs = graphs
        codec = module.picture_codec
        loaded = LoadedBackbone(path, module,
                                patcher_of(module, codec, idle_device, module.decoder),
                                patcher_of(codec, None, idle_device))
        if offload:
            module.offloader = ManagedOffloader(loaded)
        finalize(loaded, module.session.release)
        return loaded

    args = (path, dtype, offload, graphs, lora)
    changed = tuple(os.stat(files_of(file)[0]).st_mtime_ns for file, _ in lora)
    return loaded_once(LoadedBackbone, (*args, changed), make, (backbone, args))


def may_offload() -> bool:
    """Whether ComfyUI runs on a graphics card, whose memory offload frees."""
    return mm.get_torch_device().type != "cpu"


def load(path: Path, dtype: str, offload: bool, idle_device: torch.device,
         lora: tuple[tuple[Path, float], ...] = ()) -> Backbone:
    """Load a module to `idle_device`, where it stays between runs; interruptible.

    The compute device quantises the matrices, one at a time.
    """
    device = mm.get_torch_device()
    dtype = auto_dtype(path, device) if dtype == "auto" else best_dtype(path, dtype, device)
    described = load_backbone(path, "meta", dtype, hashed=False)
    memory = checked(described, dtype, offload)
    if dtype in KINDS and device != idle_device:
        mm.free_memory(memory.weights, device)
    with watched(Reading(sum(os.path.getsize(file) for file in described.files))):
        return load_backbone(path, str(idle_device), dtype, estimates=estimates(),
                             draws_on=str(device), lora=lora)


def checked(described: Backbone, dtype: str, offload: bool) -> Fit:
    """The memory of the smallest run.

    Raises SSDError with advice if it does not fit on the empty device, even if layers wait
    elsewhere.
    """
    device = mm.get_torch_device()
    memory = fit(described, AR(), dtype=dtype, guided=False, device=str(device), offload=offload,
                 free=int(room_on(device)))
    waiting = 0 if device.type == "cpu" else memory.waiting
    if not memory.fits and memory.needed - waiting > (memory.free or 0) and (
            device.type != "privateuseone"):  # DirectML's memory is not known
        raise SSDError(f"{described.name} in {dtype} does not fit on {device}, not even "
                       f"for one picture without guidance: {memory.advice}")
    return memory


def fits_on_device(loaded: Sequence[LoadedWeights], extra_bytes: int) -> bool:
    """Whether these weights and so many bytes besides fit once all else was unloaded."""
    weights = sum(patcher.model_size() for each in loaded for patcher in each.patchers)
    device = mm.get_torch_device()
    return device.type == "privateuseone" or weights + extra_bytes <= room_on(device)


def room_on(device: torch.device) -> float:
    """Bytes that are free on a device once ComfyUI has unloaded all models."""
    return mm.get_free_memory(device) + sum(
        model.model_loaded_memory() for model in mm.current_loaded_models
        if model.device == device and device.type != "cpu" and model.model is not None)


def heads(path: Path, for_backbone: LoadedBackbone) -> LoadedHeads:
    """Load the heads of exactly this backbone; else raise SSDError, which names both backbones."""
    module = for_backbone.module

    def make() -> LoadedHeads:
        drafts = load_heads(path, module)
        return LoadedHeads(path, drafts, patcher_of(drafts))

    return loaded_once(LoadedHeads, (path, module.sha256, stored_dtype(module)), make,
                       (heads, (path, for_backbone)))


def loaded_once(kind: type[Loaded], key: tuple, make: Callable[[], Loaded],
                again: tuple[Callable, tuple]) -> Loaded:
    """The cached object for `key` (the file first), or a new one from `make` with this `again`."""
    key = (*key, os.stat(key[0]).st_mtime_ns)
    if not isinstance(loaded := LOADED.get(key), kind):
        with torch.inference_mode(False):  # ComfyUI also moves weights outside of inference mode
            loaded = LOADED[key] = make()
            loaded.again = again
    return loaded


@contextmanager
def resident(loaded: Sequence[LoadedWeights | None], extra_bytes: int,
             remedy: str = "use a smaller dtype or offload in Load Model") -> Iterator[None]:
    """Keep `loaded` on the device, with `extra_bytes` of room, while the block runs.

    If memory runs out, raises SSDError with the bytes needed and the `remedy`.
    """
    present = [weights for weights in loaded if weights is not None]
    patchers = [patcher for weights in present for patcher in weights.patchers]
    with moved(patchers, present, extra_bytes, remedy):
        yield


@contextmanager
def codec_resident(backbone: LoadedBackbone, extra_bytes: int) -> Iterator[None]:
    """Like `resident`, for the picture codec alone."""
    with moved([backbone.codec], [backbone], extra_bytes, "give it fewer or smaller pictures"):
        yield


@contextmanager
def moved(patchers: Sequence[WholePatcher], loaded: Sequence[LoadedWeights], extra_bytes: int,
          remedy: str) -> Iterator[None]:
    needed = extra_bytes + sum(patcher.model_size() for patcher in patchers)
    with READING:  # it ends within a pass
        pass
    try:
        for weights in loaded:
            if isinstance(offloader := getattr(weights.module, "offloader", None),
                          ManagedOffloader):
                offloader.begin(extra_bytes)
        move(patchers, extra_bytes)
        for weights in loaded:
            if isinstance(weights, LoadedBackbone):
                weights.measure()
        with ExitStack() as stack:
            for patcher in patchers:
                stack.enter_context(patcher.in_use())
            yield
    except Exception as error:
        if not is_oom(error):
            raise
        clear_frames(error.__traceback__)  # they refer to the run and its cache
        raise SSDError(out_of_memory(needed, remedy)) from error
    finally:
        mm.soft_empty_cache()


def move(patchers: Sequence[WholePatcher], room: int) -> None:
    """Load weights with so many bytes of room besides; layers wait if all would not fit."""
    device = mm.get_torch_device()
    needed = room + sum(patcher.model_size() for patcher in patchers)
    whole = device.type in ("cpu", "privateuseone") or needed <= room_on(device)
    room = max(0, room - sum(patcher.model.session.nbytes for patcher in patchers))  # is there
    with torch.inference_mode(False):  # inference tensors could not be used outside of it
        mm.load_models_gpu(list(patchers), memory_required=room, force_full_load=whole)


def is_oom(error: BaseException) -> bool:
    """Whether memory ran out; ComfyUI's own check also clears CUDA's error."""
    return mm.is_oom(error) or is_out_of_memory(error)


def out_of_memory(needed: int, remedy: str) -> str:
    device = mm.get_torch_device()
    mm.unload_all_models()
    return (f"out of memory on {device}: about {needed / 2**20:.0f} MiB are needed, "
            f"{mm.get_free_memory(device) / 2**20:.0f} MiB are free now that all models were "
            f"unloaded: {remedy}")
