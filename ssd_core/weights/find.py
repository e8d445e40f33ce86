"""Find backbones and draft heads by bundled name, file or folder, or below a folder of models.

Only headers are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import cache
from pathlib import Path
from types import ModuleType

from safetensors import safe_open

from ..backbones import BACKBONES
from ..backbones.families import families
from ..backbones.reading.checkpoint import (
    Checkpoint,
    attempt,
    cached,
    ending,
    group_of,
    home_of,
    models_at,
    models_in,
    snapshot_in,
    subfolders,
)
from ..backbones.reading.tensor_files import (
    AdapterError,
    refuse_adapter_files,
    require_short_header,
)
from ..engine.heads import FORMAT as HEADS_FORMAT
from ..errors import SSDError, refusing
from ..files import ASSETS, answered, user_path

SECONDS = 30.0  # that a file's header may take, on a drive of a network, too
BACKBONE_FILE, HEADS_FILE = "backbone.safetensors", "heads.safetensors"
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
PIPELINE = "model_index.json"  # in the folder of a pipeline of diffusers


# Names and paths


def bundled(name: str) -> Path | None:
    """Return the folder of a backbone that comes with the program; None for any other name."""
    folder = ASSETS / name
    return folder if name in BACKBONES and folder.is_dir() else None


def is_bundled(path: Path) -> bool:
    """Whether a file or folder comes with the program."""
    return path.is_relative_to(ASSETS)


def find_path(name_or_path: str | Path, file: str = "") -> Path:
    """Return the folder of a bundled name, an existing file or folder, or a snapshot in the Hub
    client's cache.

    file: return the file of this name, if the name or path leads to a folder. Raises SSDError if
    there is none.
    """
    name = str(name_or_path)
    path = bundled(name) or in_place(name)
    if file and path.is_dir():
        path = path / file
    if name and (path.is_file() if file else path.exists()):
        return path
    names = ", ".join(BACKBONES)
    if file:
        raise SSDError(f"draft heads {name!r}: neither a bundled name ({names}) nor a file or "
                       f"folder with {file}")
    raise SSDError(f"backbone {name!r}: neither a bundled name ({names}) nor a file or folder")


def in_place(name: str) -> Path:
    """The path of a name: a file or folder, or a repository in the Hub client's cache; of a
    repository's folder, the snapshot in use.
    """
    path = user_path(name)
    if name and not path.exists():
        path = cached(name) or path
    return snapshot_in(path)


def portable(name_or_path: str | Path) -> str:
    """Return the name of a bundled model, which is valid on every machine, else the absolute path.
    """
    path = user_path(name_or_path).absolute()
    is_part = path.name in (BACKBONE_FILE, HEADS_FILE)
    folder = bundled(str(name_or_path)) or (path.parent if is_part else path)
    return folder.name if folder.parent == ASSETS else str(path)


# Backbones


def find_backbone(name_or_path: str | Path, model: str = "") -> tuple[Checkpoint, ModuleType]:
    """Return the only checkpoint at a name, file or folder that a family matches, and the family.

    model: its name in the catalogue, where names of files do not tell. Raises SSDError if there is
    none, or more than one.
    """
    path = find_path(name_or_path)
    root = path if path.is_dir() else path.parent
    opened = [attempt(file, root) for file in models_at(path)]
    checkpoints = [each for each in opened if isinstance(each, Checkpoint)]
    found = [families_of(checkpoint) for checkpoint in checkpoints]
    failures = [each for each in (*opened, *found) if isinstance(each, SSDError)]
    matching = [match for matches in found if isinstance(matches, list) for match in matches]
    if len(matching) == 1:
        refuse_adapters(failures, path)
        matching[0][0].called = model
        return matching[0]
    if matching:
        names = ", ".join(f"{checkpoint.files[0]} ({family.FAMILY})"
                          for checkpoint, family in matching)
        raise SSDError(f"{path}: holds several backbones: name one of {names}")
    for failure in failures:
        raise failure
    if headless := next(filter(lacks_head, checkpoints), None):
        raise SSDError(f"{headless.files[0]}: {HEAD} is missing, and config.json does not tie it "
                       "to the embedding: get the complete model")
    raise SSDError(f"{path}: no backbone known here, {what_is_in(checkpoints)}; families: "
                   f"{', '.join(family.FAMILY for family in families())}")


Matches = list[tuple[Checkpoint, ModuleType]]


def families_of(checkpoint: Checkpoint) -> Matches | SSDError:
    """(the checkpoint, a family) for each family that it matches, behind a prefix if need be; or
    the error that a file beside it raised.
    """
    try:
        views = ([(view, family) for family in families() if family.matches(view)]
                 for view in checkpoint.views())
        return next(filter(None, views), [])
    except SSDError as error:
        return error


def lacks_head(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint would be a backbone if it had an image head of its embedding's shape."""
    for view in checkpoint.views():
        if (shape := view.shapes.get(EMBEDDING)) is not None:
            whole = copy(view)
            whole.shapes = {**view.shapes, HEAD: shape}
            with suppress(SSDError):
                return any(family.matches(whole) for family in families())
    return False


