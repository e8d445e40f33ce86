"""`ssd send`: a picture as one HTML file, a postcard that opens anywhere without a network."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from ..errors import SSDError
from ..files import require_file, write_text
from ..output.letter import letter
from .options import Json
from .output import Reporter
from .paths import check_writable, free

PAGES = (".html", ".htm")
Picture = Annotated[Path, typer.Argument(
    metavar="PICTURE", show_default=False,
    help="A picture of any kind; its words stand on the back if it was saved with its settings.")]
Out = Annotated[Path | None, typer.Option(
    show_default=False, help="FILE.html. Default: a new file named after the picture.")]


def command(picture: Picture, out: Out = None, json: Json = False) -> None:
    """Make a postcard of a picture: one HTML file that opens anywhere without a network."""
    report = Reporter(json)
    require_file(picture)
    if out:
        if out.suffix.lower() not in PAGES:
            raise SSDError(f"--out {out}: a postcard is a web page; end the name with .html")
        check_writable([out])
    out = out or free(lambda ending: [picture.with_name(f"{picture.stem}{ending}.html")])[0]
    drawn = datetime.fromtimestamp(picture.stat().st_mtime)
    write_text(out, letter(picture.read_bytes(), str(picture), drawn))
    size = out.stat().st_size
    report.print(f"{out}: {size / 1e6:.1f} MB")
    report.result({"file": str(out), "bytes": size})
