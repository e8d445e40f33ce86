"""`ssd backbones`: list the backbones on this machine and their draft heads."""

from __future__ import annotations

from dataclasses import dataclass

from .options import Json, flag
from .output import Reporter
from .session import registry


@dataclass(frozen=True)
class FolderOptions:
    """Folders."""

    models_dir: str | None = flag(None, "Folder with ssd_backbones/NAME and ssd_heads/NAME "
                                        "(models, below this folder, by default).")


def command(place: FolderOptions, json: Json = False) -> None:
    """List the backbones on this machine, by the names that --backbone takes."""
    models, report = registry(place.models_dir), Reporter(json)
    rows = [{"name": backbone.name, "family": backbone.family or "-",
             "heads": backbone.heads and "yes", "path": str(backbone.path),
             "licence": backbone.licence or "-"}
            for backbone in models.backbones().values()]
    report.table({"name": "name", "family": "family", "draft heads": "heads", "path": "path",
                  "licence": "licence"}, rows)
    for backbone in models.unread():
        report.print(f"not read: {backbone.name} ({backbone.why_not})")
    report.result({"results": [
        {"name": backbone.name, "family": backbone.family, "path": str(backbone.path),
         "heads": backbone.heads and str(backbone.heads), "licence": backbone.licence,
         "why_not": backbone.why_not}
        for backbone in (*models.backbones().values(), *models.unread())]})
