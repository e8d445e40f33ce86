"""Weights under ComfyUI's own model management: loaded once, moved by it, given back to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import clear_frames
from typing import TypeVar
from weakref import WeakValueDictionary, ref

import comfy.model_management as mm
import torch
from comfy.model_patcher import ModelPatcher
from torch import nn

from ..ssd_core import load_backbone, load_heads
from ..ssd_core.backbones.base import Backbone
from ..ssd_core.engine.heads import DraftHeads
from ..ssd_core.engine.methods import AR
from ..ssd_core.errors import SSDError
from ..ssd_core.front.memory import is_out_of_memory
from ..ssd_core.weights.fit import SHORT_NAMES, fit, stored_bytes
from ..ssd_core.weights.load import find_backbone, is_small, pick_dtype
from ..ssd_core.weights.quantize import KINDS

CPU = torch.device("cpu")
# One copy however many nodes; an entry lives as long as some node's output does.
_LOADED: WeakValueDictionary[tuple, LoadedWeights] = WeakValueDictionary()

Kept = TypeVar("Kept", bound="LoadedWeights")


class SSDWeights(nn.Module):
    """What a patcher moves: a module but for one part of it, with the plain tensors that torch
    does not know of.

    ComfyUI writes attributes of its own (`device` ...) on what it moves; they stay on this shell.
    """

    def __init__(self, module: nn.Module, without: nn.Module | None = None) -> None:
        super().__init__()
        self.whole = (module,)  # so that torch does not take it for a part
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
        """As they are stored: a quantised matrix calls itself larger than it is."""
        plain = (value for *_, value in self.plain_tensors())
        return sum(map(stored_bytes, (*self.parameters(), *plain)))

    def _apply(self, fn: Callable, *args) -> SSDWeights:
        super()._apply(fn, *args)
        for name, weight in self.named_parameters(recurse=False):
            setattr(self.whole[0], name, weight)
        for owner, name, value in self.plain_tensors():
            setattr(owner, name, fn(value))
        return self


class WholePatcher(ModelPatcher):
    """All of the weights are on the device, or none.

    ComfyUI can leave single layers behind only where they are its own kind (comfy.ops); ours would
    then meet tensors of another device.
    """

    def partially_load(self, device_to, extra_memory=0, **options):
        return super().partially_load(device_to, 1e32, **options)

    def partially_unload(self, *_, **__) -> int:
        return 0


def patcher_of(module: nn.Module, without: nn.Module | None = None,
               rests_on: torch.device | None = None) -> WholePatcher:
    shell = SSDWeights(module, without)
    return WholePatcher(shell, mm.get_torch_device(), rests_on or mm.unet_offload_device(),
                        size=shell.nbytes)


@dataclass(eq=False)
class LoadedWeights:
    """Weights and their patcher; `path` is the file they came from."""

    path: Path
    module: nn.Module
    patcher: WholePatcher

    @property
    def patchers(self) -> list[WholePatcher]:
        """What a run needs on the device all the time."""
        return [self.patcher]


class LoadedHeads(LoadedWeights):
    module: DraftHeads


@dataclass(eq=False)
class LoadedBackbone(LoadedWeights):
    """`patcher` moves all but the picture codec, `codec` that: pixels alone need no decoder."""

    module: Backbone
    codec: WholePatcher

    @property
    def patchers(self) -> list[WholePatcher]:
        return [self.patcher] if self.module.turns else [self.patcher, self.codec]


class ManagedTurns:
    """The engine's `Turns` by ComfyUI: it makes room for decoder or codec when one is needed.

    Knows the backbone weakly, whose attribute this is.
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
        """Between runs ComfyUI may have moved anything; `room`: bytes beside the weights."""
        self.present, self.room = None, room


def backbone(path: Path, dtype: str, offload: bool = False) -> LoadedBackbone:
    """A backbone by its file. offload: decoder and picture codec need not be there together; on a
    CPU it changes nothing.

    Raises SSDError for what cannot be read, and for what is too large for the device.
    """
    offload = offload and may_offload()

    def make() -> LoadedBackbone:
        rests_on = CPU if offload else mm.unet_offload_device()
        module = load(path, dtype, offload, rests_on)
        codec = module.picture_codec
        loaded = LoadedBackbone(path, module, patcher_of(module, codec, rests_on),
                                patcher_of(codec, None, rests_on))
        if offload:
            module.turns = ManagedTurns(loaded)
        return loaded

    return _once(LoadedBackbone, (path, dtype, offload), make)


def may_offload() -> bool:
    """Whether there is a card whose memory it would free."""
    return mm.get_torch_device().type != "cpu"


