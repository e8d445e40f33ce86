"""Adapters (LoRA and the like) beside a model or within it: they are refused, never left out.

Knows nothing about models: names of files and of tensors tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ...errors import SSDError

FILES = re.compile(r"adapter_(config\.json|model.*\.(safetensors|bin))"
                   r"|pytorch_lora_weights\.(safetensors|bin)")
KEYS = re.compile(r"(^|[._])lora([._]|$)|(^|\.)adapters?([._]|$)|(^|\.)(loha_|lokr_|hada_|oft_"
                  r"|boft_|ia3_|vera_|base_layer|dora_scale|modules_to_save|original_module"
                  r"|prompt_encoder)")


class AdapterError(SSDError):
    """A file or folder holds an adapter."""


def refuse_adapter_keys(names: Iterable[str], file: Path) -> None:
    """Raise AdapterError if a tensor belongs to an adapter."""
    if key := next((name for name in names if KEYS.search(name)), None):
        raise AdapterError(f"{file}: tensor {key} belongs to an adapter (LoRA), which is not read: "
                           "merge it into the model first (peft's merge_and_unload), and load what "
                           "that saves")


def refuse_adapter_files(*folders: Path) -> None:
    """Raise AdapterError if an adapter lies directly in one of these folders."""
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if FILES.fullmatch(path.name):
                raise AdapterError(f"{path}: an adapter (LoRA), which is not read: merge it into "
                                   "the model first (peft's merge_and_unload), or move it to "
                                   "another folder")
