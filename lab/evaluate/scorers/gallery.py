"""The finished pictures of a suite with their prompts, and the settings of scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image

from ssd_core.errors import SSDError
from ssd_core.output.picture_files import opened, upright
from ssd_core.train.common import silent

from ..suites.record import read_record


@dataclass(frozen=True)
class Scoring:
    """weights: the scorer's own, from the user. reference: a folder of real pictures.

    say: for a line about pictures that could not be scored.
    """

    device: torch.device
    batch: int = 32
    weights: Path | None = None
    reference: Path | None = None
    say: Callable[[str], None] = silent

    def required_weights(self, wanted: str) -> Path:
        """Return the user's file or folder; SSDError with `wanted` if there is none."""
        return required("weights", self.weights, wanted)


def required(flag: str, path: Path | None, wanted: str) -> Path:
    if path is None:
        raise SSDError(f"--{flag} is missing: give {wanted}")
    if not path.exists():
        raise SSDError(f"{flag} {path}: no such file or folder; give {wanted}")
    return path


@dataclass(frozen=True)
class Gallery:
    """pictures: (file, prompt) of each."""

    folder: Path
    pictures: Sequence[tuple[Path, str]]

    @classmethod
    def of(cls, folder: Path) -> Gallery:
        """The pictures of a suite's folder. Raises SSDError if one is missing."""
        pictures = [(folder / name, prompt) for name, prompt in read_record(folder).pictures()]
        missing = sum(not path.is_file() for path, _ in pictures)
        if missing:
            raise SSDError(f"{folder}: {missing} of {len(pictures)} pictures are missing: run "
                           "'evaluate --suite' again to draw them")
        return cls(folder, pictures)

    def batches(self, count: int) -> Iterator[tuple[list[Image.Image], list[str]]]:
        """Pictures in RGB and their prompts, up to `count` at a time."""
        for a in range(0, len(self.pictures), count):
            part = self.pictures[a : a + count]
            yield [loaded(path) for path, _ in part], [prompt for _, prompt in part]


def loaded(path: Path) -> Image.Image:
    with opened(path) as image:
        return upright(image)
