"""Backbones on the tensors of a model that transformers has loaded. Knows no family by name."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..backbones.base import Backbone
from ..backbones.families import FAMILIES
from ..backbones.reading.loaded_model import LoadedModel
from ..errors import SSDError
from ..files import user_path

TOKENIZER = "tokenizer.json"
IN_PIPELINE = f"processor/{TOKENIZER}"  # where a pipeline of diffusers has it


@torch.inference_mode(False)
@torch.no_grad()
def backbone_of(model: nn.Module, files: str | Path | None = None) -> Backbone:
    """Make a backbone that computes on a loaded model's tensors, where they are.

    files: the folder with the model's tokenizer, and its picture codec if the model has none; None:
    the one that it was loaded from. Raises SSDError if no family has such a model, or if its
    tensors lie on several devices.
    """
    checkpoint = LoadedModel(model, folder_of(model, files))
    family = next((family for family in FAMILIES if family.matches(checkpoint)), None)
    if family is None:
        raise SSDError(f"{type(model).__name__}: no backbone known here; families: "
                       f"{', '.join(family.FAMILY for family in FAMILIES)}")
    return family.load(checkpoint, *checkpoint.place())


def folder_of(model: nn.Module, files: str | Path | None) -> Path:
    """The folder with a model's tokenizer: named, on disk, or in the Hub client's cache."""
    name = str(files or getattr(model, "name_or_path", ""))
    folder = user_path(name)
    if name and folder.is_dir():
        return folder
    if files is None and (cached := cached_tokenizer(name)) is not None:
        return cached.parent
    raise SSDError(f"{type(model).__name__}: no folder {name!r} with its {TOKENIZER}: name it, as "
                   "in load_backbone(model, files=FOLDER)")


def cached_tokenizer(name: str) -> Path | None:
    """The tokenizer of a repository on the Hub that was downloaded before."""
    try:
        from huggingface_hub import try_to_load_from_cache
        paths = [try_to_load_from_cache(name, file) for file in (TOKENIZER, IN_PIPELINE)]
    except (ImportError, ValueError):
        return None
    return next((Path(path) for path in paths if isinstance(path, str)), None)
