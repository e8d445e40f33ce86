"""Messages about a known backbone whose files are missing or incomplete."""

from __future__ import annotations

from pathlib import Path

from .catalogue import GB, LICENCE, KnownBackbone, Source


def patterns(source: Source) -> list[str]:
    """Required files of a source, as patterns below the backbone's folder; without licences."""
    wanted = (pattern for pattern in (*source.files, *source.extras) if pattern != LICENCE)
    return [f"{source.folder}/{pattern}" if source.folder else pattern for pattern in wanted]


def missing_files(row: KnownBackbone, folder: Path) -> dict[Source, list[str]]:
    """Patterns of each source that match no file in the folder; empty if nothing is missing."""
    absent = {source: [pattern for pattern in patterns(source)
                       if not any(folder.glob(pattern))] for source in row.sources}
    return {source: names for source, names in absent.items() if names}


def how_to_get(row: KnownBackbone, folder: Path, command: str) -> str:
    """One line: the missing files, the command that downloads them, and where to put them."""
    size = f"about {row.about_bytes / GB:.1f} GB, " if row.about_bytes else ""
    absent = missing_files(row, folder)
    files = "; ".join(f"{', '.join(names)} of https://huggingface.co/{source.repo}"
                      for source, names in absent.items())
    state = "lacks files" if folder.is_dir() else "is not here"
    return (f"backbone {row.name} {state} ({size}licence: {row.licence.name}): run {command} "
            f"in a terminal, or put all of these into {folder}: {files}; postcard needs no "
            "download")
