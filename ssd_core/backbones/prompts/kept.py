"""What a text model made of prompts, kept in a folder, so that no prompt is read twice.

One small file a prompt, named by a hash of the text model and of the prompt's ids. Processes and
machines may share the folder. Knows nothing about the text models.
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
    """Hash of a model's weights by their names, sizes and ends; reading all would take too long."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in WEIGHTS for path in folder.glob(pattern)):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}".encode())
        with path.open("rb") as file:
            digest.update(file.read(SAMPLE))
            file.seek(max(0, size - SAMPLE))
            digest.update(file.read())
    return digest.hexdigest()


class KeptPrompts:
    """Tensors by the ids of prompts, in a folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.fingerprints: dict[Path, str] = {}

    def get(self, model: Path, ids: Sequence[int], dtype: torch.dtype,
            read: Callable[[], torch.Tensor]) -> torch.Tensor:
        """What the model in folder `model` makes of these ids in this dtype: `read()`, made once.

        A file that cannot be read is made again. Raises SSDError where the folder takes none.
        """
        if self.folder is None:
            return read()
        key = hashlib.sha256(repr((self.fingerprint_of(model), tuple(ids), dtype)).encode())
        name = key.hexdigest()
        path = self.folder / name[:2] / f"{name}.safetensors"
        with suppress(SSDError, KeyError):
            return read_safetensors(path, FORMAT)[0][NAME]
        made = read().contiguous()
        write_safetensors({NAME: made}, path, {"format": FORMAT})
        return made

    def fingerprint_of(self, model: Path) -> str:
        """`fingerprint`, computed once for a folder."""
        if model not in self.fingerprints:
            self.fingerprints[model] = fingerprint(model)
        return self.fingerprints[model]
