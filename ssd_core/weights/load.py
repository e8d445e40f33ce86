"""Load backbones and draft heads, by bundled name, file or folder, or from a loaded model.

What depends on the width of a pass on the device that draws is measured at loading, in about 50 ms
for a small model, on a CPU or a CUDA card. A host that moves the weights to the card only later
measures then; unmeasured, nothing is guaranteed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from ..arguments import checked
from ..backbones.base import Backbone
from ..backbones.drafter import FORMAT as SAMPLERS_FORMAT
from ..backbones.drafter import Drafter, read_drafter
from ..backbones.estimates import Estimates
from ..backbones.families import families
from ..backbones.invariance import Widths, rounding
from ..backbones.offload import DeviceOffloader
from ..backbones.reading.adapters import Adapters
from ..backbones.reading.checkpoint import Checkpoint
from ..backbones.reading.tensor_files import adapters_beside
from ..backbones.reading.weights import LoadedModel
from ..engine.graphs import KEYS, checked_mode, rounded
from ..engine.heads import DraftHeads, read_heads
from ..engine.threads import using_threads
from ..errors import SSDError, first_line
from ..files import read_safetensors, user_path
from ..kept_entries import KeptEntries
from ..machine_faults import fault_of
from ..model.attention_kernel import one_attention_kernel
from ..model.knobs import flag
from ..model.processor import has_bf16
from ..model.products import has_kernel
from ..model.surroundings import undisturbed
from .catalogue import CATALOGUE
from .eight_bits import EITHER, fastest
from .find import HEADS_FILE, find_backbone, find_path, is_bundled
from .model_size import SHORT_NAMES
from .quantize import (
    ABOUT,
    KINDS,
    MATRICES,
    quantise,
    quantise_image_head,
    quantised_on,
    quantiser,
)

TOKENIZER = "tokenizer.json"
IN_PIPELINE = f"processor/{TOKENIZER}"  # where a pipeline of diffusers has it
DEVICES = ("cpu", "cuda")
CELLS = 96  # about as many as the widest pass of a run on a card
SAMPLERS_FILE = "samplers.safetensors"
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
SYNONYMS = {"float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16",
            "bfloat16": "bf16"}
NO_CARD = ("cpu", "meta")
OTHER_MODELS = ("Janus-1.3B",)  # that are read besides those of the catalogue
SMALL = 100_000_000  # up to this many parameters auto chooses fp32
NAMED = 3  # files in a line
HASHES = KeptEntries("hashes.json", str, str)  # of backbones


@torch.inference_mode(False)
@torch.no_grad()
def backbone_of(model: nn.Module, files: str | Path | None = None) -> Backbone:
    """Make a backbone that computes on a loaded model's tensors, where they are.

    files: the folder with the model's tokenizer, and its picture codec if the model has none; None:
    the one that it was loaded from. Raises SSDError if no family has such a model, or if its
    tensors lie on several devices.
    """
    checkpoint = LoadedModel(model, folder_of(model, files))
    family = next((family for family in families() if family.matches(checkpoint)), None)
    if family is None:
        raise SSDError(f"{type(model).__name__}: no backbone known here; families: "
                       f"{', '.join(family.FAMILY for family in families())}")
    return family.load(checkpoint, *checkpoint.place())


def folder_of(model: nn.Module, files: str | Path | None) -> Path:
    """The folder with a model's tokenizer: named, on disk, or in the Hub client's cache."""
    name = str(files or getattr(model, "name_or_path", ""))
    folder = user_path(name)
    if name and folder.is_dir():
        return folder
    if files is None and (cached := cached_tokenizer(name)) is not None:
        return cached.parent
    raise SSDError(f"{type(model).__name__}: no folder {name!r} with its {TOKENIZER}: name it, as "
                   "in load_backbone(model, files=FOLDER)")


def cached_tokenizer(name: str) -> Path | None:
    """The tokenizer of a repository on the Hub that was downloaded before."""
    try:
        from huggingface_hub import try_to_load_from_cache
        paths = [try_to_load_from_cache(name, file) for file in (TOKENIZER, IN_PIPELINE)]
    except (ImportError, ValueError):
        return None
    return next((Path(path) for path in paths if isinstance(path, str)), None)


def measure_rounding(backbone: Backbone, draws: torch.device) -> None:
    """Set `rounding` and `batch_invariant`, if the weights lie on the device that draws.

    A card without memory for it leaves them as they are.
    """
    if draws.type not in DEVICES or backbone.device.type != draws.type:
        return
    # On one thread, because a second may wait for a busy core; with the kernel that runs use.
    with using_threads(1), one_attention_kernel(draws), suppress(torch.OutOfMemoryError):
        backbone.rounding = max(rounding(backbone, widths) for widths in passes_on(backbone))
        backbone.batch_invariant = backbone.rounding == 0


def passes_on(backbone: Backbone, cells: int = CELLS) -> list[Widths]:
    """The passes to compare, over up to `cells` cells.

    On a card their sizes are rounded as in runs, and they read few keys or those of a whole
    picture, because kernels divide long sums otherwise.
    """
    if backbone.device.type == "cpu":
        return [Widths()]
    row, slots = backbone.grid.width, backbone.grid.slots
    return [Widths(row * max(2, cells // row), (1, 8, row, 2 * row), keys)
            for keys in (KEYS, rounded(slots + KEYS, KEYS))]


def plain_name(name: object) -> str:
    """A device's or dtype's name as this program writes it: in lower case, fp16 for torch.half."""
    plain = str(name).lower().removeprefix("torch.")
    return SYNONYMS.get(plain, plain)


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How a backbone is loaded; see `load_backbone`."""

    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    dtype: str = flag("auto", "auto (int8 for postcard, or fp32 on a processor that is slow with "
                              "integers; fp32 for other small backbones, else bf16; without bf16 "
                              "support fp16, on a CPU fp32), fp32, bf16, fp16, fp8, "
                              f"int8, int4, 8bit (the faster of int8 and fp8 here). {ABOUT}.")
    offload: bool = flag(False, "Decoder and picture codec take turns on the card.")
    graphs: str = flag("auto", "auto or off. On a CUDA card forward passes are replayed as graphs, "
                               "which is faster; off runs every operation separately.")
    family: str = flag("auto", "auto, or which model the files are, if neither they nor their "
                               "folder's name tell: a name of `download --list`, or Janus-1.3B.")
    lora: list[str] | None = flag(None, "A LoRA to merge into the model, as FILE or FILE:STRENGTH "
                                        "(1 if left out): PEFT's folder or a .safetensors file, by "
                                        "its path or its name below loras; none: none. May be "
                                        "given several times.")

    def __post_init__(self) -> None:
        for name in ("device", "dtype"):
            object.__setattr__(self, name, plain_name(getattr(self, name)))

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `load_backbone` behind the name."""
        return {field.name: getattr(self, field.name) for field in fields(LoadOptions)}


@checked("dtype", "graphs", "lora")
@undisturbed()
def load_backbone(name_or_path: str | Path | nn.Module, device: str = "auto", dtype: str = "auto",
                  offload: bool = False, graphs: str = "auto", family: str = "auto",
                  estimates: Estimates | None = None,
                  files: str | Path | None = None, draws_on: str | None = None,
                  hashed: bool = True,
                  lora: Sequence[str | Path | tuple[str | Path, float]] | None = None) -> Backbone:
    """Load a backbone by its bundled name, or from a file, its folder or that folder's parent.

    Instead of a name it takes a model that transformers has loaded. It then computes on that
    model's tensors, on its device and in its dtype, and the model works as before. files: the
    folder with such a model's tokenizer; None: where it came from (`folder_of`).

    device: auto, cpu, cuda, cuda:1, mps, xpu ..., or meta to load everything except the values.
    dtype: auto, fp32, bf16, fp16, fp8, int8, int4 or 8bit, which is the faster of int8 and fp8 on
    the device that draws. auto is int8 for the bundled postcard where a
    fast kernel for integers is found (`best_dtype`); for others it is fp32 up to 100 million
    parameters, else bf16; without bf16 support it is fp16 on a card and fp32 on a CPU. int8, fp8
    and int4 quantise the decoder's matrices (weights/quantize.py); for the rest, int8 and int4
    choose like auto and fp8 takes bf16. offload: decoder and picture codec take turns on the
    device; the other waits on the CPU. graphs: auto or off; off never replays passes as CUDA graphs
    (engine/graphs.py). family: auto, or a model's name in the catalogue, or Janus-1.3B, where
    neither files nor their folder's name tell which one they are. estimates: what earlier runs
    took, for choices and plans; None: those of this process. draws_on: the device to which a host
    will move the weights; it decides on dtypes and quantises. None: `device`. hashed: False leaves
    `sha256` empty on meta, rather than read all files, unless an earlier loading has noted it.
    lora: adapters to merge, as "FILE", "FILE:0.8" or (FILE, 0.8). Raises an SSDError that names the
    file and what to do.
    """
    dtype, graphs = plain_name(dtype), checked_mode(str(graphs))
    if isinstance(name_or_path, nn.Module):
        require_as_it_is(device, dtype, offload, lora)
        backbone = backbone_of(name_or_path, files)
        return prepared(backbone, backbone.device, graphs, estimates)
    place = pick_device(device)
    draws = place if draws_on is None else pick_device(draws_on)
    require_sound(dtype, draws)
    require_card(place, offload)
    dtype = best_dtype(name_or_path, dtype, draws)
    checkpoint, module = find_backbone(name_or_path, model_called(family))
    require_family(checkpoint, module)
    adapters = Adapters(lora or (), checkpoint)
    checkpoint.adapt = adapters
    noted = noted_hash(checkpoint.files) if place.type == "meta" else ""
    checkpoint.hashed = hashed and not noted
    backbone = load_as(checkpoint, module, place, dtype, is_small(checkpoint), draws)
    backbone.files = checkpoint.files
    backbone.doubts += unread_beside(checkpoint)
    backbone.sha256 = backbone.sha256 or noted
    if not noted and backbone.sha256:
        HASHES.put(key_of(checkpoint.files), backbone.sha256)
    if adapters.used and place.type != "meta":
        note_adapters(backbone, adapters)
    prepared(backbone, draws, graphs, estimates)
    if offload:
        backbone.offloader = DeviceOffloader(place, backbone.decoder, backbone.picture_codec)
    samplers = checkpoint.root / SAMPLERS_FILE
    if samplers.is_file():
        backbone.find_drafter = DrafterFile(samplers, device,
                                            "int8" if backbone.in_int8 else dtype)
    return backbone


def require_card(place: torch.device, offload: bool) -> None:
    if offload and place.type in NO_CARD:
        raise SSDError(f"offload saves memory on a graphics card, the device is {place}: "
                       "leave it out, or choose another device")


def unread_beside(checkpoint: Checkpoint) -> tuple[str, ...]:
    """A line that names adapters and learned words beside a model, if there are any."""
    found = [path.relative_to(checkpoint.folder).as_posix()
             for path in adapters_beside(checkpoint.folder, checkpoint.files)]
    if not found:
        return ()
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return (f"{checkpoint.folder}: {', '.join(found[:NAMED])}{more} beside the model: not read, "
            "the pictures are those of the model alone",)


def noted_hash(files: Sequence[Path]) -> str:
    """The hash of a backbone in these files, if it was loaded on this machine; else empty."""
    return HASHES.read().get(key_of(files), "")


def key_of(files: Sequence[Path]) -> str:
    """Names, sizes and times of files; those of changed files are others."""
    stats = [(str(path.absolute()), path.stat()) for path in files]
    return repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])


def model_called(family: str) -> str:
    """The name in the catalogue that --family gives; empty for auto. SSDError for others."""
    names = {name.lower(): name for name in (*CATALOGUE, *OTHER_MODELS)}
    if family == "auto":
        return ""
    if family.lower() not in names:
        raise SSDError(f"family {family!r}: choose auto, or one of {', '.join(names.values())}")
    return names[family.lower()]


def require_family(checkpoint: Checkpoint, module: ModuleType) -> None:
    """Raise SSDError if the tensors are not those of the model that --family names."""
    row = CATALOGUE.get(checkpoint.called)
    if row is not None and row.family.partition(" ")[0] not in module.FAMILY:
        raise SSDError(f"{checkpoint.files[0]}: these are {module.FAMILY}'s tensors, not those of "
                       f"{row.name}: leave --family out, or name the right one")


def prepared(backbone: Backbone, draws: torch.device, graphs: str,
             estimates: Estimates | None) -> Backbone:
    """Set what a host chose, and measure the rounding if the weights lie where they draw."""
    backbone.graphs = graphs
    if estimates is not None:
        backbone.estimates = estimates
    measure_rounding(backbone, draws)
    return backbone


def note_adapters(backbone: Backbone, adapters: Adapters) -> None:
    """Set the hashes of a backbone with adapters, and what of these pictures do not need."""
    adapters.require_read()
    backbone.base_sha256, backbone.lora = backbone.sha256, adapters.used
    backbone.sha256 = adapters.digest(backbone.sha256)
    if unread := adapters.unread:
        backbone.doubts += (f"the LoRA also changes what does not draw pictures, which is left "
                            f"out: {len(unread)} tensors, such as {unread[0]}",)


def require_as_it_is(device: str, dtype: str, offload: bool,
                     lora: Sequence[object] | None = None) -> None:
    """Raise SSDError if a loaded model would have to be moved or converted."""
    if lora:
        raise SSDError("a loaded model takes no LoRA: merge it before, by peft's merge_and_unload, "
                       "or load the model from its files")
    if (device, dtype, offload) != ("auto", "auto", False):
        raise SSDError("a loaded model is used on its device and in its dtype: leave device, dtype "
                       "and offload out, or move it before by model.to(...)")


class DrafterFile:
    """Loads the drafter that a file of samplers names, on first use."""

    def __init__(self, path: Path, device: str, dtype: str) -> None:
        self.path, self.device, self.dtype = path, device, dtype
        self.drafter: Drafter | None = None

    def __call__(self, target: Backbone) -> Drafter:
        if self.drafter is None:
            source = drafter_of(self.path)
            self.drafter = read_drafter(
                self.path, load_backbone(source, self.device, self.dtype), target)
        return self.drafter


def drafter_of(samplers: Path) -> Path:
    """Return the path of a samplers file's drafter: beside the file or one level up."""
    named = read_safetensors(samplers, SAMPLERS_FORMAT)[1].get("drafter", "")
    folders = (samplers.parent, samplers.parent.parent)
    existing = [folder / named for folder in folders if (folder / named).exists()]
    if not existing or Path(named).name != named or named in ("", ".."):
        raise SSDError(f"{samplers}: its drafter {named[:80]!r} is neither in {folders[0]} nor in "
                       f"{folders[1]}: put it there, or train the samplers again")
    return existing[0]


