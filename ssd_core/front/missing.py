"""What to say of a known backbone whose files are not here, or not all of them."""

from __future__ import annotations

from pathlib import Path

from ..weights.catalogue import GB, LICENCE, KnownBackbone, Source


def patterns(source: Source) -> list[str]:
    """The files of a source below the backbone's folder, as patterns; licences are not needed."""
    wanted = (pattern for pattern in (*source.files, *source.extras) if pattern != LICENCE)
    return [f"{source.folder}/{pattern}" if source.folder else pattern for pattern in wanted]


def missing_files(row: KnownBackbone, folder: Path) -> dict[Source, list[str]]:
    """Patterns of each source that no file in the folder matches; empty where all are there."""
    absent = {source: [pattern for pattern in patterns(source)
                       if not any(folder.glob(pattern))] for source in row.sources}
    return {source: names for source, names in absent.items() if names}


def how_to_get(row: KnownBackbone, folder: Path, command: str) -> str:
    """One line: what the folder lacks, the command that fetches it, what to do by hand."""
    size = f"about {row.about_bytes / GB:.1f} GB, " if row.about_bytes else ""
    absent = missing_files(row, folder)
    files = "; ".join(f"{', '.join(names)} of https://huggingface.co/{source.repo}"
                      for source, names in absent.items())
    state = "lacks files" if folder.is_dir() else "is not here"
    return (f"backbone {row.name} {state} ({size}licence: {row.licence.name}): run {command} "
            f"in a terminal, or put all of these into {folder}: {files}; postcard needs no "
            "download")