def refuse_adapters(failures: Sequence[SSDError], path: Path) -> None:
    """Raise AdapterError if an adapter lies beside the only backbone at a path, or below it."""
    for failure in failures:
        if isinstance(failure, AdapterError):
            raise failure
    if path.is_dir():
        refuse_adapter_files(*subfolders(path))


def family_of(path: Path) -> tuple[str, str]:
    """Return (family, error) of a file or folder; one of the two is empty."""
    try:
        return answered(path, lambda: family_at(path), SECONDS), ""
    except SSDError as error:
        return "", str(error)


def family_at(path: Path) -> str:
    """The family of a file or folder; SSDError for whatever is wrong with it."""
    with refusing(path):
        return find_backbone(path)[1].FAMILY


def backbones_in(folder: Path, loose: bool = False) -> list[tuple[Path, str]]:
    """Return (a file, family) of each backbone directly in a folder; reads headers only.

    loose: the files are models of their own (`models_in`), and no adapter stands for any of them.
    Those that cannot be read, and a folder that cannot, are left out: `family_of` says why.
    """
    try:
        read = [families_in(path) for path in models_in(folder, loose)]
        found = [match for matches in read if isinstance(matches, list) for match in matches]
        if len(found) == 1 and not loose:
            refuse_adapters([each for each in read if isinstance(each, SSDError)], folder)
    except SSDError:
        return []
    return found


def families_in(path: Path) -> list[tuple[Path, str]] | SSDError:
    """(a file, family) of each family that the model of a file matches, or what is wrong."""
    def read() -> list[tuple[Path, str]] | SSDError:
        with refusing(path):
            matches = families_of(Checkpoint(group_of(path), path.parent))
        return matches if isinstance(matches, SSDError) else [
            (model.files[0], family.FAMILY) for model, family in matches]

    try:
        return answered(path, read, SECONDS)
    except SSDError as error:
        return error


def what_is_in(checkpoints: Sequence[Checkpoint]) -> str:
    """Describe files that no family matches, in a few words."""
    described = []
    for checkpoint in checkpoints:
        kind = checkpoint.metadata.get("format", "pt")  # every exporter writes "pt"
        names = ", ".join(list(checkpoint.shapes)[:2]) or "nothing"
        content = f"is of format {kind!r}" if kind != "pt" else f"holds tensors such as {names}"
        described.append(f"{checkpoint.files[0].name} {content}")
    return ", ".join(described)


def backbones_below(root: Path) -> Iterator[tuple[str, Path, str]]:
    """(name, a file, family) of each backbone in a folder and its subfolders."""
    for folder in folders_below(root):
        if is_superseded(folder):
            continue
        backbones = _backbones_in(folder, folder == root, stamp(folder))
        for path, family in backbones:
            shown = shown_by(path) if folder != root and len(backbones) == 1 else path
            yield shown.relative_to(root).as_posix(), path, family


def shown_by(path: Path) -> Path:
    """The folder that stands for the only backbone in it: the whole pipeline's, if it is in one,
    and the repository's, if that is in the layout of the Hub client's cache.
    """
    folder = path.parent
    folder = folder.parent if (folder.parent / PIPELINE).is_file() else folder
    return home_of(folder) or folder


def is_superseded(folder: Path) -> bool:
    """Whether a folder is a snapshot that its repository does not use."""
    home = home_of(folder)
    with suppress(SSDError):
        return home is not None and snapshot_in(home).name != folder.name
    return False


@cache
def _backbones_in(folder: Path, loose: bool, _stamp: tuple) -> list[tuple[Path, str]]:
    return backbones_in(folder, loose)


def heads_files_below(root: Path) -> Iterator[tuple[str, Path]]:
    """(name, file) of each file in a heads folder that may hold draft heads."""
    for folder in folders_below(root):
        for path in visible(folder):
            if ending(path) == ".safetensors" and path.is_file():
                inside = path.name == HEADS_FILE and folder != root
                yield (folder if inside else path).relative_to(root).as_posix(), path


def folders_below(root: Path) -> Iterator[Path]:
    """`root` and all folders below it, except hidden ones and links back up."""
    for folder, inner, _ in os.walk(root, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith(".")
                          and not leads_up(Path(folder, name)))
        yield Path(folder)


def leads_up(folder: Path) -> bool:
    """Whether a link points to a folder that contains it."""
    return folder.is_symlink() and folder.parent.resolve().is_relative_to(folder.resolve())


def visible(folder: Path) -> list[Path]:
    """Entries of a folder that are not hidden; none if it cannot be read."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []


def stamp(folder: Path) -> tuple:
    """A key that changes whenever a file in the folder changes."""
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.is_file()]
        return tuple(sorted((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files))
    except OSError:  # deleted since it was listed
        return ()


# Headers


def is_heads(path: Path) -> bool:
    return metadata_of(path).get("format") == HEADS_FORMAT


def metadata_of(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file; empty if it is not one."""
    try:
        return _metadata(path, os.stat(path).st_mtime_ns)
    except OSError:  # deleted since it was listed
        return {}


@cache
def _metadata(path: Path, _changed: int) -> dict[str, str]:
    with suppress(SSDError), refusing(path):
        require_short_header(path)
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}
    return {}
