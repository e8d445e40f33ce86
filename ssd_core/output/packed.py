"""Tokens and masks as JSON: {"shape": [R, C], "data": base64}. What is read is checked."""

from __future__ import annotations

import base64
import hashlib

import numpy as np
import torch

MAX_SIDE = 1024


def raster_bytes(tokens: torch.Tensor) -> bytes:
    """Tokens [R, C] as little-endian int32 in raster order."""
    return tokens.cpu().numpy().astype("<i4").tobytes()


def tokens_sha256(tokens: torch.Tensor) -> str:
    """SHA-256 of one picture's tokens [R, C], the same on every machine."""
    return hashlib.sha256(raster_bytes(tokens)).hexdigest()


def pack(tokens: torch.Tensor) -> dict:
    return as_json(tokens, raster_bytes(tokens))


def unpack(packed: object, name: str = "tokens") -> torch.Tensor:
    """Tokens [R, C] int64; ValueError if they are malformed."""
    shape, data = from_json(packed, name)
    if len(data) != 4 * shape[0] * shape[1]:
        raise ValueError(f"{name} do not fill their shape")
    tokens = torch.from_numpy(np.frombuffer(data, "<i4").astype(np.int64)).view(*shape)
    if tokens.min() < 0:
        raise ValueError(f"{name} are negative")
    return tokens


def pack_mask(mask: torch.Tensor) -> dict:
    """A mask [R, C] bool, eight cells a byte in raster order."""
    return as_json(mask, np.packbits(mask.cpu().numpy().flatten()).tobytes())


def unpack_mask(packed: object, name: str = "keep_mask") -> torch.Tensor:
    """A mask [R, C] bool; ValueError if it is malformed."""
    (rows, columns), data = from_json(packed, name)
    if len(data) != -(-rows * columns // 8):
        raise ValueError(f"{name} does not fill its shape")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=rows * columns)
    return torch.from_numpy(bits.astype(bool)).view(rows, columns)


def as_json(table: torch.Tensor, data: bytes) -> dict:
    return {"shape": list(table.shape), "data": base64.b64encode(data).decode("ascii")}


def from_json(packed: object, name: str) -> tuple[tuple[int, int], bytes]:
    """(R, C) and the bytes; ValueError if there are none."""
    shape, text = ((packed.get("shape"), packed.get("data")) if isinstance(packed, dict)
                   else (None, None))
    if not (isinstance(shape, list) and len(shape) == 2
            and all(type(side) is int and 1 <= side <= MAX_SIDE for side in shape)):
        raise ValueError(f"{name} have no shape")
    if not isinstance(text, str):
        raise ValueError(f"{name} have no data")
    return (shape[0], shape[1]), base64.b64decode(text, validate=True)
