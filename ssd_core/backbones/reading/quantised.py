"""Tensors that are stored in 8 bits with scales, read back as floating point.

A tensor `X.weight` has one scale for all numbers or one for each row, in `X.weight_scale` (ComfyUI,
compressed-tensors) or `X.scale_weight` (ComfyUI). ComfyUI also names a format, float8_e4m3fn,
float8_e5m2 or int8_tensorwise: in `X.comfy_quant` (JSON as bytes) beside each layer, or in
`_quantization_metadata` in a file's header. Files of other quantisers are refused by name.
Knows nothing about models; the loader may quantise the numbers again as it likes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch

from ...errors import SSDError
from ...files import json_of

HEADER, MARK, SCALE, WEIGHT = "_quantization_metadata", ".comfy_quant", "_scale", ".weight"
SCALE_FIRST = ".scale_weight"
BESIDE = (MARK, ".input_scale", ".scale_input")  # of a quantised layer, for other programs
MARKER = "scaled_fp8"  # an empty tensor that says that a file has scales
FORMATS = ("float8_e4m3fn", "float8_e5m2", "int8_tensorwise")
# Quantisers whose files are not read: their names, by the ends (or ".parts.") of keys.
OTHERS = {".SCB": "bitsandbytes", ".absmax": "bitsandbytes", ".quant_map": "bitsandbytes",
          ".quant_state.": "bitsandbytes",
          ".g_idx": "GPTQ", ".qweight": "GPTQ or AWQ", ".qzeros": "GPTQ or AWQ",
          ".weight_packed": "compressed-tensors, several numbers in one",
          ".weight_zero_point": "compressed-tensors with zero points",
          ".weight_scale_inv": "blocks of fp8", ".W_q": "HQQ", ".weight._data": "quanto",
          ".weight_qdata": "torchao", "._weight_qdata": "torchao", ":_data": "torchao",
          ".weight_scale_2": "modelopt or ComfyUI, as nvfp4", ".biases": "MLX",
          "_proj.q_weight": "EXL2", ".trellis": "EXL3", "_proj.codebooks": "AQLM",
          "_proj_blocks": "OpenAI, as mxfp4"}
OTHER = re.compile("|".join(re.escape(end) + ("" if end.endswith(".") else r"$") for end in OTHERS),
                   re.MULTILINE)
READABLE = ("compressed-tensors", "fp8", "fbgemm_fp8")  # methods whose keys decide
SHOWN = {"gptq": "GPTQ", "awq": "AWQ", "hqq": "HQQ"}


def refuse_quantiser(names: Iterable[str], settings: object, path: Path,
                     metadata: Mapping[str, str]) -> None:
    """Raise SSDError if another program quantised the tensors with these names, or MLX saved them.

    settings: quantization_config of config.json, if it has one. path: of a file. metadata: from its
    header.
    """
    settings = settings if isinstance(settings, Mapping) else {}
    loads = ("load_in_4bit", "load_in_8bit")
    method = str(settings.get("quant_method") or
                 ("bitsandbytes" if any(map(settings.get, loads)) else ""))
    found = OTHER.findall("\n".join(names))
    known = [name for end, name in OTHERS.items() if end in found]
    if method and method not in READABLE:
        known = [SHOWN.get(method, method[:40])]
    if known:
        raise SSDError(f"{path}: quantised by {known[0]}, which is not read: load the original, "
                       "and choose dtype int8 or int4 here")
    if metadata.get("format") == "mlx":
        raise SSDError(f"{path}: converted for MLX, which is not read: load the original")


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


def scales_of(names: Iterable[str], layers: Iterable[str]) -> dict[str, str]:
    """{quantised tensor: its scale}, of marked layers and of all that have a scale beside them."""
    known = set(names)
    scales = {name: name + SCALE for layer in layers for name in (layer + WEIGHT,)}
    scales |= {name: name + SCALE for name in known if name + SCALE in known}
    first = {name: name.removesuffix(WEIGHT) + SCALE_FIRST for name in known
             if name.endswith(WEIGHT)}
    return scales | {name: scale for name, scale in first.items() if scale in known}


def is_beside(name: str, scales: Mapping[str, str]) -> bool:
    """Whether a tensor only says how another one of `scales` is quantised."""
    if name.rpartition(".")[2] == MARKER:
        return True
    return name in scales.values() or any(
        name.endswith(end) and name.removesuffix(end) + WEIGHT in scales for end in BESIDE)


def dequantised(weight: torch.Tensor, scale: torch.Tensor, name: str, path: Path) -> torch.Tensor:
    """weight [out, ...] times its scale, [] or [out] (also as [1] or [out, 1]), in float32."""
    rows = len(weight) if weight.dim() else 1
    if scale.numel() != 1 and (scale.numel() != rows or len(scale) != rows):
        raise SSDError(f"{path}: tensor {name} has {scale.numel()} scales for {rows} rows, "
                       "expected one for all or one for each row: load the original, and choose "
                       "dtype int8 or int4 here")
    return weight.float() * scale.float().view(-1, *(1,) * (weight.dim() - 1))
