"""`ssd convert`: weights that torch saved as a pickle, written anew as safetensors."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from ..weights.convert import convert
from .options import Json, flag
from .output import Reporter

Source = Annotated[Path, typer.Argument(metavar="PATH", show_default=False, exists=False,
                                        help="A .bin, .pt, .pth or .ckpt file, or its folder.")]


@dataclass(frozen=True)
class Target:
    """Where the new files go."""

    out: Path | None = flag(None, "Folder for them and for the JSON files that belong to them "
                                  "(beside the old ones by default).")
    shard_gb: float = flag(2.0, "Largest size of a file, in GiB.")


def command(path: Source, target: Target, json: Json = False) -> None:
    """Write .bin, .pt, .pth and .ckpt weights as safetensors; the old files stay."""
    report = Reporter(json)
    with tqdm(unit="B", unit_scale=True, leave=False, disable=None, file=sys.stderr) as bar:
        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        written = convert(path, target.out, int(target.shard_gb * 2**30), show)
    for new in written:
        report.say(str(new))
    report.result({"files": [str(new) for new in written]})
