"""One file of tensors, opened without reading its values: safetensors, torch's or TorchScript.

Knows nothing about models, folders or shards. Pickles are only ever read with weights_only=True;
what describes a TorchScript archive is parsed, not unpickled.
"""

from __future__ import annotations

import argparse
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError, safe_open

from ...errors import SSDError, first_line, refusing
from ...files import json_of, refuse_partial
from .adapters import refuse_adapter_keys
from .limits import require_plain, require_short_header
from .script_file import ScriptFile

SAFETENSORS = ".safetensors"
SCRIPT = ".jit"
TORCH = (".bin", ".pt", ".pth", ".ckpt", SCRIPT)
# Keys under which training scripts nest it; an average only where there is nothing else.
WRAPPERS = ("model", "module", "state_dict", "model_state_dict", "sd", "ema", "model_ema",
            "ema_model", "ema_state_dict", "state_dict_ema")
MOST_WRAPPERS = 8  # within each other
# TA-Tok pickled its arguments as this class; here they become a plain dict.
EASY_DICT = type("EasyDict", (), {"__module__": "easydict",
                                  "__new__": lambda cls: OrderedDict()})


class TensorFile(Protocol):
    """An open file; its tensors may be views into it, so copy them to keep them."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...

    @property
    def metadata(self) -> Mapping[str, str]: ...

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor on the CPU, in the file's dtype."""


class SafetensorsFile:
    def __init__(self, path: Path) -> None:
        require_short_header(path)
        try:
            self._file = safe_open(path, framework="pt")
            self.metadata = self._file.metadata() or {}
            self.shapes = {name: tuple(self._file.get_slice(name).get_shape())
                           for name in self._file.keys()}
        except (SafetensorError, OSError) as error:
            raise SSDError(f"{path}: {damage(path, error)}: get it again") from error

    def tensor(self, name: str) -> torch.Tensor:
        return self._file.get_tensor(name)


class TorchFile:
    metadata: Mapping[str, str] = {}

    def __init__(self, path: Path) -> None:
        require_plain(path)
        loaded = load_pickle(path)
        refuse_adapter_keys(map(str, loaded) if isinstance(loaded, dict) else (), path)
        self._tensors = state_dict(loaded)
        for name, value in self._tensors.items():
            require_stored(path, name, value)
        self.shapes = {name: tuple(value.shape) for name, value in self._tensors.items()}
        if not self.shapes:
            raise SSDError(f"{path}: holds no tensors by name: name the file with the weights")

    def tensor(self, name: str) -> torch.Tensor:
        return self._tensors[name]


def open_tensors(path: Path) -> TensorFile:
    """Open a file by its suffix. Raises SSDError if it is damaged, incomplete or unreadable."""
    refuse_partial(path)
    kinds: dict[str, Callable[[Path], TensorFile]] = {
        SAFETENSORS: SafetensorsFile, SCRIPT: ScriptFile}
    with refusing(path):
        return kinds.get(path.suffix, TorchFile)(path)


def damage(path: Path, error: Exception) -> str:
    """Describe what is wrong with a safetensors file that did not open."""
    size, declared = path.stat().st_size, declared_size(path)
    if declared is None:
        return f"not a safetensors file, or damaged ({first_line(error)})"
    if size < declared:
        return f"truncated: it has {size} bytes, its header says {declared}"
    return f"damaged ({first_line(error)})"


def declared_size(path: Path) -> int | None:
    """File size in bytes according to the safetensors header; None if it is unreadable."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8 or length > 100_000_000:
                return None
            header = json_of(file.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name[:2] != "__"]
        return 8 + length + max(ends, default=0)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def load_pickle(path: Path) -> object:
    """Load torch's file, memory-mapped if it is a zip; only plain data and tensors are allowed."""
    try:
        with torch.serialization.safe_globals([argparse.Namespace, EASY_DICT]):  # arguments
            return torch.load(path, map_location="cpu", weights_only=True,
                              mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise SSDError(f"{path}: damaged, or it holds more than tensors and plain data, and code "
                       "from files is never run: get it as safetensors") from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, TypeError, IndexError,
            AttributeError, UnicodeDecodeError) as error:
        raise SSDError(f"{path}: truncated or damaged, torch cannot read it: get it again"
                       ) from error


def require_stored(path: Path, name: str, value: torch.Tensor) -> None:
    """Raise SSDError for a tensor whose numbers do not all lie in the file: sparse, on meta,
    repeated by its strides, or in torch's own quantised formats.
    """
    plain = (value.layout == torch.strided and value.device.type == "cpu"
             and not value.is_quantized and not value.is_nested)
    if not plain or value.nbytes > value.untyped_storage().nbytes():
        raise SSDError(f"{path}: tensor {name} is not stored number by number (sparse, quantised, "
                       "or without values): get the model as safetensors")


def state_dict(loaded: object) -> dict[str, torch.Tensor]:
    """The tensors by name, taken out of the dicts that a training script nested them in."""
    for _ in range(MOST_WRAPPERS):
        if not isinstance(loaded, dict):
            break
        inner = next((loaded[key] for key in WRAPPERS if isinstance(loaded.get(key), dict)), None)
        if inner is None:
            return {name: value for name, value in loaded.items()
                    if isinstance(name, str) and isinstance(value, torch.Tensor)}
        loaded = inner
    return {}
