"""`ssd plan`: how many passes a method takes, without loading weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..backbones.base import Backbone
from ..backbones.postcard import Postcard
from ..engine.decode import plan
from ..errors import SSDError
from ..files import ASSETS
from ..model.grid import Grid
from ..weights.load import load_backbone, pick_device
from .options import Json, Knobs, flag
from .output import Reporter
from .session import shelf


@dataclass(frozen=True)
class Target:
    """What to plan for."""

    backbone: str | None = flag(None, "Bundled name, file or folder (postcard by default).")
    models_dir: str | None = flag(None, "Folder with ssd_backbones/NAME.")
    grid: str | None = flag(None, "RxC (rows x columns) instead of a backbone.")
    row_end: bool = flag(False, "The grid's rows end with a forced token.")

    def resolved(self) -> tuple[Grid | type[Backbone] | Backbone, bool]:
        """What to plan for, and whether it has draft heads."""
        if self.grid is None:
            if self.row_end:
                raise SSDError("--row-end belongs to --grid: a backbone knows its own rows")
            found = shelf(self.models_dir).named(self.backbone or Postcard.name)
            return unloaded(found.path), found.heads is not None
        if self.backbone is not None:
            raise SSDError("plan takes --grid or --backbone, not both")
        return Grid.parse(self.grid, self.row_end), False


def unloaded(path: Path) -> type[Backbone] | Backbone:
    """A backbone's grid and preset, from its class or its files, without weights."""
    return Postcard if path.is_relative_to(ASSETS) else load_backbone(path, "meta")


def command(knobs: Knobs, target: Target, json: Json = False) -> None:
    """Count the passes of a method without running it."""
    method = knobs.chosen()
    resolved, heads = target.resolved()
    counted = plan(resolved, method, heads=heads, device=pick_device("auto").type).to_json()
    report = Reporter(json)
    rows = [{"figure": name.replace("_", " "), "value": value} for name, value in counted.items()]
    report.table({"figure": "figure", method.name: "value"}, rows)
    report.result(counted)
