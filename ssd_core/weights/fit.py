"""Will it fit: the memory that a run takes, estimated before anything is loaded.

Counts weights, keys and values, the widest pass of the method, and the picture codec; says which
setting would fit where this one does not. Estimates are about right and rather too high than too
low. Knows nothing of what else is on the device.
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

# Bytes of one weight of a layer's matrices; int4 has a scale and a zero for every 128.
WEIGHT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "int8": 1, "int4": 0.5 + 4 / 128}
SHORT_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
# Float32 tensors that are alive at once, measured: distributions of a pass (p, q, and the noise
# while it is made), noise of a whole picture while it is made, feature maps of the codec.
PASS_COPIES, NOISE_COPIES, CODEC_COPIES = 14, 9, 6
MARGIN = 1.05  # what is lost between blocks
LONG_PROMPT, MANY = 128, 1000  # ids: a prompt where the limit is many, which nobody writes


@dataclass(frozen=True)
class Figures:
    """What memory depends on, of a backbone that is loaded or merely known."""

    name: str
    shape: DecoderShape
    grid: Grid
    codes: int
    preset: Preset
    patch: int
    prompt_slots: int
    other_parameters: int  # outside the layers and the codec: embeddings, norm, head
    codec_parameters: int
    codec_channels: float  # that a pixel has where the codec is widest
    dtype: str = "bf16"
    offload: bool = False

    @property
    def matrices(self) -> int:
        """Parameters of all layers."""
        s = self.shape
        attention = 2 * s.hidden * s.head_dim * (s.heads + s.kv_heads)
        return s.layers * (attention + 3 * s.hidden * s.ffn)

    def resized(self, size: tuple[int, int] | None) -> Figures:
        """The same at (width, height) px; whether it may draw that is the backbone's to say."""
        if size is None:
            return self
        columns, rows = (side // self.patch for side in size)
        if (columns * self.patch, rows * self.patch) != tuple(size):
            raise SSDError(f"size {size[0]}x{size[1]}: {self.name} draws in steps of {self.patch} "
                           "pixels")
        return replace(self, grid=Grid(rows, columns, self.grid.row_end))


@dataclass(frozen=True)
class Setting:
    """What a run was asked to be like; every step of the advice changes one of these."""

    batch: int = 1
    dtype: str = "bf16"
    guided: bool = True
    offload: bool = False  # the decoder leaves the device before the codec comes

    @property
    def rows(self) -> int:
        return self.batch * (1 + self.guided)

    @property
    def number_bytes(self) -> int:
        """Of activations, keys and values, and of weights that are not quantised."""
        return 4 if self.dtype == "fp32" else 2


@dataclass(frozen=True)
class Fit:
    """Bytes. `free` includes what the backbone itself already holds; None where it is unknown."""

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
class Run:
    """The parts of a run's memory, in bytes, for one setting."""

    figures: Figures
    method: Resolved
    setting: Setting
    head_parameters: int = 0
    keep_rows: int = 0
    on_card: bool = True  # decoder and codec can take turns there, the other one waits on the CPU

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
        return cache_bytes(self.figures, self.setting)

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
        """The most at any time, and a margin. Pixels come when keys and values are gone."""
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

    dtype auto is a loaded backbone's own, else bf16; int8 and int4 are of the layers' weights.
    guided None follows the backbone's preset, offload None what a loaded one does. Without `heads`
    those that the method needs count. replaced: a loaded one that will be dropped first. free:
    bytes that a host can provide there; None asks the device. Raises SSDError for what cannot be.
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
        raise SSDError("offload frees a card's memory, and this is about the CPU's: leave it out")
    run = Run(figures, method, Setting(batch, dtype, guided, offload),
              head_parameters(figures, method, heads), keep_rows, chosen.type != "cpu")
    if free is None and (free := free_bytes(chosen)) is not None:
        free += held_bytes(target, chosen) + held_bytes(replaced, chosen)
    fits = None if free is None else run.needed <= free
    return Fit(run.decoder + run.codec, run.cache, run.activations, run.pixels, run.needed, free,
               fits, advice(run, free))


def run_bytes(backbone: Backbone, pictures: int, guided: bool, cells: int, keep_rows: int = 0,
              prompt_slots: int | None = None) -> int:
    """What a run of passes over `cells` cells takes at most besides the weights."""
    figures = figures_of(backbone, prompt_slots)
    setting = Setting(pictures, figures.dtype, guided)
    drawing = cache_bytes(figures, setting) + activation_bytes(figures, setting, cells, keep_rows)
    return max(drawing, pixel_bytes(figures))


# Figures


def figures_of(target: Figures | Backbone | KnownBackbone,
               prompt_slots: int | None = None) -> Figures:
    """The figures of whatever describes a backbone; prompts have up to `prompt_slots` ids."""
    if isinstance(target, Figures):
        figures = target
    elif isinstance(target, KnownBackbone):
        figures = figures_of_row(target)
    else:
        figures = figures_of_backbone(target)
    return figures if prompt_slots is None else replace(figures, prompt_slots=prompt_slots)


def figures_of_row(row: KnownBackbone) -> Figures:
    """Text embedding, table of codes and head, each as wide as the decoder."""
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
    """How the layers' weights are held: those of int8 and int4 call themselves bf16 or fp32."""
    weight = backbone.decoder.layers[0].get_parameter("qkv")
    each = stored_bytes(weight) / weight.numel()
    return "int4" if each < 0.75 else "int8" if each < 1.5 else SHORT_NAMES[backbone.dtype]


def stored_bytes(weight: torch.Tensor) -> int:
    """Of a tensor, or of those that a quantised one is made of."""
    if not hasattr(weight, "__tensor_flatten__"):
        return weight.numel() * weight.element_size()
    return sum(stored_bytes(getattr(weight, name)) for name in weight.__tensor_flatten__()[0])


def codec_channels(codec: nn.Module, patch: int) -> float:
    """Channels of a pixel at the codec's widest; one without levels works on whole cells."""
    if (shape := getattr(codec, "shape", None)) is not None:
        return max(shape.widths[:2])
    channels = (m.out_channels for m in codec.modules() if isinstance(m, nn.Conv2d))
    return max(channels, default=0) / patch**2


def head_parameters(figures: Figures, method: Resolved, heads: DraftHeads | None) -> int:
    """Of the heads that are loaded, else of those that the method cannot do without."""
    if heads is not None:
        return sum(weight.numel() for weight in heads.parameters()) * method.uses_heads
    return sum(method.heads_needed(figures.grid) or (0,)) * 8 * figures.shape.hidden**2


# Bytes


def cache_bytes(figures: Figures, setting: Setting) -> int:
    """Keys and values of all rows: prompt and picture."""
    s = figures.shape
    slots = figures.prompt_slots + figures.grid.slots
    return 2 * s.layers * setting.rows * s.kv_heads * slots * s.head_dim * setting.number_bytes


def activation_bytes(figures: Figures, setting: Setting, cells: int, keep_rows: int = 0) -> int:
    """Hidden states of the picture, and the most of: its noise in the making, a pass."""
    s, grid = figures.shape, figures.grid
    fed = max(cells, figures.prompt_slots + keep_rows * grid.width)
    states = setting.rows * (grid.slots + 1) * s.hidden * setting.number_bytes
    noise = 4 * min(setting.batch * (grid.slots + 1) * figures.codes, HELD_NUMBERS)
    distributions = PASS_COPIES * 4 * setting.batch * cells * figures.codes
    layers = layer_bytes(figures, setting, fed) + mask_bytes(figures, setting, cells)
    return states + max(NOISE_COPIES * noise,
                        noise + max(layers, distributions))


def layer_bytes(figures: Figures, setting: Setting, fed: int) -> int:
    """What one layer's attention or feed-forward holds while `fed` slots of every row pass it."""
    s, size = figures.shape, setting.number_bytes
    rotated = 3 * 4 * (s.heads + s.kv_heads) * s.head_dim  # in float32
    return setting.rows * fed * (4 * s.hidden * size + max(4 * s.ffn * size, rotated))


def mask_bytes(figures: Figures, setting: Setting, cells: int) -> int:
    """Which slots `cells` cells see: made for a head, then repeated for those that share keys.

    A prefill, however long, needs none.
    """
    s = figures.shape
    slots = figures.prompt_slots + figures.grid.slots
    return setting.rows * cells * slots * (1 + s.heads // s.kv_heads) * setting.number_bytes


def pixel_bytes(figures: Figures) -> int:
    """Decoding one picture in float32: they come one after the other."""
    pixels = figures.grid.cells * figures.patch**2
    return int(CODEC_COPIES * 4 * figures.codec_channels * pixels)


# Advice


def advice(run: Run, free: int | None) -> str:
    """One line: that it fits, or the first change that would make it, or all of them together."""
    if free is None:
        return f"about {gib(run.needed)} are needed; how much is free here is unknown"
    if run.needed <= free:
        return f"fits: about {gib(run.needed)} of {gib(free)} free"
    short = f"about {gib(run.needed)} are needed, {gib(free)} are free: "
    for words, changed in changes(run):
        if changed.needed <= free:
            return f"{short}{words} would fit (about {gib(changed.needed)})"
    return f"{short}does not fit by any setting; use a smaller backbone"


def changes(run: Run) -> Iterator[tuple[str, Run]]:
    """Every change alone, then ever more of them together, in the order they are to be tried."""
    steps = [step for step in STEPS if helps(step, run)]
    for step in steps:
        yield step.words, step.taken(run)
    for count in range(2, len(steps) + 1):
        named = {step.setting: step for step in steps[:count]}  # the last word on each setting
        together = run
        for step in named.values():
            together = step.taken(together)
        yield " plus ".join(step.words for step in named.values()), together


class Step(NamedTuple):
    """One change that may make a run smaller."""

    words: str
    setting: str
    change: Callable[[Setting], Setting]

    def taken(self, run: Run) -> Run:
        return replace(run, setting=self.change(run.setting))


STEPS = (Step("dtype bf16", "dtype", lambda setting: replace(setting, dtype="bf16")),
         Step("batch 1", "batch", lambda setting: replace(setting, batch=1)),
         Step("int8 weights", "dtype", lambda setting: replace(setting, dtype="int8")),
         Step("int4 weights", "dtype", lambda setting: replace(setting, dtype="int4")),
         Step("offloading decoder and codec in turn", "offload",
              lambda setting: replace(setting, offload=True)),
         Step("cfg 1 (no guidance)", "guided", lambda setting: replace(setting, guided=False)))


def helps(step: Step, run: Run) -> bool:
    possible = run.on_card or step.setting != "offload"
    return possible and step.taken(run).needed < run.needed


def gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**29 else f"{count / 2**20:.0f} MiB"


# Memory


def held_bytes(target: object, device: torch.device) -> int:
    """What a loaded backbone already takes of a device's memory."""
    weights = target.parameters() if isinstance(target, Backbone) else ()
    return sum(stored_bytes(weight) for weight in weights if weight.device.type == device.type)


def free_bytes(device: torch.device) -> int | None:
    """Free memory of a device, or None where it cannot be known."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "xpu":
        return torch.xpu.mem_get_info(device)[0]
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory()
    return free_main_memory()


def free_main_memory() -> int | None:
    """By psutil where it is installed, else as Linux tells it."""
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
