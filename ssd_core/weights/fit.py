"""Compares a run's memory with the free memory, before anything is loaded.

If a run does not fit, suggests a setting that would. Knows nothing about other programs on the
device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import torch

from ..backbones.base import Backbone
from ..engine.graphs import graphs_off_reason
from ..engine.heads import DraftHeads
from ..engine.methods import Method
from ..errors import SSDError
from ..model.products import has_kernel
from .catalogue import KnownBackbone
from .eight_bits import EITHER, fastest
from .load import SMALL, pick_device, pick_dtype, plain_name
from .memory import WEIGHT_BYTES, MemoryEstimate, Setting, free_bytes
from .model_size import ModelSize, stored_bytes


@dataclass(frozen=True)
class Fit:
    """A run's memory in bytes.

    graphs: kept by CUDA graphs, 0 without them. free: includes what the backbone already uses; None
    if unknown. waiting: of the weights, those of layers that may wait on the CPU, as in ComfyUI.
    """

    weights: int
    cache: int
    activations: int
    pixels: int
    graphs: int
    needed: int
    free: int | None
    fits: bool | None
    advice: str
    waiting: int = 0

    def to_json(self) -> dict:
        return asdict(self)


def fit(target: ModelSize | Backbone | KnownBackbone, method: Method, batch: int = 1,
        dtype: str = "auto", guided: bool | None = None, size: tuple[int, int] | None = None,
        device: str = "auto", heads: DraftHeads | None = None, keep_rows: int = 0,
        prompt_slots: int | None = None, offload: bool | None = None,
        replaced: Backbone | None = None, free: int | None = None,
        graphs: bool | None = None) -> Fit:
    """Estimate a run of `batch` pictures against the free memory of the device.

    dtype: "auto" is a loaded backbone's own, else bf16; "8bit" the faster of int8 and fp8 on the
    device; fp8 and int4 apply to the layers' matrices,
    int8 also to the image head and the draft heads. guided: None follows the backbone's preset.
    offload: None is a loaded backbone's setting. heads: None counts the heads that the method
    needs. replaced: a loaded backbone that is freed first. free: bytes available; None asks the
    device. graphs: whether passes are replayed as CUDA graphs; None decides by device and backbone.
    Raises SSDError for impossible settings.
    """
    model = sized(target, size, prompt_slots)
    method = method.resolve(model.preset)
    chosen, dtype = pick_device(device), plain_name(dtype)
    if dtype in ("auto", EITHER):
        dtype = model.dtype if dtype == "auto" else fastest(chosen)
    if dtype not in WEIGHT_BYTES:
        raise SSDError(f"dtype {dtype!r}: choose auto, {', '.join((*WEIGHT_BYTES, EITHER))}")
    if batch < 1:
        raise SSDError(f"batch {batch}: must be at least 1")
    guided = model.preset.cfg != 1 if guided is None else guided
    offload = model.offload if offload is None else offload
    if offload and chosen.type == "cpu":
        raise SSDError("offload saves memory on a graphics card, the device is a CPU: leave it out")
    if graphs is None:
        graphs = not graphs_off_reason(chosen, getattr(target, "graphs", "auto"), offload)
    setting = Setting(batch, dtype, guided, offload,
                      beside_int8(target, model, dtype, chosen).itemsize, chosen.type,
                      multiplies_integers(chosen))
    memory = MemoryEstimate.of(model, method, setting, keep_rows=keep_rows, graphs=graphs,
                               head_parameters=head_parameters(model, method, heads))
    if free is None and (free := free_bytes(chosen)) is not None:
        free += held_bytes(target, chosen) + held_bytes(replaced, chosen)
    fits = None if free is None else memory.needed <= free
    return Fit(memory.decoder + memory.codec, memory.cache, memory.activations, memory.pixels,
               memory.graph_pool, memory.needed, free, fits, advice(memory, free), memory.waiting)


def sized(target: ModelSize | Backbone | KnownBackbone, size: tuple[int, int] | None,
          prompt_slots: int | None = None) -> ModelSize:
    """The sizes of a target at (width, height) px, also where a backbone draws others."""
    if isinstance(target, Backbone) and size in target.sizes:
        return ModelSize.of(target.resized(size), prompt_slots)
    return ModelSize.of(target, prompt_slots).resized(size)


def head_parameters(model: ModelSize, method: Method, heads: DraftHeads | None) -> int:
    """Parameters of the loaded heads, or of those that the method requires."""
    if heads is not None:
        return sum(weight.numel() for weight in heads.parameters()) * method.uses_heads
    return sum(method.heads_needed(model.grid) or (0,)) * 8 * model.shape.hidden**2


def beside_int8(target: object, model: ModelSize, dtype: str,
                device: torch.device) -> torch.dtype:
    """Return the dtype of the parts that int8 does not quantise."""
    if isinstance(target, Backbone) and dtype == model.dtype:
        return target.dtype
    return pick_dtype("int8", device, model.parameters <= SMALL)


def multiplies_integers(device: torch.device) -> bool:
    """Whether the device multiplies int8 matrices as integers; assumed for all cards."""
    return device.type not in ("cpu", "mps") or has_kernel(device)


def run_bytes(backbone: Backbone, pictures: int, guided: bool, cells: int, keep_rows: int = 0,
              prompt_slots: int | None = None, scratch: int = 0,
              device: torch.device | None = None) -> int:
    """Peak bytes of a run without the weights, for passes over at most `cells` cells.

    device: where the run takes place, if the backbone is elsewhere now.
    """
    model, device = ModelSize.of(backbone, prompt_slots), device or backbone.device
    setting = Setting(pictures, model.dtype, guided, beside_int8=backbone.dtype.itemsize,
                      device=device.type, kernel=multiplies_integers(device))
    return MemoryEstimate(model, setting, cells, scratch, keep_rows).run


def advice(memory: MemoryEstimate, free: int | None) -> str:
    """Say in one line that a run fits, or which change of settings would make it fit."""
    if free is None:
        return f"about {gib(memory.needed)} are needed; how much is free here is unknown"
    if memory.needed <= free:
        return f"about {gib(memory.needed)} are needed, {gib(free)} are free: it fits"
    short = f"about {gib(memory.needed)} are needed, {gib(free)} are free: "
    for words, changed in changes(memory):
        if changed.needed <= free:
            return f"{short}{words} would fit (about {gib(changed.needed)})"
    return f"{short}does not fit by any setting; use a smaller backbone"


def changes(memory: MemoryEstimate) -> Iterator[tuple[str, MemoryEstimate]]:
    """Yield single changes, then combinations of more and more, in order of preference."""
    steps = [step for step in STEPS if helps(step, memory)]
    for step in steps:
        yield step.words, step.taken(memory)
    for count in range(2, len(steps) + 1):
        named = {step.setting: step for step in steps[:count]}  # the last step wins
        together = memory
        for step in named.values():
            together = step.taken(together)
        yield " plus ".join(step.words for step in named.values()), together


class Step(NamedTuple):
    """A change of one setting that may reduce memory."""

    words: str
    setting: str
    change: Callable[[Setting], Setting]

    def taken(self, memory: MemoryEstimate) -> MemoryEstimate:
        return replace(memory, setting=self.change(memory.setting))


STEPS = (Step("dtype bf16", "dtype", lambda setting: replace(setting, dtype="bf16")),
         Step("batch 1", "batch", lambda setting: replace(setting, batch=1)),
         Step("int8 weights", "dtype", lambda setting: replace(setting, dtype="int8")),
         Step("int4 weights", "dtype", lambda setting: replace(setting, dtype="int4")),
         Step("offloading decoder and codec in turn", "offload",
              lambda setting: replace(setting, offload=True)),
         Step("cfg 1 (no guidance)", "guided", lambda setting: replace(setting, guided=False)))


def helps(step: Step, memory: MemoryEstimate) -> bool:
    possible = memory.setting.on_card or step.setting != "offload"
    return possible and step.taken(memory).needed < memory.needed


def gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**29 else f"{count / 2**20:.0f} MiB"


def held_bytes(target: object, device: torch.device) -> int:
    """Device memory that a loaded backbone already uses, with what its last run left there."""
    if not isinstance(target, Backbone):
        return 0
    weights = [weight for weight in target.parameters() if weight.device.type == device.type]
    return sum(map(stored_bytes, weights)) + target.session.nbytes


def make_room_for_pixels(backbone: Backbone) -> None:
    """Free what the last run left for the next one, if a picture's pixels do not fit beside it."""
    if backbone.session.nbytes and (free := free_bytes(backbone.device)) is not None:
        if backbone.device.type == "cuda":  # and what torch holds without using it
            free += torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        if MemoryEstimate(ModelSize.of(backbone)).pixels > free:
            backbone.session.release()