def load(path: Path, dtype: str, offload: bool, rests_on: torch.device) -> Backbone:
    """The module, where it waits for its runs.

    Quantised weights are made on the device, whose kernels lay them out, and then wait as others.
    """
    device = mm.get_torch_device()
    if dtype == "auto":
        dtype = SHORT_NAMES[pick_dtype(dtype, device, is_small(find_backbone(path)[0]))]
    size = checked_size(load_backbone(path, "meta", dtype), dtype, offload)
    place = device if dtype in KINDS else rests_on
    if place.type != "cpu":
        mm.free_memory(size, place)
    module = load_backbone(path, str(place), dtype)
    if place != rests_on:
        SSDWeights(module).to(rests_on)
    return module


def checked_size(described: Backbone, dtype: str, offload: bool) -> int:
    """Bytes of the weights.

    SSDError with what would fit, where not even the smallest run does on an otherwise empty device.
    """
    device = mm.get_torch_device()
    free = mm.get_free_memory(device) + sum(
        one.model_loaded_memory() for one in mm.current_loaded_models
        if one.device == device and device.type != "cpu" and one.model is not None)
    told = fit(described, AR(), dtype=dtype, guided=False, device=str(device), offload=offload,
               free=int(free))
    if not told.fits and device.type != "privateuseone":  # DirectML's memory is not known
        raise SSDError(f"backbone {described.name} in {dtype} does not fit on {device}, not even "
                       f"for one picture without guidance: {told.advice}")
    return told.weights


def heads(path: Path, for_backbone: LoadedBackbone) -> LoadedHeads:
    """Heads of exactly this backbone; SSDError names both where they are another's."""
    module = for_backbone.module

    def make() -> LoadedHeads:
        drafts = load_heads(path, module)
        return LoadedHeads(path, drafts, patcher_of(drafts))

    return _once(LoadedHeads, (path, module.sha256, module.dtype), make)


def _once(kind: type[Kept], key: tuple, make: Callable[[], Kept]) -> Kept:
    """What `make` makes, unless it is there; key: the file first."""
    key = (*key, os.stat(key[0]).st_mtime_ns)
    if not isinstance(there := _LOADED.get(key), kind):
        with torch.inference_mode(False):  # ComfyUI moves weights outside of inference mode too
            there = _LOADED[key] = make()
    return there


@contextmanager
def resident(loaded: Sequence[LoadedWeights | None], extra_bytes: int,
             remedy: str = "use a smaller dtype or offload in Load Backbone") -> Iterator[None]:
    """All of `loaded` on the device, with room for `extra_bytes` more, while the block runs.

    Where the memory does not suffice, SSDError says what was needed and what to do (`remedy`).
    """
    there = [one for one in loaded if one is not None]
    with moved([patcher for one in there for patcher in one.patchers], there, extra_bytes,
               remedy):
        yield


@contextmanager
def codec_resident(backbone: LoadedBackbone, extra_bytes: int) -> Iterator[None]:
    """As `resident`, for the picture codec alone."""
    with moved([backbone.codec], [backbone], extra_bytes, "give it fewer or smaller pictures"):
        yield


@contextmanager
def moved(patchers: Sequence[WholePatcher], loaded: Sequence[LoadedWeights], extra_bytes: int,
          remedy: str) -> Iterator[None]:
    needed = extra_bytes + sum(patcher.model_size() for patcher in patchers)
    try:
        for one in loaded:
            if isinstance(turns := getattr(one.module, "turns", None), ManagedTurns):
                turns.begin(extra_bytes)
        move(patchers, extra_bytes)
        yield
    except Exception as error:
        if not is_oom(error):
            raise
        clear_frames(error.__traceback__)  # they hold the run, and with it its cache
        raise SSDError(out_of_memory(needed, remedy)) from error
    finally:
        mm.soft_empty_cache()


def move(patchers: Sequence[WholePatcher], room: int) -> None:
    with torch.inference_mode(False):  # moved under it, weights could not be used outside
        mm.load_models_gpu(list(patchers), memory_required=room, force_full_load=True)


def is_oom(error: BaseException) -> bool:
    """Out of memory; ComfyUI's own judgement, where it has one, also clears CUDA's error state."""
    judge = getattr(mm, "is_oom", lambda e: isinstance(e, mm.OOM_EXCEPTION))  # 0.3.64 has none
    return judge(error) or is_out_of_memory(error)


def out_of_memory(needed: int, remedy: str) -> str:
    device = mm.get_torch_device()
    mm.unload_all_models()
    return (f"out of memory on {device}: about {needed / 2**20:.0f} MiB are needed, "
            f"{mm.get_free_memory(device) / 2**20:.0f} MiB are free now that all models were "
            f"unloaded: {remedy}")
