"""One colour per code, for models whose codes only another model turns into pixels.

They are fitted from pictures (`ColourFit`), or else false ones: similar codes then get similar
colours, so that a preview shows shapes. The table of fitted ones is a small JSON
file beside the model's files, or in the user's cache folder if that place cannot be written.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ...errors import SSDError, first_line
from ...files import refuse_newer, write_text
from ...kept_files import cache_folder
from ..reading.checkpoint import Checkpoint, read_json
from .codec import PictureCodec
from .glm_encoder import codes_of, halved, read_encoder, visual_bytes

FORMAT = "ssd-colours/1"
PRIOR = 4.0  # cells that the guess for a code weighs as much as
RIDGE = 1e-3  # of the regression, as a share of the mean square of the code vectors
CODEBOOK = "model.vqmodel.quantize.embedding.weight"
STEPS = 8  # of the iteration that finds the directions of false colours
SPREAD = 2.0  # standard deviations that fill the range of a channel


class ColourFit:
    """Collects the cells of pictures and their codes.

    A code's colour is the mean of its cells, drawn towards what its vector lets expect: a linear
    regression over all cells, which also colours the codes that no picture has.
    """

    def __init__(self, vectors: torch.Tensor) -> None:
        """vectors: [codes, d] float32."""
        self.vectors = vectors
        self.sums = torch.zeros(len(vectors), 3, device=vectors.device)
        self.counts = torch.zeros(len(vectors), device=vectors.device)

    def add(self, codes: torch.Tensor, picture: torch.Tensor) -> None:
        """Codes [R, C] of a picture [H, W, 3], float in 0..1."""
        cells = F.interpolate(picture.permute(2, 0, 1)[None].float(), tuple(codes.shape),
                              mode="area")[0].flatten(1).T.to(self.sums)
        at = codes.flatten().to(self.sums.device)
        self.sums.index_add_(0, at, cells)
        self.counts.index_add_(0, at, torch.ones_like(at, dtype=self.counts.dtype))

    @property
    def seen(self) -> int:
        """How many codes the pictures have."""
        return int((self.counts > 0).sum())

    def table(self) -> torch.Tensor:
        """The colours [codes, 3] in 0..1; SSDError without any picture."""
        if not self.seen:
            raise SSDError("no picture to fit the colours from: name some")
        guess = self.expected()
        return ((self.sums + PRIOR * guess) / (self.counts + PRIOR)[:, None]).clamp(0, 1)

    def expected(self) -> torch.Tensor:
        """What a code's vector lets expect, [codes, 3]: ridge regression weighted by cells."""
        total = self.counts.sum()
        mean = self.sums.sum(0) / total
        centre = (self.counts @ self.vectors) / total
        x = self.vectors - centre
        weighted = self.counts[:, None] * x
        square = weighted.T @ x
        ridge = RIDGE * total * x.square().mean() + 1e-9
        square.diagonal().add_(ridge)
        slope = torch.linalg.solve(square, x.T @ (self.sums - self.counts[:, None] * mean))
        return (mean + x @ slope).clamp(0, 1)


def places(folder: Path, sha256: str) -> list[Path]:
    """Where the table of a model is looked for: beside its files, then in the user's cache."""
    cache = cache_folder()
    return [folder / "colours.json",
            *([] if cache is None else [cache / f"colours-{sha256[:16]}.json"])]


def write_table(colours: torch.Tensor, folder: Path, sha256: str, pictures: int) -> Path:
    """Write a table [codes, 3] in 0..1 to the first place that can be written; returns the file."""
    data = (colours.cpu() * 255).round().clamp(0, 255).byte().numpy().tobytes()
    text = json.dumps({"format": FORMAT, "sha256": sha256, "pictures": pictures,
                       "colours": base64.b64encode(data).decode("ascii")})
    first, *others = places(folder, sha256)
    try:
        write_text(first, text)
        return first
    except SSDError:
        if not others:
            raise
    write_text(others[0], text)
    return others[0]


def read_table(folder: Path, sha256: str, codes: int) -> torch.Tensor | None:
    """The table [codes, 3] in 0..1 of these weights; None if there is none. SSDError if damaged."""
    for path in places(folder, sha256):
        if path.is_file() and (known := read_json(path)).get("sha256") == sha256:
            return colours_in(path, known, codes)
    return None


def colours_in(path: Path, known: dict, codes: int) -> torch.Tensor:
    try:
        refuse_newer(path, str(known.get("format")), FORMAT)
        if known.get("format") != FORMAT:
            raise ValueError(f"its format is {str(known.get('format'))[:40]!r}")
        data = base64.b64decode(known["colours"], validate=True)
        return torch.from_numpy(np.frombuffer(data, np.uint8).astype(np.float32) / 255).view(
            codes, 3)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise SSDError(f"{path}: no table of colours ({first_line(error, 60)}): remove it, or fit "
                       "it again with 'ssd colours'") from error


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

    def code_colours(self) -> torch.Tensor:
        return self.colours.detach().float().add(1).div(2).clamp(0, 1)

    def codes(self, pixels: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The codes [R, C] int64 of pictures that `halved` has prepared for their grids."""
        if self.checkpoint is None:
            raise SSDError("this model has no files to read its picture encoder from")
        encoder = read_encoder(self.checkpoint, self.codebook.device, self.encoder_dtype)
        return codes_of(pixels, encoder, self.code_vectors)

    def decode(self, tokens: torch.Tensor, scale: int = 1) -> torch.Tensor:
        """Codes [B, R, C] -> pixels [B, 3, H, W] in -1..1, plain squares."""
        cells = F.embedding(tokens, self.colours).permute(0, 3, 1, 2)
        return F.interpolate(cells, scale_factor=self.patch * scale, mode="nearest")


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
