"""A colour for each code, fitted from pictures, for models that another model paints the pixels of.

The table is a small JSON file beside the model's files, or in the user's cache folder if that place
cannot be written. Knows no model.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from ...errors import SSDError, first_line
from ...files import refuse_newer, write_text
from ...kept_files import cache_folder
from ..reading.checkpoint import read_json

FORMAT = "ssd-colours/1"
PRIOR = 4.0  # cells that the guess for a code weighs as much as
RIDGE = 1e-3  # of the regression, as a share of the mean square of the code vectors


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
