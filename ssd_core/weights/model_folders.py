"""Search model folders for backbones and draft heads. Only headers are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from safetensors import safe_open

from ..backbones.reading.hub_cache import home_of, snapshot_in
from ..backbones.reading.limits import require_short_header
from ..engine.heads import FORMAT as HEADS_FORMAT
from ..errors import SSDError, refusing
from .find import HEADS_FILE, backbones_in

PIPELINE = "model_index.json"  # in the folder of a pipeline of diffusers


def backbones_below(root: Path) -> Iterator[tuple[str, Path, str]]:
    """(name, a file, family) of each backbone in a folder and its subfolders."""
    for folder in folders_below(root):
        if is_superseded(folder):
            continue
        backbones = _backbones_in(folder, folder == root, stamp(folder))
        for path, family in backbones:
            shown = shown_by(path) if folder != root and len(backbones) == 1 else path
            yield shown.relative_to(root).as_posix(), path, family


def shown_by(path: Path) -> Path:
    """The folder that stands for the only backbone in it: the whole pipeline's, if it is in one,
    and the repository's, if that is in the layout of the Hub client's cache.
    """
    folder = path.parent
    folder = folder.parent if (folder.parent / PIPELINE).is_file() else folder
    return home_of(folder) or folder


def is_superseded(folder: Path) -> bool:
    """Whether a folder is a snapshot that its repository does not use."""
    home = home_of(folder)
    with suppress(SSDError):
        return home is not None and snapshot_in(home).name != folder.name
    return False


@cache
def _backbones_in(folder: Path, loose: bool, _stamp: tuple) -> list[tuple[Path, str]]:
    return backbones_in(folder, loose)


def heads_files_below(root: Path) -> Iterator[tuple[str, Path]]:
    """(name, file) of each file in a heads folder that may hold draft heads."""
    for folder in folders_below(root):
        for path in visible(folder):
            if path.suffix == ".safetensors" and path.is_file():
                inside = path.name == HEADS_FILE and folder != root
                yield (folder if inside else path).relative_to(root).as_posix(), path


def folders_below(root: Path) -> Iterator[Path]:
    """`root` and all folders below it, except hidden ones and links back up."""
    for folder, inner, _ in os.walk(root, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith(".")
                          and not leads_up(Path(folder, name)))
        yield Path(folder)


def leads_up(folder: Path) -> bool:
    """Whether a link points to a folder that contains it."""
    return folder.is_symlink() and folder.parent.resolve().is_relative_to(folder.resolve())


def visible(folder: Path) -> list[Path]:
    """Entries of a folder that are not hidden; none if it cannot be read."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []


def stamp(folder: Path) -> tuple:
    """A key that changes whenever a file in the folder changes."""
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.is_file()]
        return tuple(sorted((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files))
    except OSError:  # deleted since it was listed
        return ()


# Headers


def is_heads(path: Path) -> bool:
    return metadata_of(path).get("format") == HEADS_FORMAT


def metadata_of(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file; empty if it is not one."""
    try:
        return _metadata(path, os.stat(path).st_mtime_ns)
    except OSError:  # deleted since it was listed
        return {}


@cache
def _metadata(path: Path, _changed: int) -> dict[str, str]:
    with suppress(SSDError), refusing(path):
        require_short_header(path)
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}
    return {}
