"""Weights under ComfyUI's own model management: loaded once, moved by it, given back to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import clear_frames
from weakref import WeakValueDictionary

import comfy.model_management as mm
import torch
from comfy.model_patcher import ModelPatcher
from torch import nn

from ..ssd_core import load_backbone, load_heads
from ..ssd_core.backbones.base import Backbone
from ..ssd_core.errors import SSDError
from ..ssd_core.heads import DraftHeads

# One copy however many nodes; an entry lives as long as some node's output does.
_LOADED: WeakValueDictionary[tuple, Loaded] = WeakValueDictionary()


class SSDWeights(nn.Module):
    """What a patcher moves: a module, and the plain tensors it holds that torch does not know of.

    ComfyUI writes attributes of its own (`device` ...) on what it moves; they stay on this shell.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def _apply(self, fn: Callable, *args) -> SSDWeights:
        super()._apply(fn, *args)
        for name, value in vars(self.module).items():
            if isinstance(value, torch.Tensor):
                setattr(self.module, name, fn(value))
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


@dataclass(eq=False)
class Loaded:
    """Weights and their patcher; `path` is the file they came from."""

    path: Path
    module: nn.Module
    patcher: WholePatcher


class LoadedBackbone(Loaded):
    module: Backbone


class LoadedHeads(Loaded):
    module: DraftHeads


def backbone(path: Path, dtype: str) -> LoadedBackbone:
    def load() -> Backbone:
        return load_backbone(path, device=str(mm.unet_offload_device()), dtype=dtype)

    return _once(LoadedBackbone, path, (dtype,), load)


def heads(path: Path, for_backbone: LoadedBackbone) -> LoadedHeads:
    """Heads of exactly this backbone; SSDError names both where they are another's."""
    module = for_backbone.module
    key = (module.sha256, module.dtype)
    return _once(LoadedHeads, path, key, lambda: load_heads(path, module))


def _once(kind: type[Loaded], path: Path, key: tuple, load: Callable[[], nn.Module]) -> Loaded:
    key = (path, os.stat(path).st_mtime_ns, *key)
    if (there := _LOADED.get(key)) is None:
        with torch.inference_mode(False):  # ComfyUI moves weights outside of inference mode too
            module = load()
        patcher = WholePatcher(SSDWeights(module), mm.get_torch_device(), mm.unet_offload_device())
        there = _LOADED[key] = kind(path, module, patcher)
    return there


@contextmanager
def resident(loaded: Sequence[Loaded | None], extra_bytes: int,
             remedy: str = "use a smaller dtype in Load Backbone") -> Iterator[None]:
    """All of `loaded` on the device, with room for `extra_bytes` more, while the block runs.

    Where the memory does not suffice, SSDError says what was needed and what to do (`remedy`).
    """
    patchers = [one.patcher for one in loaded if one is not None]
    needed = extra_bytes + sum(patcher.model_size() for patcher in patchers)
    try:
        mm.load_models_gpu(patchers, memory_required=extra_bytes, force_full_load=True)
        yield
    except Exception as error:
        if not is_oom(error):
            raise
        clear_frames(error.__traceback__)  # they hold the run, and with it its cache
        raise SSDError(out_of_memory(needed, remedy)) from error
    finally:
        mm.soft_empty_cache()


def is_oom(error: BaseException) -> bool:
    """Out of memory, by ComfyUI's own judgement where it has one (0.3.64 has none)."""
    judge = getattr(mm, "is_oom", lambda e: isinstance(e, mm.OOM_EXCEPTION))
    return judge(error)


def out_of_memory(needed: int, remedy: str) -> str:
    device = mm.get_torch_device()
    mm.unload_all_models()
    return (f"out of memory on {device}: about {needed / 2**20:.0f} MiB are needed, "
            f"{mm.get_free_memory(device) / 2**20:.0f} MiB are free now that all models were "
            f"unloaded: {remedy}")
