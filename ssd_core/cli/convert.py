"""`ssd convert`: rewrite pickled torch weights as safetensors."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from ..errors import SSDError
from ..weights.convert import convert
from .options import Json, flag
from .output import Reporter

Source = Annotated[Path, typer.Argument(metavar="PATH", show_default=False, exists=False,
                                        help="A .bin, .pt, .pth or .ckpt file, or its folder.")]


@dataclass(frozen=True)
class ConvertOptions:
    """Output."""

    out: Path | None = flag(None, "Folder for the new files and a copy of their JSON files "
                                  "(default: beside the old files).")
    shard_gb: float = flag(2.0, "Maximum size of a file, in GiB.")

    def __post_init__(self) -> None:
        if not 0 < self.shard_gb < math.inf:
            raise SSDError(f"shard-gb {self.shard_gb}: must be above 0, and a number")


def command(path: Source, target: ConvertOptions, json: Json = False) -> None:
    """Rewrite .bin, .pt, .pth and .ckpt weights as safetensors; the old files stay."""
    report = Reporter(json)
    written = converted(path, target)
    for new in written:
        report.print(str(new))
    report.result({"files": [str(new) for new in written]})


def converted(path: Path, target: ConvertOptions) -> list[Path]:
    """The new files of pickled weights, with a progress bar."""
    with tqdm(unit="B", unit_scale=True, leave=False, disable=None, file=sys.stderr) as bar:
        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return convert(path, target.out, int(target.shard_gb * 2**30), show)
