"""Files of self-drawn pictures: tokens, the prompts' ids, and which pictures exist already.

Knows nothing about drawing or learning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import torch

from ..backbones.base import Backbone
from ..errors import SSDError
from ..files import read_safetensors

FORMAT = "ssd-pictures/1"
KEPT_PROMPTS = "prompts"  # folder beside the pictures: cached outputs of a text model


@dataclass(frozen=True)
class Pictures:
    """Tokens [n, R, C], the ids of each picture's prompt, (width, height) in px: the smallest size
    of their grid.
    """

    tokens: torch.Tensor
    prompts: tuple[torch.Tensor, ...]
    size: tuple[int, int]

    def __len__(self) -> int:
        return len(self.tokens)

    def pick(self, numbers: Sequence[int]) -> Pictures:
        """These pictures, in this order."""
        prompts = tuple(self.prompts[i] for i in numbers)
        return Pictures(self.tokens[list(numbers)], prompts, self.size)

    def parts(self, count: int) -> Iterator[Pictures]:
        """All pictures, up to `count` at a time."""
        for a in range(0, len(self), count):
            yield Pictures(self.tokens[a : a + count], self.prompts[a : a + count], self.size)


def of_prompts(prompts: list[list[int]]) -> dict[str, torch.Tensor]:
    """Return prompts' ids as the tensors of a file."""
    return {"prompts": torch.tensor([id_ for ids in prompts for id_ in ids], dtype=torch.int32),
            "prompt_lengths": torch.tensor([len(ids) for ids in prompts], dtype=torch.int32)}


def read_pictures(path: Path, backbone: Backbone) -> Pictures:
    """Read one file. Raises SSDError if it is damaged or of another backbone."""
    tensors, metadata = read_safetensors(path, FORMAT)
    if metadata.get("backbone_sha256") != backbone.sha256:
        raise SSDError(f"{path}: drawn by another backbone than the loaded {backbone.name}; remove "
                       f"{path.parent} and run 'train self-distill' again")
    try:
        width, height = json.loads(metadata["size"])
        size = (width, height)
        prompts = tensors["prompts"].split(tensors["prompt_lengths"].tolist())
        grid, tokens = backbone.resized(size).grid, tensors["tokens"]
        whole = tuple(tokens.shape) == (len(prompts), grid.rows, grid.columns)
        whole = whole and bool(tokens.min() >= 0 and tokens.max() < backbone.codes)
    except (KeyError, TypeError, ValueError, RuntimeError):
        whole = False
    if not whole:
        raise SSDError(f"{path}: not a whole file of pictures by {backbone.name}: remove it and "
                       "run 'train self-distill' again")
    return Pictures(tokens, prompts, size)


def files_of(folder: Path) -> list[Path]:
    """Return the files of pictures in a folder; each is named by its first picture's number."""
    files = sorted(folder.glob("*.safetensors"))
    for path in files:
        if not (path.stem.isascii() and path.stem.isdecimal()):
            raise SSDError(f"{path}: not a file of pictures, which have numbers for names; move it")
    return files


def drawn_already(folder: Path, backbone: Backbone) -> set[int]:
    """Return the numbers of the pictures in a folder; SSDError if they have another size."""
    numbers: set[int] = set()
    for path in files_of(folder):
        pictures = read_pictures(path, backbone)
        require_size(path, pictures.size, backbone.smallest.size)
        numbers |= set(range(int(path.stem), int(path.stem) + len(pictures)))
    return numbers


def gaps(wanted: range, drawn: Set[int], most: int) -> list[range]:
    """Return the wanted numbers that are not drawn yet, in runs of at most `most`."""
    runs: list[range] = []
    for number in (i for i in wanted if i not in drawn):
        if runs and runs[-1].stop == number and len(runs[-1]) < most:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def load_pictures(folder: Path, backbone: Backbone) -> Pictures:
    """Read all pictures that `train self-distill` saved in folder/self-distill."""
    files = files_of(Path(folder) / "self-distill")
    if not files:
        raise SSDError(f"{folder}/self-distill: no pictures; run 'train self-distill' first")
    parts = [read_pictures(path, backbone) for path in files]
    for path, part in zip(files, parts, strict=True):
        require_size(path, part.size, parts[0].size)
    return Pictures(torch.cat([part.tokens for part in parts]),
                    tuple(ids for part in parts for ids in part.prompts), parts[0].size)


def require_size(path: Path, size: tuple[int, int], expected: tuple[int, int]) -> None:
    if size != expected:
        raise SSDError(f"{path}: pictures of {size[0]}x{size[1]} px among those of "
                       f"{expected[0]}x{expected[1]}: keep each size in a folder of its own")
