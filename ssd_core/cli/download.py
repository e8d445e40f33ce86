"""`ssd download`: download a known backbone from the Hub, after showing size and licence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..errors import SSDError
from ..weights import hub
from ..weights.catalogue import CATALOGUE
from ..weights.fetch import fetched, require_terminal, terms
from .options import MODELS, Json, flag
from .output import Reporter, note

Name = Annotated[str | None, typer.Argument(metavar="NAME", show_default=False,
                                            help="Name of the backbone; see --list.")]


@dataclass(frozen=True)
class DownloadOptions:
    """Download."""

    models_dir: str | None = flag(None, "Models folder; files go to ssd_backbones/NAME in it "
                                        f"(default: {MODELS}).")
    revision: str | None = flag(None, "Branch, tag or commit of the backbone's own repository.")
    yes: bool = flag(False, "Download without asking.")
    list: bool = flag(False, "List the known backbones; download nothing.")

    def folder(self) -> Path:
        if self.models_dir is None:
            note(f"no --models-dir given: using {Path(MODELS).absolute()}")
        return Path(self.models_dir or MODELS)


def command(order: DownloadOptions, name: Name = None, json: Json = False) -> None:
    """Download a known backbone, resumable and checked; shows the terms and asks first."""
    report = Reporter(json)
    if order.list:
        return show_catalogue(report)
    if name is None:
        raise SSDError("name the backbone to download; download --list shows the names")
    quote = hub.quote(name, order.folder(), order.revision)
    report.print(terms(quote))
    agreed = not quote.missing or order.yes or asked()
    path = fetched(quote) if agreed else None
    report.print(f"whole and checked: {path}" if agreed else "nothing was downloaded")
    report.result({"name": quote.name, "path": path and str(path), "bytes": quote.bytes,
                   "files": [file.target for file in quote.files],
                   "licence": quote.licence.name})


def show_catalogue(report: Reporter) -> None:
    rows = [{"name": row.name, "gb": row.about_bytes and row.about_bytes / 1e9,
             "size": "{}x{}".format(*row.size), "licence": row.licence.name, "note": row.note,
             "repositories": [source.repo for source in row.sources],
             "restricts": row.licence.restricts} for row in CATALOGUE.values()]
    report.table({"name": "name", "about GB": "gb", "pixels": "size", "licence": "licence"}, rows)
    report.result({"results": rows})


def asked() -> bool:
    require_terminal()
    return typer.confirm("Download it?", err=True)
