"""Versions of learned draft heads: the file in use, and up to two that it replaced.

A picture's recipe names its heads by hash, and so does the file of an earlier version: as long as
it is there, pictures drawn with it can be drawn again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from ..engine.heads import FORMAT
from ..errors import SSDError
from ..files import atomic_write, read_safetensors, sha256_of
from ..state_files import held

KEPT = 3  # versions, with the one in use
SHOWN = 10  # characters of a hash in a file's name


def save_version(file: Path, save: Callable[[], None]) -> None:
    """Let `save` replace a file of heads, which stays under a name of its hash; the oldest goes.

    The file in use is there until the new one takes its place; nothing changes if that fails.
    """
    with held(file):
        made = keep_version(file)
        try:
            save()
        except BaseException:
            if made is not None:
                made.unlink(missing_ok=True)
            raise
        for old in versions(file)[KEPT - 1 :]:
            old.unlink(missing_ok=True)


def keep_version(file: Path) -> Path | None:
    """Give a file of heads a second name, that of its hash; the name, None if nothing was made."""
    if not file.exists():
        return None
    try:
        name = version_of(file, sha256_of(read_safetensors(file, FORMAT)[0]))
    except SSDError:  # damaged: nothing can be drawn with it again
        return None
    if name.exists():
        name.touch()  # the newest of the earlier ones
        return None
    try:
        name.hardlink_to(file)
    except OSError:  # a drive without links
        with atomic_write(name) as temporary:
            shutil.copy2(file, temporary)
    return name


def version_of(file: Path, sha256: str) -> Path:
    """The file of an earlier version of these heads."""
    return file.with_name(f"{file.stem}-{sha256[:SHOWN]}{file.suffix}")


def versions(file: Path) -> list[Path]:
    """The earlier versions of a file of heads, newest first."""
    hashed = "[0-9a-f]" * SHOWN
    return sorted(file.parent.glob(f"{file.stem}-{hashed}{file.suffix}"),
                  key=lambda path: path.stat().st_mtime_ns, reverse=True)
