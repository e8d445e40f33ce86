"""`ssd plan`: how many passes a method takes, without any weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ..backbones import postcard
from ..backbones.base import Backbone
from ..decode import plan
from ..errors import SSDError
from ..grid import Grid
from ..load import BACKBONE_FILE, resolve
from .options import Json, Knobs, Loading, flag
from .output import Reporter
from .session import find_backbone

# Backbones whose grid and preset are known without their weights, by name and by file format.
UNLOADED: dict[str, type[Backbone]] = {"postcard": postcard.Postcard,
                                       postcard.FORMAT: postcard.Postcard}


@dataclass(frozen=True)
class Target:
    """Plan for what."""

    backbone: str | None = flag(None, "Bundled name, file or folder (postcard by default).")
    models_dir: str | None = flag(None, "Folder with ssd_backbones/NAME.")
    grid: str | None = flag(None, "RxC, rows x columns, instead of a backbone.")
    row_end: bool = flag(False, "The grid's rows are closed by a forced token.")

    def resolved(self) -> Grid | type[Backbone]:
        if self.grid is None:
            if self.row_end:
                raise SSDError("--row-end belongs to --grid: a backbone knows its own rows")
            return unloaded(Loading(self.backbone or "postcard", models_dir=self.models_dir))
        if self.backbone is not None:
            raise SSDError("plan takes --grid or --backbone, not both")
        return Grid.parse(self.grid, self.row_end)


def unloaded(loading: Loading) -> type[Backbone]:
    """The class of a backbone: its grid and preset, from a file's header at most."""
    name = find_backbone(loading)
    if name in UNLOADED:
        return UNLOADED[name]
    path = resolve(name, BACKBONE_FILE, "backbone")
    found = format_of(path)
    if found not in UNLOADED:
        raise SSDError(f"{path}: its format is {str(found)[:40]!r}, which is no backbone known "
                       "here")
    return UNLOADED[found]


def format_of(path: Path) -> str | None:
    try:
        with safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("format")
    except (SafetensorError, OSError) as error:
        raise SSDError(f"{path}: not a whole safetensors file ({error}): get it again") from error


def command(knobs: Knobs, target: Target, json: Json = False) -> None:
    """Count the passes of a method before anything runs."""
    counted = plan(target.resolved(), knobs.chosen()).to_json()
    report = Reporter(json)
    rows = [{"figure": name.replace("_", " "), "value": value} for name, value in counted.items()]
    report.table({"figure": "figure", knobs.method: "value"}, rows)
    report.result(counted)
