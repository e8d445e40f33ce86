"""Versions of learned draft heads: the file in use, and up to two that it replaced.

A picture's recipe names its heads by hash, and so does the file of an earlier version: as long as
it is there, pictures drawn with it can be drawn again.
"""

from __future__ import annotations

from pathlib import Path

from ..engine.heads import FORMAT
from ..errors import SSDError
from ..files import read_safetensors, sha256_of

KEPT = 3  # versions, with the one in use
SHOWN = 10  # characters of a hash in a file's name


def keep_version(file: Path) -> None:
    """Rename a file of heads to one of its hash, before a new one takes its name; the oldest goes.
    """
    if not file.exists():
        return
    try:
        sha256 = sha256_of(read_safetensors(file, FORMAT)[0])
    except SSDError:  # damaged: nothing can be drawn with it again
        return
    file.replace(version_of(file, sha256))
    for old in versions(file)[KEPT - 1 :]:
        old.unlink(missing_ok=True)


def version_of(file: Path, sha256: str) -> Path:
    """The file of an earlier version of these heads."""
    return file.with_name(f"{file.stem}-{sha256[:SHOWN]}{file.suffix}")


def versions(file: Path) -> list[Path]:
    """The earlier versions of a file of heads, newest first."""
    hashed = "[0-9a-f]" * SHOWN
    return sorted(file.parent.glob(f"{file.stem}-{hashed}{file.suffix}"),
                  key=lambda path: path.stat().st_mtime_ns, reverse=True)
