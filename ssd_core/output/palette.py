"""One colour per code, for the rows of a preview that are not decoded.

Some codecs tell the colours of their codes. Those of the others are learned from what is decoded
anyway: two strips of codes from all over the codebook, which also time the decoder, the rows that
previews show, and finished pictures. Codes that nobody has seen yet have the colour that a
regression on their vectors expects. What was learned is stored with the other figures of the
backbone, by its hash.
"""

from __future__ import annotations

import math
import time
import zipfile
from contextlib import suppress

import numpy as np
import torch
from torch.utils.weak import WeakIdKeyDictionary

from ..backbones.base import Backbone
from ..backbones.codecs.codec import PictureCodec
from ..errors import SSDError
from ..files import atomic_write
from ..weights.memory import empty_caches, is_out_of_memory

GREY = 0.5
STRIPS, ROWS = 2, 2  # strips of rows that a new palette decodes
MOST = 255  # cells that a code's colour is the mean of; later ones move it as if there were no more
LEARNED = 2048  # codes that the regression reads at most
GROWN = 1.25  # times as many codes as before must be known for a new regression
RIDGE = 1e-3  # of the regression, whose terms have a mean square of 1
FEW = 16  # dimensions of code vectors up to which their squares count, too

_MADE = WeakIdKeyDictionary()  # keyed by a weight, which all sizes of a backbone share


def palette(backbone: Backbone) -> Palette:
    """The backbone's palette, made once while it is loaded; grey if memory runs out."""
    try:
        if backbone.norm not in _MADE:
            _MADE[backbone.norm] = Palette(backbone.smallest)
        return _MADE[backbone.norm]
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        empty_caches()
        return Palette(backbone, decodes=False)


