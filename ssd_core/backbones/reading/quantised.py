"""Layers that ComfyUI's tools have quantised in a checkpoint, read back as floating point.

A layer of format float8_e4m3fn, float8_e5m2 or int8_tensorwise has its numbers in `X.weight`, and
in `X.weight_scale` one scale for all or one for each row. Which layers are quantised is said by
`X.comfy_quant` (JSON as bytes) beside each, or by `_quantization_metadata` in a file's header.
Knows nothing about models; the loader may quantise the numbers again as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch

from ...errors import SSDError
from ...files import json_of

HEADER, MARK, SCALE, WEIGHT = "_quantization_metadata", ".comfy_quant", ".weight_scale", ".weight"
BESIDE = (MARK, SCALE, ".input_scale", ".weight_scale_2")  # tensors that belong to the weight
FORMATS = ("float8_e4m3fn", "float8_e5m2", "int8_tensorwise")


def layers_in(names: Iterable[str], metadata: Mapping[str, str],
              tensor: Callable[[str], torch.Tensor], path: Path) -> set[str]:
    """The names of quantised layers, without ".weight".

    names: of all tensors. tensor(name): reads one. path: of a file, for errors. Raises SSDError for
    formats that are not read.
    """
    layers = in_header(metadata.get(HEADER), path)
    layers |= {name.removesuffix(MARK): parsed(bytes(tensor(name).tolist()), path)
               for name in names if name.endswith(MARK)}
    for layer, settings in layers.items():
        require_readable(layer, settings, path)
    return set(layers)


def in_header(text: str | None, path: Path) -> dict[str, dict]:
    """The settings of each layer in a header's entry."""
    layers = {} if text is None else parsed(text, path).get("layers", {})
    if not isinstance(layers, dict) or not all(isinstance(each, dict) for each in layers.values()):
        raise SSDError(f"{path}: {HEADER} in its header names no layers: get it again")
    return layers


def parsed(text: str | bytes, path: Path) -> dict:
    try:
        settings = json_of(text)
    except ValueError as error:
        raise SSDError(f"{path}: how its layers are quantised is not readable as JSON: get it "
                       "again") from error
    return settings if isinstance(settings, dict) else {}


def require_readable(layer: str, settings: Mapping, path: Path) -> None:
    """Raise SSDError unless the format is one of FORMATS, without a rotation of the weights."""
    name = str(settings.get("format"))[:40]
    if settings.get("convrot"):
        name += " with convrot"
    if name not in FORMATS:
        raise SSDError(f"{path}: layer {layer} is quantised as {name}, which is not read: get the "
                       f"model in bf16, or in one of {', '.join(FORMATS)}")


def belongs_to(name: str, layers: set[str]) -> bool:
    """Whether a tensor is a scale or a mark of one of these layers."""
    return any(name.endswith(end) and name.removesuffix(end) in layers for end in BESIDE)


def dequantised(weight: torch.Tensor, scale: torch.Tensor, name: str, path: Path) -> torch.Tensor:
    """weight [out, ...] times its scale, [] or [out] (also as [1] or [out, 1]), in float32."""
    scale = scale.float().flatten()
    if len(scale) not in (1, len(weight)):
        raise SSDError(f"{path}: tensor {name} has {len(scale)} scales for {len(weight)} rows: get "
                       "it again")
    return weight.float() * scale.view(-1, *(1,) * (weight.dim() - 1))