def require_sound(dtype: str, device: torch.device) -> None:
    """Raise SSDError for a dtype that failed the self-test on this machine."""
    if reason := fault_of(f"dtype {dtype}", device):
        raise SSDError(f"dtype {dtype} is switched off on this machine, because it failed the "
                       f"self-test ({reason}): choose another dtype, or update PyTorch or the "
                       "driver and run `ssd selftest`")


def is_small(checkpoint: Checkpoint) -> bool:
    return sum(math.prod(shape) for shape in checkpoint.shapes.values()) <= SMALL


def load_as(checkpoint: Checkpoint, family: ModuleType, device: torch.device, dtype: str,
            small: bool, draws: torch.device) -> Backbone:
    """Load a backbone in a named dtype; quantises tensor by tensor while reading, on the device
    that draws.
    """
    compute = pick_dtype(dtype, draws, small)
    if dtype not in KINDS or device.type == "meta":
        return family.load(checkpoint, device, compute)
    transform = quantised_on(draws, quantiser(dtype, draws))
    checkpoint.transform = lambda name, value: transform(value) if is_layer_matrix(name) else value
    backbone = family.load(checkpoint, device, compute)
    quantise(backbone.decoder, transform)  # matrices that `fill` did not load
    if dtype == "int8":
        quantise_image_head(backbone, transform)
    return backbone


