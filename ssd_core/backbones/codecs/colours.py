"""One colour per code, for models whose codes only another model turns into pixels.

The colours come from a file beside the weights, which `python -m ssd_core colours` fits to
pictures. Without it they are false colours: similar codes get similar colours, so shapes are seen.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ...errors import SSDError
from ...files import read_safetensors
from ..reading.checkpoint import Checkpoint
from .codec import PictureCodec

FILE, FORMAT = "colours.safetensors", "ssd-colours"
CODEBOOK = "model.vqmodel.quantize.embedding.weight"
STEPS = 8  # of the iteration that finds the directions of false colours
SPREAD = 2.0  # standard deviations that fill the range of a channel


class ColourTable(PictureCodec):
    """Draws every cell in the colour of its code; encodes nothing.

    false: the colours are not those of pictures.
    """

    def __init__(self, codebook: torch.Tensor, colours: torch.Tensor, patch: int,
                 false: bool) -> None:
        super().__init__()
        self.patch, self.false = patch, false
        self.codebook = nn.Parameter(codebook, requires_grad=False)
        self.colours = nn.Parameter(colours, requires_grad=False)  # [codes, 3] in -1..1

    @property
    def code_vectors(self) -> torch.Tensor:
        """The encoder compares directions."""
        return F.normalize(self.codebook, dim=-1)

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        raise SSDError("this model cannot read pictures here: keep or change pictures that it drew")

    def decode(self, tokens: torch.Tensor) -> torch.Tensor:
        """Codes [B, R, C] -> pixels [B, 3, H, W] in -1..1, plain squares."""
        cells = F.embedding(tokens, self.colours).permute(0, 3, 1, 2)
        return F.interpolate(cells, scale_factor=self.patch, mode="nearest")


def read_colours(checkpoint: Checkpoint, codes: int, patch: int,
                 device: torch.device) -> ColourTable:
    """The table beside a checkpoint, else false colours from its codebook."""
    codebook = checkpoint.tensor(CODEBOOK) if CODEBOOK in checkpoint.shapes else None
    if codebook is None or codebook.shape[:1] != (codes,):
        raise SSDError(f"{checkpoint.folder}: {CODEBOOK} of {codes} codes is missing: get the "
                       "complete model")
    codebook = codebook.to(device, copy=True)
    path = checkpoint.folder / FILE
    colours = table_in(path, codes) if path.is_file() else false_colours(codebook.float())
    return ColourTable(codebook, colours.to(device), patch, not path.is_file())


def table_in(path: Path, codes: int) -> torch.Tensor:
    """float32 [codes, 3] in -1..1 from a file of colours in 0..1."""
    colours = read_safetensors(path, FORMAT)[0].get("colours")
    if colours is None or tuple(colours.shape) != (codes, 3):
        raise SSDError(f"{path}: no colours of {codes} codes: fit it again with "
                       "'python -m ssd_core colours'")
    return colours.float() * 2 - 1


def false_colours(vectors: torch.Tensor) -> torch.Tensor:
    """float32 [codes, 3] in -1..1: where each code lies along the codebook's main directions.

    vectors: [codes, d] float32. Brightness follows the first direction, two hues the others.
    """
    if vectors.is_meta:
        return vectors.new_empty(len(vectors), 3)
    centred = F.normalize(vectors, dim=-1)
    centred = centred - centred.mean(0)
    basis = centred[:3].T
    for _ in range(STEPS):  # orthogonal iteration towards the first principal components
        basis = torch.linalg.qr(centred.T @ (centred @ basis))[0]
    along = centred @ basis
    light, warm, green = (along / along.std(0).clamp(min=1e-9) / SPREAD).unbind(-1)
    return torch.stack((light + warm, light + green, light - warm), -1).div(2).clamp(-1, 1)
