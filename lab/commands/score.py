"""`ssd evaluate score`: score a suite's finished pictures with an installed scorer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ssd_core.cli.options import Json, flag
from ssd_core.cli.output import Reporter, note
from ssd_core.errors import SSDError
from ssd_core.weights.load import pick_device

from ..evaluate.scorers import Gallery, Scoring, score

Folder = Annotated[Path, typer.Argument(help="Folder that evaluate --suite has written.",
                                        show_default=False)]


@dataclass(frozen=True)
class ScorerOptions:
    """Scorer."""

    scorer: str = field(metadata={"help": "clean-fid, hpsv2, clip, or claims (for postcards).",
                                  "names": ("--with",)})
    weights: Path | None = flag(None, "The scorer's weights: file or folder. Nothing is "
                                      "downloaded.")
    reference: Path | None = flag(None, "Folder of real pictures, for clean-fid.")
    batch: int = flag(32, "Pictures per batch.")
    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")


def command(folder: Folder, how: ScorerOptions, json: Json = False) -> None:
    """Score the pictures of a suite with clean-fid, HPSv2, CLIP or the postcards' checker."""
    if how.batch < 1:
        raise SSDError("batch must be at least 1")
    gallery, report = Gallery.of(folder), Reporter(json)
    scoring = Scoring(pick_device(how.device), how.batch, how.weights, how.reference, note)
    scores = score(how.scorer, gallery, scoring)
    report.print("\n".join([f"{how.scorer}: {len(gallery.pictures)} pictures of {folder}",
                          *(f"  {line}" for line in lines(scores))]))
    report.result({"scorer": how.scorer, "folder": str(folder),
                   "pictures": len(gallery.pictures), **scores})


def lines(scores: dict[str, float]) -> list[str]:
    """Each score with its value and, if there is one, its standard error."""
    return [f"{name} {value:.4g}" + (f" ± {scores[f'{name}_se']:.2g}" if f"{name}_se" in scores
                                      else "")
            for name, value in scores.items() if not name.endswith("_se")]