def is_layer_matrix(name: str) -> bool:
    return name.startswith("decoder.layers.") and name.endswith(MATRICES)


def best_dtype(name_or_path: str | Path, dtype: str, device: torch.device) -> str:
    """Return what 8bit stands for here, and int8 in place of auto for a bundled backbone, where
    that is faster.

    Its pictures in int8 obey as well as in fp32 (lab/benchmarks/results/int8.md). Without a fast
    kernel for integers, int8 costs an fp32 product and more.
    """
    if dtype == EITHER:
        return fastest(device)
    if dtype != "auto" or device.type == "meta" or not is_bundled(find_path(name_or_path)):
        return dtype
    return "int8" if has_kernel(device) else "fp32"


def auto_dtype(name_or_path: str | Path, device: torch.device) -> str:
    """Return the name of the dtype that auto chooses for a backbone."""
    if (dtype := best_dtype(name_or_path, "auto", device)) != "auto":
        return dtype
    return SHORT_NAMES[pick_dtype("auto", device, is_small(find_backbone(name_or_path)[0]))]


@checked()
@undisturbed()
def load_heads(name_or_path: str | Path, backbone: Backbone) -> DraftHeads:
    """Load draft heads for exactly this backbone; SSDError for any other heads."""
    return read_heads(find_path(name_or_path, HEADS_FILE), backbone)


