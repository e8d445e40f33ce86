"""ComfyUI's model folders, and the backbones and draft heads in them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import folder_paths

from ..ssd_core.backbones.estimates import Estimates
from ..ssd_core.backbones.reading.checkpoint import ENDINGS
from ..ssd_core.errors import SSDError
from ..ssd_core.files import user_path
from ..ssd_core.weights.catalogue import BACKBONES_FOLDER, CATALOGUE, GB
from ..ssd_core.weights.registry import AUTO, HEADS_FOLDER, LORAS_FOLDER, NONE, ModelRegistry

REMEDY = "press Download on Load Model"  # for a known model that is not here
SUFFIXES = {BACKBONES_FOLDER: set(ENDINGS), HEADS_FOLDER: {".safetensors"}}


def register_folders() -> None:
    """Register the two model folders; paths that the user configured stay and come first."""
    for name, own in SUFFIXES.items():
        folder_paths.add_model_folder_path(name, os.path.join(folder_paths.models_dir, name))
        paths, suffixes = folder_paths.folder_names_and_paths[name]
        folder_paths.folder_names_and_paths[name] = (paths, suffixes | own)


def own_folder() -> Path:
    """The folder of the nodes' own files; ComfyUI serves no folder whose name begins with "__"."""
    return Path(folder_paths.get_user_directory()) / "__ssd"


@cache
def estimates() -> Estimates:
    """What runs of the nodes took, for the plans and choices of later ones."""
    return Estimates.stored_in(own_folder())


def registry() -> ModelRegistry:
    """The backbones and draft heads in ComfyUI's current folders."""
    return ModelRegistry(folder_paths.get_folder_paths(BACKBONES_FOLDER),
                         folder_paths.get_folder_paths(HEADS_FOLDER), lambda name: REMEDY,
                         folder_paths.get_folder_paths(LORAS_FOLDER))


def fingerprint(path: Path | None) -> str:
    """A key that changes when the file does, so that nodes that read it run again."""
    return "" if path is None else f"{path}:{os.stat(path).st_mtime_ns}"


def complaint_of_type(name: object) -> str | None:
    """What is wrong with a name that a program sent; None if it is text, or linked."""
    if name is None or isinstance(name, str):
        return None
    return f"it is of type {type(name).__name__}, not text: send a name"


# Backbones


def complaint_about_backbone(name: str | None) -> str | None:
    """Why a name cannot be chosen, or None; a workflow may name a backbone but not a path."""
    models = registry()
    if name is None or models.listed(name):
        return None
    row = CATALOGUE.get(name)
    if row is None or models.folder_of(name).exists():
        return models.how_to_get(name)
    size = f"about {row.about_bytes / GB:.1f} GB" if row.about_bytes else "size not known here"
    return f"{name} is not here yet ({size}): {REMEDY}, or choose postcard, which needs none"


def backbone_path(name: str) -> Path:
    """The file for a name in the combo; raises SSDError if it is missing or broken."""
    if complaint := complaint_about_backbone(name):
        raise SSDError(complaint)
    return registry().named(name).file


def backbone_fingerprint(name: str | None) -> str:
    model = registry().listed(name or "")
    return fingerprint(model.path if model else None)


# Draft heads


def heads_choices() -> list[str]:
    return [AUTO, NONE, *registry().heads()]


def complaint_about_heads(name: str | None) -> str | None:
    return None if name is None or name in heads_choices() else registry().no_heads(name)


def heads_fingerprint(name: str | None) -> str:
    """The fingerprint of the named file, or of all heads files if the backbone decides."""
    heads = registry().heads()
    wanted = heads.values() if name == AUTO else [heads.get(name or "")]
    return " ".join(fingerprint(model.path if model else None) for model in wanted)


def heads_path(selection: str, backbone: Path, hashes: Sequence[str]) -> Path | None:
    """The file for a selection in the combo and a loaded backbone; None for no heads."""
    if complaint := complaint_about_heads(selection):
        raise SSDError(complaint)
    return registry().heads_for(backbone, selection, hashes)


# Pictures


def complaint_about_pictures(folder: str | None) -> str | None:
    """Why a folder below ComfyUI's output folder cannot be used, or None."""
    try:
        pictures_folder(folder or "")
    except SSDError as error:
        return str(error)
    return None


def pictures_folder(name: str) -> Path:
    """The folder of this name in ComfyUI's output folder; "" is the output folder itself.

    Raises SSDError if there is none, or if the name leads out of it.
    """
    output = os.path.abspath(folder_paths.get_output_directory())
    folder = Path(os.path.abspath(os.path.join(output, user_path(name.strip()))))
    if not folder.is_relative_to(output) or (name.strip() and not folder.is_dir()):
        raise SSDError(f"folder {name!r}: there is none of this name in ComfyUI's output folder: "
                       "choose one that lies there, or leave it empty for the whole folder")
    return folder
