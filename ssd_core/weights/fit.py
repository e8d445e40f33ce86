"""Will it fit: estimate a run's memory before anything is loaded.

Counts weights, keys and values, the method's widest pass, and the picture codec. If a run does not
fit, advises which setting would. Estimates are approximate and tend to be too high. Knows nothing
about other programs on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from ..backbones.base import Backbone, Preset
from ..engine.heads import DraftHeads
from ..engine.methods import Method, Resolved
from ..errors import SSDError
from ..model.grid import Grid
from ..model.noise import HELD_NUMBERS
from ..model.transformer import DecoderShape
from .catalogue import KnownBackbone
from .load import pick_device

# Bytes per weight of a layer's matrices; int4 adds a scale and a zero point per 128 weights.
WEIGHT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "int8": 1, "int4": 0.5 + 4 / 128}
SHORT_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
# Measured number of float32 tensors alive at once: distributions of a pass (p, q and noise under
# computation), noise of a whole picture under computation, feature maps of the codec.
PASS_COPIES, NOISE_COPIES, CODEC_COPIES = 14, 9, 6
MARGIN = 1.05  # for memory fragmentation
LONG_PROMPT, MANY = 128, 1000  # prompt length assumed where the limit is at least MANY


@dataclass(frozen=True)
class Figures:
    """What a backbone's memory depends on, whether it is loaded or only known."""

    name: str
    shape: DecoderShape
    grid: Grid
    codes: int
    preset: Preset
    patch: int
    prompt_slots: int
    other_parameters: int  # outside the layers and the codec: embeddings, norm, head
    codec_parameters: int
    codec_channels: float  # per pixel, at the codec's widest layer
    dtype: str = "bf16"
    offload: bool = False

    @property
    def matrices(self) -> int:
        """Parameters in the matrices of all layers."""
        s = self.shape
        attention = 2 * s.hidden * s.head_dim * (s.heads + s.kv_heads)
        return s.layers * (attention + 3 * s.hidden * s.ffn)

    def resized(self, size: tuple[int, int] | None) -> Figures:
        """The same at (width, height) px; does not check that the backbone supports this size."""
        if size is None:
            return self
        columns, rows = (side // self.patch for side in size)
        if (columns * self.patch, rows * self.patch) != tuple(size):
            raise SSDError(f"size {size[0]}x{size[1]}: {self.name} draws in steps of {self.patch} "
                           "pixels")
        return replace(self, grid=Grid(rows, columns, self.grid.row_end))


@dataclass(frozen=True)
class Setting:
    """The settings of a run that `advice` may change."""

    batch: int = 1
    dtype: str = "bf16"
    guided: bool = True
    offload: bool = False  # the decoder leaves the device before the codec is loaded

    @property
    def rows(self) -> int:
        return self.batch * (1 + self.guided)

    @property
    def number_bytes(self) -> int:
        """Bytes per number of activations, keys, values and unquantised weights."""
        return 4 if self.dtype == "fp32" else 2


@dataclass(frozen=True)
class Fit:
    """A run's memory in bytes. `free` includes what the backbone already uses; None if unknown."""

    weights: int
    cache: int
    activations: int
    pixels: int
    needed: int
    free: int | None
    fits: bool | None
    advice: str

    def to_json(self) -> dict:
        return asdict(self)


@dataclass(frozen=True)
class Memory:
    """The parts of a run's memory, in bytes, for one setting."""

    figures: Figures
    method: Resolved
    setting: Setting
    head_parameters: int = 0
    keep_rows: int = 0
    on_card: bool = True  # only there decoder and codec can be offloaded in turn

    @property
    def decoder(self) -> int:
        s = self.setting
        plain = self.figures.other_parameters + self.head_parameters
        return int(self.figures.matrices * WEIGHT_BYTES[s.dtype]) + plain * s.number_bytes

    @property
    def codec(self) -> int:
        return 4 * self.figures.codec_parameters

    @property
    def cache(self) -> int:
        return cache_bytes(self.figures, self.setting, self.method.scratch(self.figures.grid))

    @property
    def activations(self) -> int:
        device = "cuda" if self.on_card else "cpu"
        cells = self.method.widest_pass(self.figures.grid, device)
        return activation_bytes(self.figures, self.setting, cells, self.keep_rows)

    @property
    def pixels(self) -> int:
        return pixel_bytes(self.figures)

    @property
    def needed(self) -> int:
        """Peak memory with a margin. Keys and values are freed before pixels are decoded."""
        drawing = self.cache + self.activations
        at_once = self.decoder + self.codec + max(drawing, self.pixels)
        if self.setting.offload:
            at_once = max(self.decoder + drawing, self.codec + self.pixels)
        return int(MARGIN * at_once)


def fit(target: Figures | Backbone | KnownBackbone, method: Method, batch: int = 1,
        dtype: str = "auto", guided: bool | None = None, size: tuple[int, int] | None = None,
        device: str = "auto", heads: DraftHeads | None = None, keep_rows: int = 0,
        prompt_slots: int | None = None, offload: bool | None = None,
        replaced: Backbone | None = None, free: int | None = None) -> Fit:
    """Estimate a run of `batch` pictures against the free memory of the device.

    dtype: "auto" is a loaded backbone's own, else bf16; int8 and int4 apply to the layers'
    matrices. guided: None follows the backbone's preset. offload: None is a loaded backbone's
    setting. heads: None counts the heads that the method needs. replaced: a loaded backbone that
    will be dropped first. free: bytes available; None asks the device. Raises SSDError for
    impossible settings.
    """
    figures = figures_of(target, prompt_slots).resized(size)
    method = method.resolved(figures.preset)
    dtype = figures.dtype if dtype == "auto" else dtype
    if dtype not in WEIGHT_BYTES:
        raise SSDError(f"dtype {dtype!r}: choose auto, {', '.join(WEIGHT_BYTES)}")
    if batch < 1:
        raise SSDError(f"batch {batch}: must be at least 1")
    guided = figures.preset.cfg != 1 if guided is None else guided
    offload = figures.offload if offload is None else offload
    chosen = pick_device(device)
    if offload and chosen.type == "cpu":
        raise SSDError("offload saves memory on a graphics card, the device is a CPU: leave it out")
    memory = Memory(figures, method, Setting(batch, dtype, guided, offload),
              head_parameters(figures, method, heads), keep_rows, chosen.type != "cpu")
    if free is None and (free := free_bytes(chosen)) is not None:
        free += held_bytes(target, chosen) + held_bytes(replaced, chosen)
    fits = None if free is None else memory.needed <= free
    return Fit(memory.decoder + memory.codec, memory.cache, memory.activations, memory.pixels,
               memory.needed, free, fits, advice(memory, free))


def run_bytes(backbone: Backbone, pictures: int, guided: bool, cells: int, keep_rows: int = 0,
              prompt_slots: int | None = None, scratch: int = 0) -> int:
    """Peak bytes of a run besides the weights, for passes over at most `cells` cells."""
    figures = figures_of(backbone, prompt_slots)
    setting = Setting(pictures, figures.dtype, guided)
    cache = cache_bytes(figures, setting, scratch)
    return max(cache + activation_bytes(figures, setting, cells, keep_rows), pixel_bytes(figures))


# Figures


def figures_of(target: Figures | Backbone | KnownBackbone,
               prompt_slots: int | None = None) -> Figures:
    """The figures of anything that describes a backbone; prompts have up to `prompt_slots` ids."""
    if isinstance(target, Figures):
        figures = target
    elif isinstance(target, KnownBackbone):
        figures = figures_of_row(target)
    else:
        figures = figures_of_backbone(target)
    return figures if prompt_slots is None else replace(figures, prompt_slots=prompt_slots)


def figures_of_row(row: KnownBackbone) -> Figures:
    """The figures of a catalogue row; embeddings and head are as wide as the decoder."""
    others = (row.vocabulary + 2 * row.codes + 1) * row.shape.hidden
    return Figures(row.name, row.shape, row.grid, row.codes, row.preset, row.patch,
                   row.prompt_slots, others, row.codec_parameters, row.codec_channels)


def figures_of_backbone(backbone: Backbone) -> Figures:
    codec = getattr(backbone, "picture_codec", None) or nn.Identity()
    patch = backbone.size[0] // backbone.grid.columns
    count = sum(weight.numel() for weight in backbone.parameters())
    in_codec = sum(weight.numel() for weight in codec.parameters())
    prompt = backbone.prompt_limit + 2 if backbone.prompt_limit < MANY else LONG_PROMPT
    figures = Figures(backbone.name, backbone.decoder.shape, backbone.grid, backbone.codes,
                      backbone.preset, patch, prompt, 0, in_codec,
                      codec_channels(codec, patch), stored_dtype(backbone),
                      backbone.turns is not None)
    return replace(figures, other_parameters=count - in_codec - figures.matrices)


def stored_dtype(backbone: Backbone) -> str:
    """The dtype in which layer weights are stored; quantised tensors report another one."""
    weight = backbone.decoder.layers[0].get_parameter("qkv")
    each = stored_bytes(weight) / weight.numel()
    return "int4" if each < 0.75 else "int8" if each < 1.5 else SHORT_NAMES[backbone.dtype]


def stored_bytes(weight: torch.Tensor) -> int:
    """Bytes of a tensor, or of the tensors that a quantised one consists of."""
    if not hasattr(weight, "__tensor_flatten__"):
        return weight.numel() * weight.element_size()
    return sum(stored_bytes(getattr(weight, name)) for name in weight.__tensor_flatten__()[0])


def codec_channels(codec: nn.Module, patch: int) -> float:
    """Channels per pixel at the codec's widest; one without levels works on whole cells."""
    if (shape := getattr(codec, "shape", None)) is not None:
        return max(shape.widths[:2])
    channels = (m.out_channels for m in codec.modules() if isinstance(m, nn.Conv2d))
    return max(channels, default=0) / patch**2


def head_parameters(figures: Figures, method: Resolved, heads: DraftHeads | None) -> int:
    """Parameters of the loaded heads, or of those that the method requires."""
    if heads is not None:
        return sum(weight.numel() for weight in heads.parameters()) * method.uses_heads
    return sum(method.heads_needed(figures.grid) or (0,)) * 8 * figures.shape.hidden**2


# Bytes


def cache_bytes(figures: Figures, setting: Setting, scratch: int = 0) -> int:
    """Bytes of keys and values for prompt, picture and `scratch` slots, over all rows."""
    s = figures.shape
    slots = figures.prompt_slots + figures.grid.slots + scratch
    return 2 * s.layers * setting.rows * s.kv_heads * slots * s.head_dim * setting.number_bytes


def activation_bytes(figures: Figures, setting: Setting, cells: int, keep_rows: int = 0) -> int:
    """Bytes of hidden states, plus the larger of computing the noise and running a pass."""
    s, grid = figures.shape, figures.grid
    fed = max(cells, figures.prompt_slots + keep_rows * grid.width)
    states = setting.rows * (grid.slots + 1) * s.hidden * setting.number_bytes
    noise = 4 * min(setting.batch * (grid.slots + 1) * figures.codes, HELD_NUMBERS)
    distributions = PASS_COPIES * 4 * setting.batch * cells * figures.codes
    layers = layer_bytes(figures, setting, fed) + mask_bytes(figures, setting, cells)
    return states + max(NOISE_COPIES * noise,
                        noise + max(layers, distributions))


def layer_bytes(figures: Figures, setting: Setting, fed: int) -> int:
    """Bytes of one layer's attention or feed-forward network with `fed` slots per row."""
    s, size = figures.shape, setting.number_bytes
    rotated = 3 * 4 * (s.heads + s.kv_heads) * s.head_dim  # computed in float32
    return setting.rows * fed * (4 * s.hidden * size + max(4 * s.ffn * size, rotated))


def mask_bytes(figures: Figures, setting: Setting, cells: int) -> int:
    """Bytes of the attention mask: made for one head, then repeated for heads that share keys.

    A prefill of any length needs no mask.
    """
    s = figures.shape
    slots = figures.prompt_slots + figures.grid.slots
    return setting.rows * cells * slots * (1 + s.heads // s.kv_heads) * setting.number_bytes


def pixel_bytes(figures: Figures) -> int:
    """Bytes to decode one picture in float32; pictures are decoded one after the other."""
    pixels = figures.grid.cells * figures.patch**2
    return int(CODEC_COPIES * 4 * figures.codec_channels * pixels)


# Advice


def advice(memory: Memory, free: int | None) -> str:
    """One line: that it fits, or the first change that would make it fit, alone or combined."""
    if free is None:
        return f"about {gib(memory.needed)} are needed; how much is free here is unknown"
    if memory.needed <= free:
        return f"fits: about {gib(memory.needed)} of {gib(free)} free"
    short = f"about {gib(memory.needed)} are needed, {gib(free)} are free: "
    for words, changed in changes(memory):
        if changed.needed <= free:
            return f"{short}{words} would fit (about {gib(changed.needed)})"
    return f"{short}does not fit by any setting; use a smaller backbone"


def changes(memory: Memory) -> Iterator[tuple[str, Memory]]:
    """Every single change, then combinations of more and more changes, in order of preference."""
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

    def taken(self, memory: Memory) -> Memory:
        return replace(memory, setting=self.change(memory.setting))


STEPS = (Step("dtype bf16", "dtype", lambda setting: replace(setting, dtype="bf16")),
         Step("batch 1", "batch", lambda setting: replace(setting, batch=1)),
         Step("int8 weights", "dtype", lambda setting: replace(setting, dtype="int8")),
         Step("int4 weights", "dtype", lambda setting: replace(setting, dtype="int4")),
         Step("offloading decoder and codec in turn", "offload",
              lambda setting: replace(setting, offload=True)),
         Step("cfg 1 (no guidance)", "guided", lambda setting: replace(setting, guided=False)))


def helps(step: Step, memory: Memory) -> bool:
    possible = memory.on_card or step.setting != "offload"
    return possible and step.taken(memory).needed < memory.needed


def gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**29 else f"{count / 2**20:.0f} MiB"


# Memory


def held_bytes(target: object, device: torch.device) -> int:
    """Device memory that a loaded backbone already uses."""
    weights = target.parameters() if isinstance(target, Backbone) else ()
    return sum(stored_bytes(weight) for weight in weights if weight.device.type == device.type)


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
