"""The files of a download, and how much of them is on the disk already; downloads nothing.

Unfinished downloads are in a hidden folder beside their destination, under names that end in the
file's checksum.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..files import user_path
from .catalogue import BACKBONES_FOLDER, Licence, known
from .hub_client import HubFile, check_online, files_of


@dataclass(frozen=True)
class DownloadPlan:
    """The files of a download: `bytes` in total, of which `missing` are not on the disk."""

    name: str
    files: tuple[HubFile, ...]
    bytes: int
    missing: int
    destination: Path
    licence: Licence

    @property
    def staging(self) -> Path:
        return staging_of(self.destination)


def staging_of(destination: Path) -> Path:
    return destination.with_name(f".{destination.name}.part")


def quote(name: str, models_dir: str | Path = "models",
          revision: str | None = None) -> DownloadPlan:
    """Ask the Hub for the files and sizes of a known backbone, without downloading them.

    `revision` is a branch, tag or commit of its first repository. Raises SSDError.
    """
    row = known(name)
    check_online(source.repo for source in row.sources)
    files: dict[str, HubFile] = {}  # by target; the first source with a target wins
    for index, source in enumerate(row.sources):
        for file in files_of(source, revision if index == 0 else None):
            files.setdefault(file.target, file)
    destination = user_path(models_dir) / BACKBONES_FOLDER / row.name
    missing = sum(missing_bytes(file, destination) for file in files.values())
    return DownloadPlan(row.name, tuple(files.values()), sum(file.bytes for file in files.values()),
                 missing, destination, row.licence)


def missing_bytes(file: HubFile, destination: Path) -> int:
    """How many bytes of a file are not on the disk, judged by sizes alone."""
    staged = staging_of(destination) / file.staged
    if file.bytes in (size_of(destination / file.target), size_of(staged)):
        return 0
    return max(0, file.bytes - (size_of(part_of(staged)) or 0))


def size_of(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def part_of(staged: Path) -> Path:
    return staged.with_name(f"{staged.name}.part")
