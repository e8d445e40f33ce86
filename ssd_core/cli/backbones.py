"""`ssd backbones`: list the backbones on this machine and their draft heads."""

from __future__ import annotations

from dataclasses import dataclass

from .options import Json, flag
from .output import Reporter
from .session import shelf


@dataclass(frozen=True)
class Place:
    """Folders."""

    models_dir: str | None = flag(None, "Folder with ssd_backbones/NAME and ssd_heads/NAME "
                                        "(models, below this folder, by default).")


def command(place: Place, json: Json = False) -> None:
    """List the backbones on this machine, by the names that --backbone takes."""
    there, report = shelf(place.models_dir), Reporter(json)
    rows = [{"name": found.name, "family": found.family or "-", "heads": found.heads and "yes",
             "path": str(found.path), "licence": found.licence or "-"}
            for found in there.backbones().values()]
    report.table({"name": "name", "family": "family", "draft heads": "heads", "path": "path",
                  "licence": "licence"}, rows)
    for found in there.unread():
        report.say(f"not read: {found.name} ({found.why_not})")
    report.result({"results": [
        {"name": found.name, "family": found.family, "path": str(found.path),
         "heads": found.heads and str(found.heads), "licence": found.licence,
         "why_not": found.why_not}
        for found in (*there.backbones().values(), *there.unread())]})