def pick_device(name: str) -> torch.device:
    """Return the named device; auto: the best one available."""
    name = plain_name(name)
    if name != "auto":
        return checked_device(name)
    devices = {"cuda": torch.cuda.is_available(), "xpu": torch.xpu.is_available(),
               "mps": torch.backends.mps.is_available(), "cpu": True}
    return torch.device(next(name for name, available in devices.items() if available))


def checked_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
        return device
    except (RuntimeError, AssertionError, ImportError) as error:
        raise SSDError(f"device {name!r} cannot be used here ({first_line(error)}): "
                       "choose auto or cpu") from error


def pick_dtype(name: str, device: torch.device, small: bool) -> torch.dtype:
    """Return the dtype to compute in; small: few enough parameters for fp32."""
    name = plain_name(name)
    if name in DTYPES:
        return DTYPES[name]
    if name != "auto" and name not in KINDS:
        raise SSDError(f"dtype {name!r}: choose auto, {', '.join((*DTYPES, *KINDS, EITHER))}")
    if name == "fp8" or (name == "int4" and device.type == "cpu"):
        return torch.bfloat16  # required by their kernels
    if small and name != "int4":
        return torch.float32
    if has_bf16(device) and not fault_of("dtype bf16", device):
        return torch.bfloat16
    return torch.float32 if device.type == "cpu" else torch.float16
