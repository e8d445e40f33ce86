"""Text models that transformers computes: read from a folder, whole and as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from ...errors import SSDError, first_line
from ..reading.checkpoint import open_checkpoint, read_json


def read_text_model(kind: Any, folder: Path, dtype: torch.dtype, what: str,
                    unused: str) -> torch.nn.Module:
    """A model of transformers' class `kind`, frozen.

    unused: a regular expression of the tensors that it leaves out. Raises SSDError, which calls the
    model `what`, if files are damaged, quantised or beside an adapter, or if a tensor is missing or
    unknown: transformers would go on with random numbers, or without what it does not know.
    """
    if open_checkpoint(folder).has_scales:
        raise SSDError(f"{folder}: {what} is stored in 8 bits with scales, which is read for "
                       "backbones only: load the original")
    config = kind.config_class.from_dict(read_json(folder / "config.json"))
    try:
        model, found = kind.from_pretrained(folder, config=config, torch_dtype=dtype,
                                            local_files_only=True, output_loading_info=True)
    except Exception as error:  # the library raises many types for damaged files
        raise SSDError(f"{folder}: {what} cannot be read ({first_line(error)}): get it again"
                       ) from error
    if missing := sorted(found["missing_keys"]):
        raise SSDError(f"{folder}: tensor {missing[0]} of {what} is missing: get the complete "
                       "model")
    if strange := sorted(key for key in found["unexpected_keys"] if not re.fullmatch(unused, key)):
        raise SSDError(f"{folder}: tensor {strange[0]} has no place in {what}: another kind of "
                       "model, or an altered one")
    return model.requires_grad_(False).eval()
