"""Find and load backbones and draft heads, by bundled name, file or folder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import torch

from ..backbones import BACKBONES, FAMILIES, postcard
from ..backbones.base import Backbone
from ..backbones.drafter import FORMAT as SAMPLERS_FORMAT
from ..backbones.drafter import Drafter, read_drafter
from ..backbones.estimates import Estimates
from ..backbones.invariance import rounding
from ..backbones.offload import DeviceOffloader
from ..backbones.reading.checkpoint import Checkpoint, attempt, models_at, models_in
from ..engine.graphs import checked_mode
from ..engine.heads import DraftHeads, read_heads
from ..engine.threads import using_threads
from ..errors import SSDError, first_line
from ..files import ASSETS, read_safetensors
from ..model.processor import has_bf16
from .figures import SHORT_NAMES
from .quantize import KINDS, MATRICES, quantise, quantise_image_head, quantiser

BACKBONE_FILE, HEADS_FILE = "backbone.safetensors", "heads.safetensors"
SAMPLERS_FILE = "samplers.safetensors"
INT8_FILE = Path("int8", BACKBONE_FILE)  # in a folder: its backbone in int8
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
IN_INT8 = ("auto", "int8")
NO_CARD = ("cpu", "meta")
SMALL = 100_000_000  # up to this many parameters auto chooses fp32


def load_backbone(name_or_path: str | Path, device: str = "auto", dtype: str = "auto",
                  offload: bool = False, graphs: str = "auto",
                  estimates: Estimates | None = None) -> Backbone:
    """Load a backbone by its bundled name, or from a file, its folder or that folder's parent.

    device: auto, cpu, cuda, cuda:1, mps, xpu ..., or meta to load everything except the values.
    dtype: auto, fp32, bf16, fp16, fp8, int8 or int4. auto is int8 for postcard; for others it is
    fp32 up to 100 million parameters, else bf16; without bf16 support it is fp16 on a card and fp32
    on a CPU. int8, fp8 and int4 quantise the decoder's matrices (weights/quantize.py); for the
    rest, int8 and int4 choose like auto and fp8 takes bf16. offload: decoder and picture codec take
    turns on the device; the other waits on the CPU. graphs: auto or off; off never replays passes
    as CUDA graphs (engine/graphs.py). estimates: what earlier runs took, for choices and plans;
    None: those of this process. Raises an SSDError that names the file and what to do.
    """
    place, graphs = pick_device(device), checked_mode(graphs)
    if offload and place.type in NO_CARD:
        raise SSDError(f"offload saves memory on a graphics card, the device is {place}: "
                       "leave it out, or choose another device")
    checkpoint, family = find_backbone(name_or_path, dtype)
    backbone = load_as(checkpoint, family, place, dtype, is_small(checkpoint))
    backbone.graphs, backbone.files = graphs, checkpoint.files
    if estimates is not None:
        backbone.estimates = estimates
    if place.type == "cpu":
        with using_threads(1):  # a second thread may wait for a core that another program uses
            backbone.rounding = rounding(backbone)
        backbone.batch_invariant = backbone.rounding == 0
    if offload:
        backbone.turns = DeviceOffloader(place, backbone.decoder, backbone.picture_codec)
    samplers = checkpoint.root / SAMPLERS_FILE
    if samplers.is_file():
        backbone.find_drafter = DrafterFile(samplers, device,
                                            "int8" if backbone.in_int8 else dtype)
    return backbone


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


def is_small(checkpoint: Checkpoint) -> bool:
    return sum(math.prod(shape) for shape in checkpoint.shapes.values()) <= SMALL


def load_as(checkpoint: Checkpoint, family: ModuleType, device: torch.device, dtype: str,
            small: bool) -> Backbone:
    """Load a backbone in a named dtype; quantises tensor by tensor while reading."""
    compute = pick_dtype(dtype, device, small)
    if postcard.holds_int8(checkpoint) and dtype not in IN_INT8:
        raise SSDError(f"{checkpoint.files[0]}: holds int8, from which {dtype} cannot be made: "
                       "choose dtype auto or int8")
    if dtype not in KINDS or device.type == "meta":
        return family.load(checkpoint, device, compute)
    transform = quantiser(dtype, device)
    checkpoint.transform = lambda name, value: transform(value) if is_layer_matrix(name) else value
    backbone = family.load(checkpoint, device, compute)
    quantise(backbone.decoder, transform)  # matrices that `fill` did not load
    if dtype == "int8":
        quantise_image_head(backbone)
    return backbone


def is_layer_matrix(name: str) -> bool:
    return name.startswith("decoder.layers.") and name.endswith(MATRICES)


def find_backbone(name_or_path: str | Path,
                  dtype: str = "auto") -> tuple[Checkpoint, ModuleType]:
    """Return the only checkpoint at a name, file or folder that a family claims, and the family.

    dtype: as in `load_backbone`. Raises SSDError if there is none, or more than one.
    """
    named = located(name_or_path)
    root = named if named.is_dir() else named.parent
    path = stored_for(named, dtype)
    opened = [attempt(model, root) for model in models_at(path)]
    checkpoints = [model for model in opened if isinstance(model, Checkpoint)]
    claimed = [(checkpoint, family) for checkpoint in checkpoints for family in FAMILIES
               if family.claims(checkpoint)]
    if len(claimed) == 1:
        return claimed[0]
    if claimed:
        names = ", ".join(f"{checkpoint.files[0]} ({family.FAMILY})"
                          for checkpoint, family in claimed)
        raise SSDError(f"{path}: holds several backbones: name one of {names}")
    for failure in opened:
        if isinstance(failure, SSDError):
            raise failure
    raise SSDError(f"{path}: no backbone known here, {what_is_in(checkpoints)}; families: "
                   f"{', '.join(family.FAMILY for family in FAMILIES)}")


def stored_for(path: Path, dtype: str) -> Path:
    """Return the file for a dtype if a folder holds a backbone twice, else the path itself."""
    if not is_twofold(path):
        return path
    if dtype in IN_INT8:
        return path / INT8_FILE
    if not (path / BACKBONE_FILE).is_file():
        raise SSDError(f"dtype {dtype}: {path / BACKBONE_FILE} is missing, an installed package "
                       "leaves it out: choose dtype auto or int8, or copy it there from the source")
    return path / BACKBONE_FILE


def is_twofold(path: Path) -> bool:
    """Whether a folder holds a backbone in int8 and in another dtype."""
    return (path / INT8_FILE).is_file()


def auto_dtype(name_or_path: str | Path, device: torch.device) -> str:
    """Return the name of the dtype that auto chooses for a backbone."""
    checkpoint = find_backbone(name_or_path)[0]
    if postcard.holds_int8(checkpoint):
        return "int8"
    return SHORT_NAMES[pick_dtype("auto", device, is_small(checkpoint))]


def family_of(path: Path) -> tuple[str, str]:
    """Return (family, error) of a file or folder; one of the two is empty."""
    try:
        return find_backbone(path)[1].FAMILY, ""
    except SSDError as error:
        return "", str(error)


def backbones_in(folder: Path) -> list[tuple[Path, str]]:
    """Return (a file, family) of each backbone directly in a folder; reads headers only."""
    try:
        opened = [attempt(model, folder) for model in models_in(folder)]
    except SSDError:  # a folder that cannot be read
        return []
    return [(model.files[0], family.FAMILY) for model in opened if isinstance(model, Checkpoint)
            for family in FAMILIES if family.claims(model)]


def located(name_or_path: str | Path) -> Path:
    """Return the folder of a bundled name, or the path; SSDError if it does not exist."""
    bundled = ASSETS / str(name_or_path)
    path = Path(name_or_path).expanduser()
    if str(name_or_path) in BACKBONES and bundled.is_dir():
        return bundled
    if not str(name_or_path) or not path.exists():
        raise SSDError(f"backbone {str(name_or_path)!r}: neither a bundled name "
                       f"({', '.join(BACKBONES)}) nor a file or folder")
    return path


def what_is_in(checkpoints: Sequence[Checkpoint]) -> str:
    """Describe files that no family claims, in a few words."""
    described = []
    for checkpoint in checkpoints:
        kind = checkpoint.metadata.get("format", "pt")  # every exporter writes "pt"
        names = ", ".join(list(checkpoint.shapes)[:2]) or "nothing"
        content = f"is of format {kind!r}" if kind != "pt" else f"holds tensors such as {names}"
        described.append(f"{checkpoint.files[0].name} {content}")
    return ", ".join(described)


def load_heads(name_or_path: str | Path, backbone: Backbone) -> DraftHeads:
    """Load draft heads for exactly this backbone; SSDError for any other heads."""
    return read_heads(resolve(name_or_path, HEADS_FILE, "draft heads"), backbone)


def resolve(name_or_path: str | Path, file_name: str, what: str) -> Path:
    """Return the file that a bundled name, a file or a folder refers to."""
    bundled = ASSETS / str(name_or_path) / file_name
    if str(name_or_path) in BACKBONES and bundled.is_file():
        return bundled
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        path = path / file_name
    if not path.is_file():
        names = ", ".join(BACKBONES)
        raise SSDError(f"{what} {str(name_or_path)!r}: neither a bundled name ({names}) nor a file "
                       f"or folder with {file_name}")
    return path


def pick_device(name: str) -> torch.device:
    """Return the named device; auto: the best one available."""
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
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise SSDError(f"device {name!r} cannot be used here ({first_line(error)}): "
                       "choose auto or cpu") from error


def pick_dtype(name: str, device: torch.device, small: bool) -> torch.dtype:
    """Return the dtype to compute in; small: few enough parameters for fp32."""
    if name in DTYPES:
        return DTYPES[name]
    if name != "auto" and name not in KINDS:
        raise SSDError(f"dtype {name!r}: choose auto, {', '.join((*DTYPES, *KINDS))}")
    if name == "fp8" or (name == "int4" and device.type == "cpu"):
        return torch.bfloat16  # required by their kernels
    if small and name != "int4":
        return torch.float32
    if has_bf16(device):
        return torch.bfloat16
    return torch.float32 if device.type == "cpu" else torch.float16
