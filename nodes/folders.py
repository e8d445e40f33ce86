"""Model folders: where backbones and heads lie, what they are called in the combos.

A name in a combo is saved with the workflow: the path below the model folder, without the file's
own name where a folder holds one model. Reads headers only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import folder_paths
from safetensors import SafetensorError, safe_open

from ..ssd_core.backbones import BACKBONES, postcard
from ..ssd_core.backbones.reading.checkpoint import ENDINGS
from ..ssd_core.engine.heads import FORMAT as HEADS_FORMAT
from ..ssd_core.errors import SSDError
from ..ssd_core.weights.catalogue import CATALOGUE
from ..ssd_core.weights.load import (
    BACKBONE_FILE,
    HEADS_FILE,
    backbones_in,
    family_of,
    find_backbone,
    resolve,
)
from .missing import how_to_get, missing_files

BACKBONE_FOLDER, HEADS_FOLDER = "ssd_backbones", "ssd_heads"
SUFFIXES = {BACKBONE_FOLDER: set(ENDINGS), HEADS_FOLDER: {".safetensors"}}
AUTO, BUNDLED, NONE = "auto", "bundled", "none"


def register_folders() -> None:
    """Add the two model folders; paths that the user named for them stay, and come first."""
    for name, own in SUFFIXES.items():
        folder_paths.add_model_folder_path(name, os.path.join(folder_paths.models_dir, name))
        paths, suffixes = folder_paths.folder_names_and_paths[name]
        folder_paths.folder_names_and_paths[name] = (paths, suffixes | own)


def fingerprint(path: Path | None) -> str:
    """Changes when the file does, so that a node that read it runs again."""
    return "" if path is None else f"{path}:{os.stat(path).st_mtime_ns}"


def places(folder: str) -> str:
    return " or ".join(folder_paths.get_folder_paths(folder))


# Backbones


def backbones() -> dict[str, Path]:
    """A file of each backbone under ssd_backbones that this version reads, by name."""
    names: dict[str, Path] = {}
    for root in map(Path, folder_paths.get_folder_paths(BACKBONE_FOLDER)):
        for folder in folders_below(root):
            there = _backbones_in(folder, stamp(folder))
            for path, family in there:
                alone = folder != root and len(there) == 1
                names.setdefault(shown(path, family, alone).relative_to(root).as_posix(), path)
    return names


def shown(path: Path, family: str, alone: bool) -> Path:
    """What names a backbone: its folder, or itself among others.

    A file of ours under a name of its own was always listed by that name.
    """
    own_name = family == postcard.FAMILY and path.name != BACKBONE_FILE
    return path.parent if alone and not own_name else path


def folders_below(root: Path) -> Iterator[Path]:
    """`root` and all folders in it but hidden ones."""
    for folder, inner, _ in os.walk(root, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        yield Path(folder)


def stamp(folder: Path) -> tuple:
    """Changes when a file of the folder does."""
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.is_file()]
        return tuple(sorted((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files))
    except OSError:  # deleted since it was listed
        return ()


@cache
def _backbones_in(folder: Path, _stamp: tuple) -> list[tuple[Path, str]]:
    return backbones_in(folder)


def unread() -> list[str]:
    """What lies in ssd_backbones without a backbone that this version reads, and why."""
    readable = backbones().values()
    lines = []
    for root in map(Path, folder_paths.get_folder_paths(BACKBONE_FOLDER)):
        for entry in sorted(root.iterdir()) if root.is_dir() else ():
            weights = entry.is_dir() or entry.suffix in ENDINGS
            listed = any(entry in (path, *path.parents) for path in readable)
            if weights and not listed and not entry.name.startswith("."):
                lines.append(f"not read: {entry.name} ({family_of(entry)[1]})")
    return lines


def backbone_choices() -> list[str]:
    return list(dict.fromkeys([*BACKBONES, *backbones(), *CATALOGUE]))


def complaint_about_backbone(name: str | None) -> str | None:
    if name is None or name in (choices := backbone_choices()):
        return None
    return (f"backbone {name!r} is not here: put it into {places(BACKBONE_FOLDER)} and refresh, "
            f"or choose one of {', '.join(choices)}")


def backbone_path(name: str) -> Path:
    """The file behind a name in the combo; SSDError says how to get it, or what is wrong."""
    if name in (there := backbones()):
        return there[name]
    if name in BACKBONES:
        return resolve(name, BACKBONE_FILE, "backbone")
    if name not in CATALOGUE:
        raise SSDError(f"backbone {name}: its file is not here: put it into "
                       f"{places(BACKBONE_FOLDER)} as {name}, or choose postcard")
    row, folder = CATALOGUE[name], folder_of(name)
    if not folder.exists() or missing_files(row, folder):
        raise SSDError(how_to_get(row, folder))
    return find_backbone(folder)[0].files[0]


def folder_of(name: str) -> Path:
    """Where a known backbone lies, or where it belongs."""
    places = [Path(place, name) for place in folder_paths.get_folder_paths(BACKBONE_FOLDER)]
    return next((folder for folder in places if folder.exists()), places[0])


# Draft heads


def heads_files() -> dict[str, Path]:
    """Files under ssd_heads, named with the backbone they were made for."""
    names = {}
    for name in folder_paths.get_filename_list(HEADS_FOLDER):
        path, full = Path(name), folder_paths.get_full_path(HEADS_FOLDER, name)
        if full is None:  # a link to a file that is gone
            continue
        metadata = metadata_of(Path(full))
        if metadata.get("format") == HEADS_FORMAT:
            inside = path.name == HEADS_FILE and len(path.parts) > 1
            known_as = (path.parent if inside else path).as_posix()
            names[f"{known_as} [{metadata.get('backbone', 'unknown')}]"] = Path(full)
    return names


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


def heads_choices() -> list[str]:
    return [AUTO, BUNDLED, NONE, *heads_files()]


def complaint_about_heads(name: str | None) -> str | None:
    if name is None or name in heads_choices():
        return None
    return (f"heads {name!r} are not here: put them into {places(HEADS_FOLDER)} and refresh, or "
            f"choose one of {', '.join(heads_choices())}")


def heads_for(sha256: str, backbone: Path) -> Path | None:
    """Heads of exactly this backbone: those beside it, else the first under ssd_heads."""
    candidates = [backbone.with_name(HEADS_FILE), *heads_files().values()]
    return next((path for path in candidates
                 if metadata_of(path).get("backbone_sha256") == sha256), None)


def named(path: Path) -> str:
    """A heads file by its folder and its own name."""
    return f"{path.parent.name}/{path.name}"


def heads_fingerprint(name: str | None) -> str:
    """Of the file behind a name; of all of them where the backbone decides."""
    there = heads_files()
    wanted = there.values() if name == AUTO else [there.get(name)]
    return " ".join(map(fingerprint, wanted))


def heads_path(name: str | None, backbone: Path | None) -> Path | None:
    """The file behind a name in the combo; None for `none`.

    `bundled` means the file beside the backbone's own; without a backbone there is nothing to name.
    """
    if name == BUNDLED and backbone is not None:
        beside = backbone.with_name(HEADS_FILE)
        if not beside.is_file():
            raise SSDError(f"no {HEADS_FILE} lies beside {backbone}: choose '{AUTO}', which draws "
                           f"without heads where there are none, or heads from "
                           f"{places(HEADS_FOLDER)}")
        return beside
    there = heads_files()
    if name != NONE and name not in there:
        raise SSDError(complaint_about_heads(name) or f"no heads without a backbone: {name}")
    return there.get(name)