class Palette:
    """The colours of a backbone's codes.

    colours: float32 [codes, 3] in 0..1. cells uint8 [codes]: in how many decoded cells each was
    seen. learns: whether they are learned. glances: whether the codec has a quicker way than
    decoding. row_seconds: this thread's time to decode a row of cells of one picture.
    """

    def __init__(self, backbone: Backbone, decodes: bool = True) -> None:
        """decodes: whether the decoder may be used; without it everything is grey."""
        self.codec: PictureCodec = backbone.picture_codec
        self.colours = np.full((backbone.codes, 3), GREY, np.float32)
        self.cells = np.zeros(backbone.codes, np.uint8)
        self.row_seconds, self.fitted_to, self.changed = math.inf, 0, False
        of_codec = self.codec.code_colours() if decodes else None
        self.learns = decodes and of_codec is None
        self.glances = of_codec is not None and self.codec.glances
        folder = backbone.estimates.folder
        self.path = (folder / f"palette-{backbone.sha256[:16]}.npz"
                     if self.learns and folder is not None and backbone.sha256 else None)
        if of_codec is not None:
            self.colours = of_codec[: backbone.codes].float().cpu().numpy()
        elif self.learns:
            self._load()
            self._try(backbone)

    def of(self, tokens: np.ndarray) -> np.ndarray:
        """Tokens [...] -> their colours uint8 [..., 3]."""
        return (self.colours[tokens] * 255).round().astype(np.uint8)

    def _try(self, backbone: Backbone) -> None:
        """Decode strips, and take what is not known yet from them."""
        known = self.cells.any()
        for tokens in scattered(STRIPS, ROWS, backbone.grid.columns, backbone.codes):
            pixels = self._timed(backbone, tokens)
            if not known:
                self.learn(tokens, pixels)

    def timed(self, backbone: Backbone) -> float:
        """`row_seconds`, measured at the first call by a codec that tells its colours."""
        if self.row_seconds == math.inf:
            self._timed(backbone, scattered(1, ROWS, backbone.grid.columns, backbone.codes)[0])
        return self.row_seconds

    def _timed(self, backbone: Backbone, tokens: np.ndarray) -> np.ndarray:
        """Decode tokens [ROWS, C] to pixels [H, W, 3], and note the time."""
        begun = time.thread_time()
        with torch.inference_mode():
            codes = torch.from_numpy(tokens)[None].to(backbone.device)
            pixels = backbone.decode(codes)[0].float().cpu().numpy()
        self.row_seconds = min(self.row_seconds, (time.thread_time() - begun) / ROWS)
        return pixels

    def learn(self, tokens: np.ndarray, pixels: np.ndarray) -> None:
        """Take the colours of decoded cells: tokens [R, C], pixels [H, W, 3], uint8 or in 0..1."""
        if not self.learns:
            return
        scale = 255 if pixels.dtype == np.uint8 else 1
        means = cell_means(pixels, *tokens.shape).reshape(-1, 3) / scale
        codes, place, counts = np.unique(tokens, return_inverse=True, return_counts=True)
        sums = np.zeros((len(codes), 3))
        np.add.at(sums, place.ravel(), means)
        seen = self.cells[codes].astype(np.int64)
        share = (counts / (seen + counts))[:, None]
        self.colours[codes] += share * (sums / counts[:, None] - self.colours[codes])
        self.cells[codes] = np.minimum(seen + counts, MOST)
        self.changed = True
        self._expect()

    def _expect(self) -> None:
        """Colour the unseen codes as their vectors let expect, if more is known than before."""
        seen = np.flatnonzero(self.cells)
        if len(seen) < GROWN * self.fitted_to or len(seen) == len(self.cells):
            return
        self.fitted_to = len(seen)
        read = torch.from_numpy(seen[:: -(-len(seen) // LEARNED)])
        terms = terms_of(self.codec.code_vectors[: len(self.cells)].detach().float())
        x = terms[read.to(terms.device)].double().cpu()
        slope, mean, centre = regression(x, torch.from_numpy(self.colours[read.numpy()]).double())
        expected = (terms - centre.to(terms)) @ slope.to(terms) + mean.to(terms)
        unseen = self.cells == 0
        self.colours[unseen] = expected.clamp(0, 1).cpu().numpy()[unseen]

    def _load(self) -> None:
        """Read what was stored; what cannot be read counts as nothing."""
        if self.path is None:
            return
        with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile), np.load(
                self.path, allow_pickle=False) as stored:
            colours, cells = stored["colours"], stored["cells"]
            if (colours.shape, cells.shape) == (self.colours.shape, self.cells.shape) and (
                    colours.dtype == cells.dtype == np.uint8):
                self.colours, self.cells = colours.astype(np.float32) / 255, cells.copy()
                self.fitted_to = int(np.count_nonzero(cells))

    def store(self) -> None:
        """Store what was learned since the last time; a failure to write is ignored."""
        if self.path is None or not self.changed:
            return
        self.changed = False
        with suppress(SSDError, OSError), atomic_write(self.path) as temporary, open(
                temporary, "wb") as file:
            np.savez(file, colours=(self.colours * 255).round().astype(np.uint8), cells=self.cells)


def scattered(strips: int, rows: int, columns: int, codes: int) -> np.ndarray:
    """Strips of tokens int64 [strips, rows, columns] from all over the codebook."""
    step = max(1, int(codes * 0.618))
    while math.gcd(step, codes) > 1:
        step += 1
    return (np.arange(strips * rows * columns) * step % codes).reshape(strips, rows, columns)


def terms_of(vectors: torch.Tensor) -> torch.Tensor:
    """The terms of the regression, from code vectors [codes, d]."""
    return torch.cat((vectors, vectors.square()), 1) if vectors.shape[1] <= FEW else vectors


def regression(x: torch.Tensor, colours: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Ridge regression of colours [n, 3] on terms [n, d]: slope [d, 3], and both means."""
    mean, centre, spread = colours.mean(0), x.mean(0), x.std(0, correction=0).clamp(min=1e-9)
    x = (x - centre) / spread
    square = x.T @ x / len(x)
    square.diagonal().add_(RIDGE)
    slope = torch.linalg.solve(square, x.T @ (colours - mean) / len(x))
    return slope / spread[:, None], mean, centre


def cell_means(pixels: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Mean colour of each cell: [H, W, 3] -> [R, C, 3]."""
    height, width, _ = pixels.shape
    cells = pixels.reshape(rows, height // rows, columns, width // columns, 3)
    return cells.mean((1, 3))
