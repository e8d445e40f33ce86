"""One colour per code, for models whose codes only another model turns into pixels.

They are fitted from pictures (colour_table.py), or else false ones: similar codes then get similar
colours, so that a preview shows shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from ...errors import SSDError
from ..reading.checkpoint import Checkpoint
from .codec import PictureCodec
from .colour_table import read_table
from .glm_encoder import codes_of, halved, read_encoder, visual_bytes

CODEBOOK = "model.vqmodel.quantize.embedding.weight"
STEPS = 8  # of the iteration that finds the directions of false colours
SPREAD = 2.0  # standard deviations that fill the range of a channel


class CodeColours(PictureCodec):
    """Draws every cell in the colour of its code.

    checkpoint: holds the encoder, which is in memory only while it reads pictures, in `dtype`.
    """

    def __init__(self, codebook: torch.Tensor, patch: int, checkpoint: Checkpoint | None = None,
                 dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.patch, self.checkpoint = patch, checkpoint
        self.encoder_dtype = torch.float32 if dtype == torch.float16 else dtype
        self.encoder_bytes = visual_bytes(checkpoint, self.encoder_dtype) if checkpoint else 0
        self.codebook = nn.Parameter(codebook, requires_grad=False)
        self.colours = nn.Parameter(false_colours(codebook.float()), requires_grad=False)
        self.fitted = False  # whether the colours are those of pictures

    @property
    def code_vectors(self) -> torch.Tensor:
        """The encoder compares directions."""
        return F.normalize(self.codebook, dim=-1)

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        grid = (pictures.shape[2] // self.patch, pictures.shape[3] // self.patch)
        return torch.stack(self.codes([halved(each, grid) for each in pictures.add(1).div(2)]))

    def take(self, table: torch.Tensor) -> None:
        """Use a fitted table [codes, 3] in 0..1."""
        self.colours = nn.Parameter((table * 2 - 1).to(self.colours), requires_grad=False)
        self.fitted = True

    def codes(self, pixels: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The codes [R, C] int64 of pictures that `halved` has prepared for their grids."""
        if self.checkpoint is None:
            raise SSDError("this model has no files to read its picture encoder from")
        encoder = read_encoder(self.checkpoint, self.codebook.device, self.encoder_dtype)
        return codes_of(pixels, encoder, self.code_vectors)

    def decode(self, tokens: torch.Tensor) -> torch.Tensor:
        """Codes [B, R, C] -> pixels [B, 3, H, W] in -1..1, plain squares."""
        cells = F.embedding(tokens, self.colours).permute(0, 3, 1, 2)
        return F.interpolate(cells, scale_factor=self.patch, mode="nearest")


def read_colours(checkpoint: Checkpoint, codes: int, patch: int, device: torch.device,
                 dtype: torch.dtype, sha256: str) -> CodeColours:
    """The colours of a checkpoint's codebook; SSDError if it has none of `codes` codes."""
    if checkpoint.shapes.get(CODEBOOK, ())[:1] != (codes,):
        raise SSDError(f"{checkpoint.folder}: {CODEBOOK} of {codes} codes is missing: get the "
                       "complete model")
    codebook = checkpoint.floating(CODEBOOK).to(device, copy=not checkpoint.adopted)
    made = CodeColours(codebook, patch, checkpoint, dtype)
    if (table := read_table(checkpoint.folder, sha256, codes)) is not None:
        made.take(table)
    return made


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
