"""`ssd colours`: fit the colours of GLM-Image's codes for its live preview."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import torch
import typer
from tqdm import tqdm

from ..backbones.codecs.colours import CodeColours, ColourFit, write_table
from ..backbones.codecs.glm_encoder import source_grid
from ..errors import SSDError
from ..output.picture_files import ENDINGS, pixels_of
from .options import Json, Loading
from .output import Reporter, note
from .session import load

AT_ONCE = 16  # pictures that the encoder reads for each time it is loaded
Pictures = Annotated[list[Path], typer.Argument(
    metavar="PICTURES", show_default=False, exists=False,
    help="Pictures of all kinds, or folders of them.")]


def command(pictures: Pictures, loading: Loading, json: Json = False) -> None:
    """Fit the colour of each code from pictures, for previews of models without pixels."""
    report, files = Reporter(json), files_in(pictures)
    backbone, _ = load(loading, [])
    codec = backbone.picture_codec
    if not isinstance(codec, CodeColours):
        raise SSDError(f"{backbone.name} decodes its own pixels: only GLM-Image needs colours for "
                       "its codes")
    fit, read = ColourFit(codec.code_vectors[: backbone.codes].float()), 0
    for some in tqdm(batches(files), unit="batch", leave=False, disable=None, file=sys.stderr):
        pixels = [each for path in some if (each := readable(path)) is not None]
        for codes, picture in zip(backbone.read_sources(pixels), pixels, strict=True):
            fit.add(codes, picture)
        read += len(pixels)
    path = write_table(fit.table(), backbone.files[0].parent, backbone.sha256, read)
    report.print(f"{path}: the colours of {fit.seen:,} of {backbone.codes:,} codes from {read} "
                 "pictures; those of the others follow from similar codes")
    report.result({"file": str(path), "pictures": read, "codes_seen": fit.seen,
                   "codes": backbone.codes})


def files_in(named: Iterable[Path]) -> list[Path]:
    """The pictures that are named, and those in the folders that are."""
    found = [path for each in named for path in (
        sorted(file for file in each.rglob("*") if file.suffix.lower() in ENDINGS)
        if each.is_dir() else [each])]
    if not found:
        raise SSDError("no picture there: name pictures, or a folder of them")
    return found


def batches(files: list[Path]) -> list[list[Path]]:
    return [files[start : start + AT_ONCE] for start in range(0, len(files), AT_ONCE)]


def readable(path: Path) -> torch.Tensor | None:
    """The pixels [H, W, 3] of a picture that the encoder can read; else a line names it."""
    try:
        pixels = pixels_of(path)
        source_grid(pixels.shape[0], pixels.shape[1])
    except SSDError as error:
        note(f"left out: {error}")
        return None
    return pixels
