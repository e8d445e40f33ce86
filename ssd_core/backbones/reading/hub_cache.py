"""The folders in which the Hub's client keeps what it downloaded: models--ORG--NAME.

`snapshots` has a folder of links into `blobs` for each revision, and `refs/main` names the one in
use. Nothing is downloaded.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...errors import SSDError

START, SNAPSHOTS, BLOBS = "models--", "snapshots", "blobs"
REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def cache_folder() -> Path:
    """Where the client keeps models, as its own variables say."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if place := os.environ.get(name):
            return Path(place).expanduser()
    home = os.environ.get("HF_HOME") or Path(
        os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home, "hub").expanduser()


def cached(repository: str) -> Path | None:
    """The folder of a repository ("org/name") in the client's cache, or None."""
    if not REPOSITORY.fullmatch(repository):
        return None
    folder = cache_folder() / (START + repository.replace("/", "--"))
    return folder if folder.is_dir() else None


def snapshot_in(folder: Path) -> Path:
    """The snapshot in use of a folder models--ORG--NAME; any other folder itself."""
    snapshots = folder / SNAPSHOTS
    if not folder.name.startswith(START) or not snapshots.is_dir():
        return folder
    found = {path.name: path for path in sorted(snapshots.iterdir()) if path.is_dir()}
    ref = folder / "refs" / "main"
    named = ref.read_text("utf-8", "replace").strip() if ref.is_file() else ""
    if len(found) != 1 and named not in found:
        raise SSDError(f"{folder}: holds {len(found)} snapshots, and refs/main names none of them: "
                       f"name one of the folders in {SNAPSHOTS}")
    return found.get(named) or next(iter(found.values()))


def home_of(snapshot: Path) -> Path | None:
    """The folder models--ORG--NAME that a snapshot belongs to; None for any other folder."""
    home = snapshot.absolute().parent.parent
    inside = snapshot.parent.name == SNAPSHOTS and home.name.startswith(START)
    return home if inside else None


def own_name(folder: Path) -> str:
    """The name of a model's folder; of a snapshot, that of its repository."""
    home = home_of(folder)
    return home.name.rpartition("--")[2] if home else folder.absolute().name
