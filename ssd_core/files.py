"""Read and write files: never leave one half-written, always say what is wrong with one.

What others write is read only while it answers (`answered`): a file on a drive that hangs, or one
that takes for ever to read, would else hold up its reader, everyone behind it, and the end of the
program.

A download leaves checksums in a folder of weights, as the command sha256sum writes them. A file is
read again only where something is wrong already: that takes a while for many gigabytes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

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
SECONDS = 5.0  # that a file may take to answer
T = TypeVar("T")
_waiting: dict[Path, threading.Thread] = {}  # readers that have had no answer yet
_lock = threading.Lock()
SUMS = "SHA256SUMS"
CHUNK = 1 << 22  # bytes read at once
# Strings, which stay as they are, or what JSON has not; each match takes what it began with to its
# end, so that no text takes long.
STRING = r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))'
COMMENT = re.compile(STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
LAST_COMMA = re.compile(STRING + r"|,(?=\s*[\]}])", re.DOTALL)


def user_path(typed: str | Path) -> Path:
    """A path that was typed, with ~ expanded; SSDError if no file can be there."""
    try:
        path = Path(typed).expanduser()
    except RuntimeError as error:
        raise SSDError(f"{typed}: there is no such user; write out the path") from error
    try:
        longest = max((len(os.fsencode(part)) for part in path.parts), default=0)
        possible = longest <= LONGEST_PART and len(os.fsencode(path)) <= LONGEST_PATH
    except UnicodeEncodeError:  # half a character
        possible = False
    if not possible or "\0" in str(path):
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
    """Yield a temporary path beside `path`; rename it to `path` only if the block succeeds.

    What is there stays until all of the new file is on the disk. A link is written through. The
    mode is that of the file it replaces, else as the umask says.
    """
    named = Path(path)
    path = Path(os.path.realpath(named)) if named.is_symlink() else named
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.open("xb").close()
    except OSError as error:
        raise not_written(named, error) from error
    try:
        yield temporary
        flush(temporary)
        if path.is_file():
            shutil.copymode(path, temporary)
        elif path.exists():
            raise OSError(errno.EINVAL, "it is a folder or a device")
        os.replace(temporary, path)
    except OSError as error:
        raise not_written(named, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def not_written(path: Path, error: OSError) -> SSDError:
    return SSDError(f"cannot write {path}: {error.strerror}; choose another place")


def flush(path: Path) -> None:
    """Wait until a file's content is on the disk, so that a renamed file is never cut."""
    with path.open("rb+") as file:
        try:
            os.fsync(file.fileno())
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # drives that cannot be asked
                raise


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
    if path.is_file() or any(os.path.exists(f"{path}{end}") for end in PARTIAL):
        refuse_partial(path)
        return True
    return False


def refuse_partial(path: Path) -> None:
    """Raise SSDError if the file is missing, still being downloaded, or a git-lfs pointer."""
    for ending in PARTIAL:
        if os.path.exists(f"{path}{ending}"):
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
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise SSDError(f"{path}: not a whole safetensors file ({first_line(error)}): get it again"
                       ) from error
    if metadata.pop(CHECKSUM, None) != checksum_of(tensors, metadata):
        raise SSDError(f"{path}: damaged, it does not have the checksum that was saved with it: "
                       "get or make it again")
    return tensors, metadata


def answered(path: Path, read: Callable[[], T], seconds: float | None = None) -> T:
    """What `read()` returns or raises; SSDError if it takes longer than `seconds`, or SECONDS.

    It runs on a thread of its own, which nobody waits for when the program ends. While one reader
    of a file waits, others are refused at once.
    """
    seconds = SECONDS if seconds is None else seconds
    with _lock:
        waiting = _waiting.get(path)
        if waiting is not None and waiting.is_alive():
            raise no_answer(path, seconds)
        _waiting.pop(path, None)
    outcome: list[tuple[bool, Any]] = []
    thread = threading.Thread(target=copy_context().run, args=(_note, read, outcome), daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        with _lock:
            _waiting[path] = thread
        raise no_answer(path, seconds)
    returned, value = outcome[0]
    if not returned:
        raise value
    return value


def _note(read: Callable[[], T], outcome: list[tuple[bool, Any]]) -> None:
    try:
        outcome.append((True, read()))
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        outcome.append((False, error))


def no_answer(path: Path, seconds: float) -> SSDError:
    return SSDError(f"{path}: did not answer within {seconds:g} s: is its drive still there?")


def is_unicode(text: str) -> bool:
    """Whether `text` can be encoded as UTF-8; half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_unicode(name: str, text: str) -> None:
    """Raise SSDError for a text that cannot be encoded, and name the first bad character."""
    if not is_unicode(text):
        place = next(i for i, char in enumerate(text) if "\ud800" <= char <= "\udfff")
        raise SSDError(f"{name}: character {place + 1} is half of one (U+{ord(text[place]):04X}): "
                       "delete it, or type the whole character")


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


def json_text(path: Path) -> str:
    """The text of a JSON file in any of Unicode's encodings. Raises OSError, or ValueError for
    other bytes and for a file that is too long.
    """
    if (size := path.stat().st_size) > MOST_TEXT:
        raise ValueError(f"{size >> 20} MiB long, at most {MOST_TEXT >> 20} are read")
    raw = path.read_bytes()
    return raw.decode(json.detect_encoding(raw))


def without_extras(text: str) -> str:
    """The text without comments and trailing commas."""
    for pattern in (COMMENT, LAST_COMMA):
        text = pattern.sub(lambda match: match[1] or "", text)
    return text


def parse(path: Path) -> object:
    """What a JSON file holds. Raises OSError, or ValueError if it is not JSON even so."""
    text = json_text(path)
    try:
        return json_of(text)
    except ValueError:
        return json_of(without_extras(text))
