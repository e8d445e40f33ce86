"""A cache of a text model's outputs in a folder, with one small file per prompt.

A file's name is a hash of the text model and the prompt's ids. Processes and machines may share the
folder. Knows nothing about the text models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import torch

from ...errors import SSDError
from ...files import read_safetensors, write_safetensors

FORMAT, NAME = "ssd-prompt/1", "prompt"
WEIGHTS = ("*.safetensors", "*.bin")
SAMPLE = 1 << 20  # bytes at each end of a file of weights


def fingerprint(folder: Path) -> str:
    """Hash names, sizes and ends of a model's files; hashing all bytes would take too long."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in WEIGHTS for path in folder.glob(pattern)):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}".encode())
        with path.open("rb") as file:
            digest.update(file.read(SAMPLE))
            file.seek(max(0, size - SAMPLE))
            digest.update(file.read())
    return digest.hexdigest()


class PromptCache:
    """Tensors in a folder, by the ids of prompts; without a folder nothing is cached."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.fingerprints: dict[Path, str] = {}

    def get(self, model: Path, ids: Sequence[int], dtype: torch.dtype,
            read: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Return `read()`, the output of the model in folder `model` for these ids, or its cached
        copy.

        An unreadable file is replaced. Raises SSDError if the folder cannot be written.
        """
        if self.folder is None:
            return read()
        key = hashlib.sha256(repr((self.fingerprint_of(model), tuple(ids), dtype)).encode())
        name = key.hexdigest()
        path = self.folder / name[:2] / f"{name}.safetensors"
        with suppress(SSDError, KeyError):
            return read_safetensors(path, FORMAT)[0][NAME]
        output = read().contiguous()
        write_safetensors({NAME: output}, path, {"format": FORMAT})
        return output

    def fingerprint_of(self, model: Path) -> str:
        """Return `fingerprint(model)`, computed once per folder."""
        if model not in self.fingerprints:
            self.fingerprints[model] = fingerprint(model)
        return self.fingerprints[model]
