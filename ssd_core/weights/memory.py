"""Count the bytes of a run: weights, keys and values, a pass, pixels, graphs.

The constants are measured (benchmarks/memory.py). Knows no device and nothing about free memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch

from ..engine.graphs import pool_bytes
from ..engine.heads import DraftHeads
from ..engine.methods import Method
from ..model.kv_cache import slots_made
from ..model.noise import CACHED_NUMBERS, SLAB_NUMBERS
from ..model.products import EXACT, STORED_AS_FP32
from ..model.transformer import cache_dtype
from .figures import ModelSize

# Bytes per weight of a layer's matrices; int4 adds a scale and a zero point per 128 weights.
WEIGHT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int4": 0.5 + 4 / 128}
# Measured number of float32 tensors alive at once: distributions of a pass (p, q and noise under
# computation), noise of a picture under computation, feature maps of the codec.
PASS_COPIES, NOISE_COPIES, CODEC_COPIES = 10.5, 7, 5
MARGIN = 1.05  # for memory fragmentation


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
class Memory:
    """The parts of a run's memory, in bytes, for one setting."""

    figures: ModelSize
    method: Method
    setting: Setting
    head_parameters: int = 0
    keep_rows: int = 0
    on_card: bool = True  # offload needs a card
    graphs: bool = False  # whether passes are replayed as CUDA graphs

    @property
    def decoder(self) -> int:
        figures, s = self.figures, self.setting
        matrices = figures.matrices
        plain = figures.other_parameters + self.head_parameters
        if s.dtype == "int8":  # the image head and the draft heads are integers, too
            matrices += figures.image_head + self.head_parameters
            plain -= figures.image_head + self.head_parameters
        return int(matrices * matrix_bytes(figures, s)) + plain * s.number_bytes

    @property
    def codec(self) -> int:
        return 4 * self.figures.codec_parameters

    @property
    def cache(self) -> int:
        return cache_bytes(self.figures, self.setting, self.method.scratch(self.figures.grid))

    @property
    def activations(self) -> int:
        return self.resident + self.working

    @property
    def resident(self) -> int:
        """Hidden states and noise, which stay for the whole run."""
        return resident_bytes(self.figures, self.setting)

    @property
    def working(self) -> int:
        """Temporary tensors of one pass and its verification."""
        return working_bytes(self.figures, self.setting, self.cells, self.keep_rows)

    @property
    def cells(self) -> int:
        grid, device = self.figures.grid, "cuda" if self.on_card else "cpu"
        return self.method.for_device(grid, device).widest_pass(grid)

    @property
    def pixels(self) -> int:
        return pixel_bytes(self.figures)

    @property
    def graph_pool(self) -> int:
        """An allowance for the memory that CUDA graphs keep between passes; 0 without graphs."""
        if not self.graphs or self.setting.offload:
            return 0
        distribution = distribution_bytes(self.figures, self.setting, self.cells)
        return pool_bytes(self.working, distribution)

    @property
    def needed(self) -> int:
        """Peak memory with a margin.

        Previews decode pixels while keys and values are in memory; with offload there are none.
        """
        lasting = self.cache + self.resident + self.graph_pool
        at_once = self.decoder + self.codec + lasting + max(self.working, self.pixels)
        if self.setting.offload:
            at_once = max(self.decoder + lasting + self.working, self.codec + self.pixels)
        return int(MARGIN * at_once)


def head_parameters(figures: ModelSize, method: Method, heads: DraftHeads | None) -> int:
    """Parameters of the loaded heads, or of those that the method requires."""
    if heads is not None:
        return sum(weight.numel() for weight in heads.parameters()) * method.uses_heads
    return sum(method.heads_needed(figures.grid) or (0,)) * 8 * figures.shape.hidden**2


def matrix_bytes(figures: ModelSize, setting: Setting) -> float:
    """Bytes per number of a layer's matrices; without a kernel, small int8 matrices are fp32."""
    small = prod(figures.largest_matrix) <= STORED_AS_FP32
    if setting.dtype == "int8" and not setting.kernel and small:
        return WEIGHT_BYTES["fp32"]
    return WEIGHT_BYTES[setting.dtype]


def cache_bytes(figures: ModelSize, setting: Setting, scratch: int = 0) -> int:
    """Bytes of keys and values for prompt, picture and `scratch` slots of all sequences."""
    s, dtype = figures.shape, setting.cache_dtype
    slots = slots_made(figures.prompt_slots + figures.grid.slots + scratch, dtype,
                       torch.device(setting.device))
    return 2 * s.layers * setting.sequences * s.kv_heads * slots * s.head_dim * dtype.itemsize


def resident_bytes(figures: ModelSize, setting: Setting) -> int:
    """Bytes of hidden states, and of a picture's noise if it is small enough to be stored."""
    slots = figures.grid.slots + 1
    states = setting.sequences * slots * figures.shape.hidden * setting.number_bytes
    numbers = slots * figures.codes
    return states + 4 * setting.batch * numbers * (numbers <= CACHED_NUMBERS)


def working_bytes(figures: ModelSize, setting: Setting, cells: int, keep_rows: int = 0) -> int:
    """Bytes of a pass over `cells` cells, or of a slab of noise if that is more."""
    fed = max(cells, figures.prompt_slots + keep_rows * figures.grid.width)
    slab = min(setting.batch * (figures.grid.slots + 1) * figures.codes,
               max(SLAB_NUMBERS, setting.batch * figures.codes))
    distributions = PASS_COPIES * distribution_bytes(figures, setting, cells)
    layer = layer_bytes(figures, setting, fed) + unpacked_bytes(figures, setting)
    return int(max(mask_bytes(figures, setting, cells) + max(layer, distributions),
                   4 * NOISE_COPIES * slab))


def distribution_bytes(figures: ModelSize, setting: Setting, cells: int) -> int:
    """Bytes of p [B, cells, codes], float32."""
    return 4 * setting.batch * cells * figures.codes


def unpacked_bytes(figures: ModelSize, setting: Setting) -> int:
    """Bytes of a piece of the largest matrix as fp32, where no kernel multiplies integers."""
    outputs, inputs = figures.largest_matrix
    unpacked = setting.dtype == "int8" and not setting.kernel and outputs * inputs > STORED_AS_FP32
    return 4 * outputs * min(inputs, EXACT) * unpacked


def layer_bytes(figures: ModelSize, setting: Setting, fed: int) -> int:
    """Bytes of one layer's attention or feed-forward network with `fed` slots per sequence."""
    s, size = figures.shape, setting.number_bytes
    rotated = 3 * 4 * (s.heads + s.kv_heads) * s.head_dim  # computed in float32
    return setting.sequences * fed * (4 * s.hidden * size + max(4 * s.ffn * size, rotated))


def mask_bytes(figures: ModelSize, setting: Setting, cells: int) -> int:
    """Bytes of the attention mask: made for one head, then repeated for heads that share keys.

    A prefill of any length needs no mask.
    """
    s = figures.shape
    slots = figures.prompt_slots + figures.grid.slots
    return setting.sequences * cells * slots * (1 + s.heads // s.kv_heads) * setting.number_bytes


def pixel_bytes(figures: ModelSize) -> int:
    """Bytes to decode one picture in float32; pictures are decoded one after the other."""
    pixels = figures.grid.cells * figures.patch**2
    return int(CODEC_COPIES * 4 * figures.codec_channels * pixels)
