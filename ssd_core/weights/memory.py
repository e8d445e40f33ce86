"""Count the bytes of a run and the free ones: weights, keys and values, a pass, pixels, graphs.

The constants are measured (lab/benchmarks/memory.py). Knows no device's other programs.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import torch

from ..backbones.sessions import release_all
from ..engine.graphs import KEYS, pool_bytes, rounded
from ..engine.methods import Method
from ..model.kv_cache import slots_made
from ..model.noise import CACHED_NUMBERS, SLAB_NUMBERS
from ..model.products import EXACT, STORED_AS_FP32
from ..model.transformer import cache_dtype
from .model_size import ModelSize

# Bytes per weight of a layer's matrices; int4 adds a scale and a zero point per 128 weights.
WEIGHT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int4": 0.5 + 4 / 128}
# Measured number of float32 tensors alive at once: distributions of a pass (p, q and noise under
# computation), noise of a picture under computation, feature maps of the codec.
PASS_COPIES, NOISE_COPIES, CODEC_COPIES = 10.5, 7, 5
MARGIN = 1.05  # for memory fragmentation
TEXTS = ("out of memory", "not enough memory", "can't allocate memory")
CUDA_CODE = 2  # cudaErrorMemoryAllocation, for errors whose text does not say it


@dataclass(frozen=True)
class Setting:
    """The settings of a run that `advice` may change, and properties of the device.

    device: its type. kernel: whether it multiplies integers; if not, products in int8 are fp32.
    """

    batch: int = 1
    dtype: str = "bf16"
    guided: bool = True
    offload: bool = False  # the decoder leaves the device before the codec is loaded
    beside_int8: int = 2  # bytes per number of the parts that int8 does not quantise
    device: str = "cuda"
    kernel: bool = True

    @property
    def on_card(self) -> bool:
        """Whether the device is a card, which has the widest passes and can offload."""
        return self.device != "cpu"

    @property
    def sequences(self) -> int:
        return self.batch * (1 + self.guided)

    @property
    def number_bytes(self) -> int:
        """Bytes per number of activations, keys, values and unquantised weights."""
        return {"fp32": 4, "int8": self.beside_int8}.get(self.dtype, 2)

    @property
    def cache_dtype(self) -> torch.dtype:
        """The dtype of keys and values."""
        beside = torch.float32 if self.beside_int8 == 4 else torch.bfloat16
        states = {"fp32": torch.float32, "fp16": torch.float16, "int8": beside}
        return cache_dtype(states.get(self.dtype, torch.bfloat16), torch.device(self.device),
                           self.dtype == "int8")


@dataclass(frozen=True)
class MemoryEstimate:
    """The memory of a run in bytes, part by part.

    cells: of a sequence in the widest pass. tree_slots: in the cache, behind the picture, for a
    tree of draft tokens. keep_rows: rows of another picture that the first pass reads.
    head_parameters: of the draft heads. graphs: whether passes are replayed as CUDA graphs.
    """

    model: ModelSize
    setting: Setting = Setting()
    cells: int = 1
    tree_slots: int = 0
    keep_rows: int = 0
    head_parameters: int = 0
    graphs: bool = False

    @classmethod
    def of(cls, model: ModelSize, method: Method, setting: Setting, **more: Any) -> MemoryEstimate:
        """The memory of a run by a resolved method. more: the remaining fields."""
        method = method.for_device(model.grid, "cuda" if setting.on_card else "cpu")
        return cls(model, setting, method.pass_width(model.grid),
                   method.scratch(model.grid), **more)

    # Sums

    @property
    def needed(self) -> int:
        """Peak memory with a margin; with offload, decoder and codec are there in turn."""
        at_once = self.decoder + self.codec + self.run
        if self.setting.offload:
            at_once = max(self.decoder + self.lasting + self.working, self.codec + self.pixels)
        return int(MARGIN * at_once)

    @property
    def run(self) -> int:
        """Peak memory beside the weights; previews decode pixels during the run."""
        return self.lasting + max(self.working, self.pixels)

    @property
    def lasting(self) -> int:
        """What stays for the whole run."""
        return self.cache + self.resident + self.graph_pool

    @property
    def activations(self) -> int:
        return self.resident + self.working

    # Weights

    @property
    def decoder(self) -> int:
        """Weights of the decoder and of the draft heads."""
        model, s = self.model, self.setting
        matrices = model.matrices
        plain = model.other_parameters + self.head_parameters
        if s.dtype == "int8":  # the image head and the draft heads are integers, too
            matrices += model.image_head + self.head_parameters
            plain -= model.image_head * (not model.tied) + self.head_parameters
        return int(matrices * self.matrix_bytes) + plain * s.number_bytes

    @property
    def matrix_bytes(self) -> float:
        """Bytes per number of a layer's matrices; without a kernel, small int8 ones are fp32."""
        small = prod(self.model.largest_matrix) <= STORED_AS_FP32
        unpacked = self.setting.dtype == "int8" and not self.setting.kernel and small
        return WEIGHT_BYTES["fp32" if unpacked else self.setting.dtype]

    @property
    def waiting(self) -> int:
        """The matrices of layers that may wait elsewhere: of all but one, and room for another."""
        layers = self.model.shape.layers
        return int(self.model.matrices * self.matrix_bytes * max(0, layers - 2) / layers)

    @property
    def codec(self) -> int:
        return 4 * self.model.codec_parameters

    # For the whole run

    @property
    def cache(self) -> int:
        """Keys and values of prompt, picture and tree, for all sequences."""
        s, dtype = self.model.shape, self.setting.cache_dtype
        slots = self.sequence_slots + self.tree_slots
        if self.setting.on_card:
            slots = rounded(slots + 1, KEYS)
        slots = slots_made(slots, dtype, torch.device(self.setting.device),
                           self.setting.dtype == "int8")
        return (2 * s.layers * self.setting.sequences * s.kv_heads * slots * s.head_dim
                * dtype.itemsize)

    @property
    def sequence_slots(self) -> int:
        """Slots of prompt and picture."""
        return self.model.prompt_slots + self.model.grid.slots

    @property
    def resident(self) -> int:
        """Hidden states, and a picture's noise if it is small enough to be stored."""
        slots = self.model.grid.slots + 1
        states = (self.setting.sequences * slots * self.model.shape.hidden
                  * self.setting.number_bytes)
        numbers = slots * self.model.codes
        return states + 4 * self.setting.batch * numbers * (numbers <= CACHED_NUMBERS)

    @property
    def graph_pool(self) -> int:
        """An allowance for the memory that CUDA graphs keep between passes; 0 without graphs."""
        if not self.graphs or self.setting.offload:
            return 0
        return pool_bytes(self.working, self.distribution)

    # For a while

    @property
    def working(self) -> int:
        """Temporary tensors of a pass and its verification, or of a slab of noise if it is more."""
        layer = self.layer + self.unpacked
        in_pass = self.mask + max(layer, PASS_COPIES * self.distribution)
        return int(max(in_pass, NOISE_COPIES * self.noise_slab))

    @property
    def fed(self) -> int:
        """Slots per sequence in the longest pass: the widest one, or prompt and first rows."""
        return max(self.cells, self.model.prompt_slots + self.keep_rows * self.model.grid.width)

    @property
    def layer(self) -> int:
        """One layer's attention or feed-forward network in the longest pass."""
        s, size = self.model.shape, self.setting.number_bytes
        rotated = 3 * 4 * (s.heads + s.kv_heads) * s.head_dim  # computed in float32
        return self.setting.sequences * self.fed * (
            4 * s.hidden * size + max(4 * s.ffn * size, rotated))

    @property
    def unpacked(self) -> int:
        """A piece of the largest matrix as fp32, where no kernel multiplies integers."""
        outputs, inputs = self.model.largest_matrix
        unpacked = (self.setting.dtype == "int8" and not self.setting.kernel
                    and outputs * inputs > STORED_AS_FP32)
        return 4 * outputs * min(inputs, EXACT) * unpacked

    @property
    def mask(self) -> int:
        """The attention mask: made for one head, then repeated for heads that share keys.

        A prefill of any length needs no mask.
        """
        s = self.model.shape
        return (self.setting.sequences * self.cells * self.sequence_slots
                * (1 + s.heads // s.kv_heads) * self.setting.number_bytes)

    @property
    def distribution(self) -> int:
        """p [B, cells, codes], float32."""
        return 4 * self.setting.batch * self.cells * self.model.codes

    @property
    def noise_slab(self) -> int:
        """Noise that is computed at once, float32."""
        codes = self.setting.batch * self.model.codes
        return 4 * min((self.model.grid.slots + 1) * codes, max(SLAB_NUMBERS, codes))

    @property
    def pixels(self) -> int:
        """Decoding one picture in float32; pictures are decoded one after the other."""
        pixels = self.model.grid.cells * self.model.patch**2
        return int(CODEC_COPIES * 4 * self.model.codec_channels * pixels)


def free_bytes(device: torch.device) -> int | None:
    """Free memory of a device in bytes, or None if unknown."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "xpu":
        return torch.xpu.mem_get_info(device)[0]
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory()
    return free_main_memory()


def free_main_memory() -> int | None:
    """Free main memory, from psutil if it is installed, else from Linux."""
    try:
        import psutil
    except ImportError:
        return free_linux_memory()
    return psutil.virtual_memory().available


def free_linux_memory(path: Path = Path("/proc/meminfo")) -> int | None:
    try:
        lines = dict(line.split(":") for line in path.read_text(encoding="ascii").splitlines())
        return int(lines["MemAvailable"].removesuffix("kB")) * 1024
    except (OSError, KeyError, ValueError):
        return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on any device, including those without an exception type for it."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and (
        getattr(error, "error_code", None) == CUDA_CODE
        or any(text in str(error).lower() for text in TEXTS))


def empty_caches() -> None:
    """Free unreferenced memory on every device, and what backbones keep for the next run."""
    release_all()
    gc.collect()
    for name, present in (("cuda", torch.cuda), ("mps", torch.backends.mps), ("xpu", torch.xpu)):
        if present.is_available():
            getattr(torch, name).empty_cache()


def trim() -> None:
    """Return freed host memory to the system; glibc would keep some 100 MiB of it."""
    if (give_back := _malloc_trim()) is not None:
        give_back(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return None
