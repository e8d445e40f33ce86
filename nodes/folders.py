"""Model folders: where backbones and heads lie, what they are called in the combos.

A name in a combo is saved with the workflow: the path below the model folder, without the file's
own name where a folder holds it. Reads headers only.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import folder_paths
from safetensors import SafetensorError, safe_open

from ..ssd_core.backbones import BACKBONES
from ..ssd_core.backbones.postcard import FORMAT as POSTCARD_FORMAT
from ..ssd_core.errors import SSDError
from ..ssd_core.heads import FORMAT as HEADS_FORMAT
from ..ssd_core.load import BACKBONE_FILE, HEADS_FILE, resolve

BACKBONE_FOLDER, HEADS_FOLDER = "ssd_backbones", "ssd_heads"
BACKBONE_FORMATS = {POSTCARD_FORMAT}
BUNDLED, NONE = "bundled", "none"
# Well-known backbones, listed so that a shared workflow opens and says where the weights come from.
KNOWN = {"Janus-Pro-1B": "https://huggingface.co/deepseek-ai/Janus-Pro-1B",
         "Janus-Pro-7B": "https://huggingface.co/deepseek-ai/Janus-Pro-7B"}


def register_folders() -> None:
    """Add the two model folders; paths that the user named for them stay, and come first."""
    for name in (BACKBONE_FOLDER, HEADS_FOLDER):
        folder_paths.add_model_folder_path(name, os.path.join(folder_paths.models_dir, name))
        paths, suffixes = folder_paths.folder_names_and_paths[name]
        folder_paths.folder_names_and_paths[name] = (paths, suffixes | {".safetensors"})


def found(folder: str, own_name: str) -> dict[str, Path]:
    """Files of a model folder by the name they have in a combo."""
    names = {}
    for name in folder_paths.get_filename_list(folder):
        path, full = Path(name), folder_paths.get_full_path(folder, name)
        if full is None:  # a link to a file that is gone
            continue
        shown = path.parent if path.name == own_name and len(path.parts) > 1 else path
        names[shown.as_posix()] = Path(full)
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


def fingerprint(path: Path | None) -> str:
    """Changes when the file does, so that a node that read it runs again."""
    return "" if path is None else f"{path}:{os.stat(path).st_mtime_ns}"


def places(folder: str) -> str:
    return " or ".join(folder_paths.get_folder_paths(folder))


# Backbones


def backbones() -> dict[str, Path]:
    """Files under ssd_backbones that this version reads."""
    return {name: path for name, path in found(BACKBONE_FOLDER, BACKBONE_FILE).items()
            if metadata_of(path).get("format") in BACKBONE_FORMATS}


def unread() -> list[str]:
    """Files under ssd_backbones that this version cannot read, and why."""
    readable = backbones()
    return [f"not read: {name} (format {metadata_of(path).get('format', 'unknown')!r})"
            for name, path in found(BACKBONE_FOLDER, BACKBONE_FILE).items()
            if name not in readable]


def backbone_choices() -> list[str]:
    return list(dict.fromkeys([*BACKBONES, *backbones(), *KNOWN]))


def complaint_about_backbone(name: str | None) -> str | None:
    if name is None or name in backbone_choices():
        return None
    return (f"backbone {name!r} is not here: put it into {places(BACKBONE_FOLDER)} and refresh, "
            f"or choose one of {', '.join(backbone_choices())}")


def backbone_path(name: str) -> Path:
    """The file behind a name in the combo; SSDError says where its weights belong."""
    if name in (there := backbones()):
        return there[name]
    if name in BACKBONES:
        return resolve(name, BACKBONE_FILE, "backbone")
    if any(Path(place, name).exists() for place in folder_paths.get_folder_paths(BACKBONE_FOLDER)):
        raise SSDError(f"backbone {name}: its folder is there, but this version reads only "
                       f"{', '.join(sorted(BACKBONE_FORMATS))} files: choose postcard, or update "
                       "the pack")
    if name in KNOWN:
        raise SSDError(f"backbone {name}: this version reads only "
                       f"{', '.join(sorted(BACKBONE_FORMATS))} files and cannot run it: choose "
                       f"postcard, which needs no download. Its weights ({KNOWN[name]}) belong in "
                       f"{places(BACKBONE_FOLDER)} as the folder {name}")
    raise SSDError(f"backbone {name}: its file is not here: put it into "
                   f"{places(BACKBONE_FOLDER)} as {name}, or choose postcard")


# Draft heads


def heads_files() -> dict[str, Path]:
    """Files under ssd_heads, named with the backbone they were made for."""
    names = {}
    for name, path in found(HEADS_FOLDER, HEADS_FILE).items():
        metadata = metadata_of(path)
        if metadata.get("format") == HEADS_FORMAT:
            names[f"{name} [{metadata.get('backbone', 'unknown')}]"] = path
    return names


def heads_choices() -> list[str]:
    return [BUNDLED, NONE, *heads_files()]


def complaint_about_heads(name: str | None) -> str | None:
    if name is None or name in heads_choices():
        return None
    return (f"heads {name!r} are not here: put them into {places(HEADS_FOLDER)} and refresh, or "
            f"choose one of {', '.join(heads_choices())}")


def heads_path(name: str | None, backbone: Path | None) -> Path | None:
    """The file behind a name in the combo; None for `none`.

    `bundled` means the file beside the backbone's own; without a backbone there is nothing to name.
    """
    if name == BUNDLED and backbone is not None:
        beside = backbone.with_name(HEADS_FILE)
        if not beside.is_file():
            raise SSDError(f"no {HEADS_FILE} lies beside {backbone}: choose 'none' and sample "
                           "with 'rows' or 'ar' (Baseline Method), which need no heads, or heads "
                           f"from {places(HEADS_FOLDER)}")
        return beside
    there = heads_files()
    if name != NONE and name not in there:
        raise SSDError(complaint_about_heads(name) or f"no heads without a backbone: {name}")
    return there.get(name)
