"""Read and write files: never leave one half-written, always say what is wrong with one."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from .errors import SSDError, first_line

ASSETS = Path(__file__).parent / "assets"
PARTIAL = (".incomplete", ".aria2", ".part", ".crdownload")  # beside an unfinished download
LFS_POINTER = b"version https://git-lfs"
MOST_TEXT = 128 << 20  # bytes of a text or JSON file
DEEPEST = 64  # objects and lists within each other
TOO_DEEP = f"more than {DEEPEST} levels of objects and lists"
CHECKSUM = "checksum"  # in the metadata of our safetensors files
LONGEST_PART, LONGEST_PATH = 255, 4095  # bytes, on nearly every system


def user_path(typed: str | Path) -> Path:
    """A path that was typed, with ~ expanded; SSDError if no file can be there."""
    try:
        path = Path(typed).expanduser()
    except RuntimeError as error:
        raise SSDError(f"{typed}: there is no such user; write out the path") from error
    longest = max((len(os.fsencode(part)) for part in path.parts), default=0)
    if longest > LONGEST_PART or len(os.fsencode(path)) > LONGEST_PATH or "\0" in str(path):
        raise SSDError(f"{typed}: no file can have this name; choose a shorter one")
    return path


def require_file(path: str | Path) -> None:
    """Raise SSDError unless there is a file; reading a pipe or a device might never end."""
    path = Path(path)
    if not path.exists():
        raise SSDError(f"{path}: no such file")
    if not path.is_file():
        raise SSDError(f"{path}: a folder, a pipe or a device; name a file")


def require_regular(path: Path) -> None:
    """Raise SSDError for a pipe, a device or a folder; a file that is missing passes."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # whoever reads it says why
    if not stat.S_ISREG(mode):
        raise SSDError(f"{path}: not a regular file: remove it, or choose a PNG")


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` only if the block succeeds."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise SSDError(f"cannot write {path}: {error.strerror}; choose another place") from error
    try:
        yield Path(name)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        raise SSDError(f"cannot write {path}: {error.strerror}; choose another place") from error
    finally:
        Path(name).unlink(missing_ok=True)


def small_text(path: Path, errors: str = "strict") -> str:
    """A text in UTF-8 that is read whole. Raises OSError, or ValueError for what is none."""
    if (size := path.stat().st_size) > MOST_TEXT:
        raise ValueError(f"{size >> 20} MiB long, at most {MOST_TEXT >> 20} are read")
    return path.read_text(encoding="utf-8", errors=errors)


def json_of(text: str | bytes) -> Any:
    """JSON from elsewhere. ValueError if it is none, or nested deeper than anything real."""
    try:
        values = [found := json.loads(text)]
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    for _ in range(DEEPEST):
        values = [inner for value in values if isinstance(value, (dict, list))
                  for inner in (value.values() if isinstance(value, dict) else value)]
        if not values:
            return found
    raise ValueError(TOO_DEEP)


def slug(text: str, most: int) -> str:
    """Up to so many letters and digits of any script, in words joined by "-", for a file's name."""
    letters = "".join(letter if letter.isalnum() else " "
                      for letter in unicodedata.normalize("NFC", text.lower()))
    return "-".join(letters.split())[:most].strip("-")


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8, atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def sha256_of(tensors: dict[str, torch.Tensor]) -> str:
    """Hash of names, dtypes, shapes and bits; it stays the same when a file is rewritten."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def checksum_of(tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> str:
    """Hash of all that one of our safetensors files holds."""
    return hashlib.sha256(f"{sha256_of(tensors)} {sorted(metadata.items())}".encode()).hexdigest()


def safetensors_bytes(tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> bytes:
    """A file that `read_safetensors` reads: its checksum is added to the metadata."""
    return save(tensors, {**metadata, CHECKSUM: checksum_of(tensors, metadata)})


def write_safetensors(tensors: dict[str, torch.Tensor], path: Path,
                      metadata: dict[str, str]) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(safetensors_bytes(tensors, metadata))


def is_here(path: Path) -> bool:
    """Whether a file exists. Raises SSDError if only its beginning, or git-lfs's pointer, does."""
    if path.is_file() or any(path.with_name(path.name + end).exists() for end in PARTIAL):
        refuse_partial(path)
        return True
    return False


def refuse_partial(path: Path) -> None:
    """Raise SSDError if the file is missing, still being downloaded, or a git-lfs pointer."""
    for ending in PARTIAL:
        if path.with_name(path.name + ending).exists():
            raise SSDError(f"{path}: its download was cut off or still runs ({path.name}{ending} "
                           "lies beside it): finish the download")
    try:
        with path.open("rb") as file:
            start = file.read(len(LFS_POINTER))
    except OSError as error:
        raise SSDError(f"{path}: cannot be read ({error.strerror}): get it again") from error
    if start == LFS_POINTER:
        raise SSDError(f"{path}: only git-lfs's pointer to the file: run 'git lfs pull'")


def refuse_newer(path: str | Path, found: str, own: str) -> None:
    """Raise SSDError for a newer version of this program's own format, such as "ssd-heads/1".

    Every reader of a file with a version calls it.
    """
    (kind, _, version), (own_kind, _, known) = found.partition("/"), own.partition("/")
    if kind == own_kind and version.isdecimal() and int(version[:9]) > int(known):
        raise SSDError(f"{path}: its format is {found[:40]}, this program reads up to {own}: "
                       "update this program")


def read_safetensors(path: Path,
                     format_name: str) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Read all tensors and the metadata of a file whose metadata names `format_name`.

    Raises SSDError if the file is missing, truncated, not safetensors, of another format, or does
    not have its checksum.
    """
    path = Path(path)
    if not path.is_file():
        raise SSDError(f"{path}: no such file")
    refuse_partial(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            refuse_newer(path, found := metadata.get("format", "none"), format_name)
            if found != format_name:
                raise SSDError(f"{path}: its format is {found!r}, expected {format_name!r}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise SSDError(f"{path}: not a whole safetensors file ({first_line(error)}): get it again"
                       ) from error
    if metadata.pop(CHECKSUM, None) != checksum_of(tensors, metadata):
        raise SSDError(f"{path}: damaged, it does not have the checksum that was saved with it: "
                       "get or make it again")
    return tensors, metadata
