"""Checksums of files of weights that lie in a folder, as the command sha256sum writes them.

A download leaves them there. A file is read again only where something is wrong already: that takes
a while for many gigabytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...files import write_text

SUMS = "SHA256SUMS"
CHUNK = 1 << 22  # bytes read at once


def write_sums(folder: Path, sums: Mapping[str, str]) -> None:
    """Keep the SHA-256 of files, by their paths below the folder."""
    lines = (f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    write_text(folder / SUMS, "".join(lines))


def known_sum(file: Path) -> str | None:
    """The SHA-256 that a file should have, if its folder or the folder above knows it."""
    for folder in (file.parent, file.parent.parent):
        name = file.relative_to(folder).as_posix()
        for line in lines_of(folder / SUMS):
            digest, _, listed = line.partition("  ")
            if listed == name:
                return digest
    return None


def lines_of(path: Path) -> list[str]:
    """The lines of a text file; none if it is not there or is no text."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def damaged(files: Iterable[Path]) -> list[Path]:
    """Those files whose content is not the one that their folder knows; reads them whole."""
    return [file for file in files if known_sum(file) not in (None, sum_of(file))]


def sum_of(path: Path) -> str | None:
    """The SHA-256 of a file; None if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()
