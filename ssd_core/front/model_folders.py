"""Walking model folders: the backbones and draft heads below one of them. Only headers are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ..backbones import postcard
from ..engine.heads import FORMAT as HEADS_FORMAT
from ..weights.load import BACKBONE_FILE, HEADS_FILE, backbones_in


def backbones_below(root: Path) -> Iterator[tuple[str, Path, str]]:
    """(name, a file, family) of each backbone in a folder and all folders in it."""
    for folder in folders_below(root):
        there = _backbones_in(folder, stamp(folder))
        for path, family in there:
            alone = folder != root and len(there) == 1
            # a file of ours under a name of its own was always listed by that name
            own_name = family == postcard.FAMILY and path.name != BACKBONE_FILE
            shown = path.parent if alone and not own_name else path
            yield shown.relative_to(root).as_posix(), path, family


@cache
def _backbones_in(folder: Path, _stamp: tuple) -> list[tuple[Path, str]]:
    return backbones_in(folder)


def heads_files_below(root: Path) -> Iterator[tuple[str, Path]]:
    """(name, file) of each file in a heads folder that may hold draft heads."""
    for folder in folders_below(root):
        for path in visible(folder):
            if path.suffix == ".safetensors" and path.is_file():
                inside = path.name == HEADS_FILE and folder != root
                yield (folder if inside else path).relative_to(root).as_posix(), path


def folders_below(root: Path) -> Iterator[Path]:
    """`root` and all folders in it but hidden ones, and links that lead back up."""
    for folder, inner, _ in os.walk(root, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith(".")
                          and not leads_up(Path(folder, name)))
        yield Path(folder)


def leads_up(folder: Path) -> bool:
    """Whether a link leads to a folder that it lies in."""
    return folder.is_symlink() and folder.parent.resolve().is_relative_to(folder.resolve())


def visible(folder: Path) -> list[Path]:
    """Entries of a folder but hidden ones; none where it cannot be read."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []


def stamp(folder: Path) -> tuple:
    """Changes when a file of the folder does."""
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.is_file()]
        return tuple(sorted((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files))
    except OSError:  # deleted since it was listed
        return ()


# Headers


def is_heads(path: Path) -> bool:
    return metadata_of(path).get("format") == HEADS_FORMAT


def made_for(path: Path) -> str | None:
    """The checksum of the backbone that heads were made for."""
    return metadata_of(path).get("backbone_sha256")


def metadata_of(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file; nothing where it is no such file."""
    try:
        return _metadata(path, os.stat(path).st_mtime_ns)
    except OSError:  # deleted since it was listed
        return {}


@cache
def _metadata(path: Path, _changed: int) -> dict[str, str]:
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}
    except (SafetensorError, OSError):
        return {}
