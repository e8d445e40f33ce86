"""`ssd plan`: how many passes a method takes, without any weights."""

from __future__ import annotations

from dataclasses import dataclass

from ..backbones.base import Backbone
from ..backbones.postcard import Postcard
from ..engine.decode import plan
from ..errors import SSDError
from ..model.grid import Grid
from ..weights.load import load_backbone, pick_device
from .options import Json, Knobs, Loading, flag
from .output import Reporter
from .session import find_backbone, find_heads


@dataclass(frozen=True)
class Target:
    """Plan for what."""

    backbone: str | None = flag(None, "Bundled name, file or folder (postcard by default).")
    models_dir: str | None = flag(None, "Folder with ssd_backbones/NAME.")
    grid: str | None = flag(None, "RxC, rows x columns, instead of a backbone.")
    row_end: bool = flag(False, "The grid's rows are closed by a forced token.")

    @property
    def loading(self) -> Loading:
        return Loading(self.backbone or "postcard", models_dir=self.models_dir)

    def resolved(self) -> Grid | type[Backbone] | Backbone:
        if self.grid is None:
            if self.row_end:
                raise SSDError("--row-end belongs to --grid: a backbone knows its own rows")
            return unloaded(self.loading)
        if self.backbone is not None:
            raise SSDError("plan takes --grid or --backbone, not both")
        return Grid.parse(self.grid, self.row_end)


def unloaded(loading: Loading) -> type[Backbone] | Backbone:
    """A backbone's grid and preset, from its class or its files, without any values."""
    name = find_backbone(loading)
    return Postcard if name == Postcard.name else load_backbone(name, "meta")


def command(knobs: Knobs, target: Target, json: Json = False) -> None:
    """Count the passes of a method before anything runs."""
    method = knobs.chosen()
    heads = target.grid is None and find_heads(target.loading) is not None
    counted = plan(target.resolved(), method, heads=heads,
                   device=pick_device("auto").type).to_json()
    report = Reporter(json)
    rows = [{"figure": name.replace("_", " "), "value": value} for name, value in counted.items()]
    report.table({"figure": "figure", method.name: "value"}, rows)
    report.result(counted)
