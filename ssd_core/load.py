"""Finding and loading what the user names: a bundled backbone, a file, or a folder."""

from __future__ import annotations

from pathlib import Path

import torch

from .backbones import BACKBONES
from .backbones.base import Backbone
from .errors import SSDError
from .heads import DraftHeads, read_heads

ASSETS = Path(__file__).parent / "assets"
BACKBONE_FILE, HEADS_FILE = "backbone.safetensors", "heads.safetensors"
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def load_backbone(name_or_path: str | Path, device: str = "auto", dtype: str = "auto") -> Backbone:
    """Load a backbone by its bundled name, from its file, or from a folder that holds the file.

    device: auto, cpu, cuda, cuda:1, mps, xpu ...; dtype: auto (fp32 for small backbones), fp32,
    bf16, fp16. Raises SSDError naming the file and what to do.
    """
    path = resolve(name_or_path, BACKBONE_FILE, "backbone")
    return BACKBONES["postcard"](path, pick_device(device), pick_dtype(dtype))


def load_heads(name_or_path: str | Path, backbone: Backbone) -> DraftHeads:
    """Load draft heads for exactly this backbone; others are refused by name."""
    return read_heads(resolve(name_or_path, HEADS_FILE, "draft heads"), backbone)


def resolve(name_or_path: str | Path, file_name: str, what: str) -> Path:
    """The file meant by a bundled name, a file or a folder."""
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
    """The named device, or the best one there is."""
    if name != "auto":
        return checked_device(name)
    found = {"cuda": torch.cuda.is_available(), "xpu": torch.xpu.is_available(),
             "mps": torch.backends.mps.is_available(), "cpu": True}
    return torch.device(next(name for name, there in found.items() if there))


def checked_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
        return device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise SSDError(f"device {name!r} cannot be used here ({str(error).splitlines()[0]}): "
                       "choose auto or cpu") from error


def pick_dtype(name: str) -> torch.dtype:
    if name == "auto":
        return torch.float32
    if name not in DTYPES:
        raise SSDError(f"dtype {name!r}: choose auto, {', '.join(DTYPES)}")
    return DTYPES[name]
