"""Read and write files: never leave one half-written, always say what is wrong with one."""

from __future__ import annotations

import hashlib
import os
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from .errors import SSDError

ASSETS = Path(__file__).parent / "assets"
PARTIAL = (".incomplete", ".aria2", ".part", ".crdownload")  # beside an unfinished download
LFS_POINTER = b"version https://git-lfs"
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


def write_safetensors(tensors: dict[str, torch.Tensor], path: Path,
                      metadata: dict[str, str]) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(save(tensors, metadata))


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


def read_safetensors(path: Path,
                     format_name: str) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Read all tensors and the metadata of a file whose metadata names `format_name`.

    Raises SSDError if the file is missing, truncated, not safetensors or of another format.
    """
    path = Path(path)
    if not path.is_file():
        raise SSDError(f"{path}: no such file")
    refuse_partial(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if (found := metadata.get("format", "none")) != format_name:
                raise SSDError(f"{path}: its format is {found!r}, expected {format_name!r}")
            return {name: file.get_tensor(name) for name in file.keys()}, metadata
    except (SafetensorError, OSError) as error:
        raise SSDError(f"{path}: not a whole safetensors file ({error}): get it again") from error
