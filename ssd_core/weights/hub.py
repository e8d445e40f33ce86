"""Downloads from the Hugging Face Hub: only on request, resumable, checked, all or nothing.

Files are collected in a hidden folder beside their destination, under names that end in their
checksum. They get their final names only once all are complete. Knows nothing about the files'
content, nor about the Hub's protocol (hub_client.py).

We do not use huggingface_hub's `snapshot_download`: with a local_dir it keeps a file with a wrong
checksum, replaces the user's own files, and cannot be cancelled while a connection hangs (seen in
versions 0.23 and 2.4; in 2.4 cancelling takes ten seconds).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from ..errors import SSDError
from .catalogue import BACKBONES_FOLDER, Licence, known
from .hub_client import HubFile, body, check_online, explained, files_of, first_line, network_errors

RETRIES, PAUSE = 5, 1.0  # failed connections in a row; seconds between them
POLL = 0.2  # seconds between calls of `cancelled`
CHUNK = 1 << 20  # bytes read at once from the disk
PARTIAL = 206  # HTTP status: the requested range
RESERVE = 64 << 20  # bytes to leave free on the disk

Progress = Callable[[int, int, str], None]
T = TypeVar("T")


class DownloadCancelled(SSDError):
    """`cancelled` returned true. Downloaded bytes are kept for the next attempt."""


@dataclass(frozen=True)
class Quote:
    """What a download would fetch: `bytes` in total, of which `missing` are not on the disk."""

    name: str
    files: tuple[HubFile, ...]
    bytes: int
    missing: int
    destination: Path
    licence: Licence

    @property
    def staging(self) -> Path:
        return staging_of(self.destination)


def staging_of(destination: Path) -> Path:
    return destination.with_name(f".{destination.name}.part")


# Asking


def quote(name: str, models_dir: str | Path = "models", revision: str | None = None) -> Quote:
    """Ask the Hub for the files and sizes of a known backbone, without downloading them.

    `revision` is a branch, tag or commit of its first repository. Raises SSDError.
    """
    row = known(name)
    check_online(source.repo for source in row.sources)
    files: dict[str, HubFile] = {}  # by target; the first source with a target wins
    for index, source in enumerate(row.sources):
        for file in files_of(source, revision if index == 0 else None):
            files.setdefault(file.target, file)
    destination = Path(models_dir).expanduser() / BACKBONES_FOLDER / row.name
    missing = sum(missing_bytes(file, destination) for file in files.values())
    return Quote(row.name, tuple(files.values()), sum(file.bytes for file in files.values()),
                 missing, destination, row.licence)


def missing_bytes(file: HubFile, destination: Path) -> int:
    """How many bytes of a file are not on the disk, judged by sizes alone."""
    staged = staging_of(destination) / file.staged
    if file.bytes in (size_of(destination / file.target), size_of(staged)):
        return 0
    return max(0, file.bytes - (size_of(part_of(staged)) or 0))


def size_of(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def part_of(staged: Path) -> Path:
    return staged.with_name(f"{staged.name}.part")


# Fetching


def download(name: str, models_dir: str | Path = "models", progress: Progress | None = None,
             cancelled: Callable[[], bool] | None = None, revision: str | None = None) -> Path:
    """Download a backbone into models_dir/ssd_backbones/NAME and return that folder.

    progress(done_bytes, total_bytes, file) and cancelled() are called in the caller's thread, five
    times a second. Raises SSDError (DownloadCancelled if `cancelled` returned true). Downloaded
    bytes are kept, and the next call resumes.
    """
    stop = threading.Event()
    asked = watched(lambda: quote(name, models_dir, revision), stop,
                    lambda: require_wanted(name, cancelled))
    return fetch(asked, progress, cancelled)


def fetch(asked: Quote, progress: Progress | None = None,
          cancelled: Callable[[], bool] | None = None) -> Path:
    """Download the files of a quote, which the user may have agreed to."""
    check_online(file.repo for file in asked.files)
    transfer = Transfer(asked)

    def tell() -> None:
        if progress is not None:
            progress(transfer.done, asked.bytes, transfer.file)

    def poll() -> None:
        tell()
        require_wanted(asked.name, cancelled)

    check_space(asked)
    with locked(asked):
        watched(transfer.run, transfer.stop, poll)
    tell()
    shutil.rmtree(asked.staging, ignore_errors=True)
    return asked.destination


def require_wanted(name: str, cancelled: Callable[[], bool] | None) -> None:
    if cancelled is not None and cancelled():
        raise DownloadCancelled(f"the download of {name} was cancelled; what has arrived is kept, "
                                "start it again to go on")


def watched(work: Callable[[], T], stop: threading.Event, poll: Callable[[], None]) -> T:
    """Run `work` in a thread and poll in this one; an exception from `poll` sets `stop`.

    A hanging connection cannot block the caller: its thread is abandoned, and ends without writing
    once the connection responds.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        while not result.done():
            poll()
            wait([result], POLL)
    finally:
        stop.set()
        wait([result], 5 * POLL)
    return result.result()


def locked(asked: Quote) -> AbstractContextManager:
    """Lock the staging folder, so that only one run downloads into it."""
    from filelock import FileLock, Timeout

    try:
        asked.staging.mkdir(parents=True, exist_ok=True)
        return FileLock(asked.staging / "lock").acquire(timeout=0)
    except Timeout as error:
        raise SSDError(f"{asked.name} is being downloaded to {asked.destination} already: wait "
                       "for that, or cancel it") from error
    except OSError as error:
        raise unwritable(asked, error) from error


def check_space(asked: Quote) -> None:
    missing = sum(missing_bytes(file, asked.destination) for file in asked.files)
    folder = next(path for path in asked.destination.absolute().parents if path.is_dir())
    free = shutil.disk_usage(folder).free
    if missing and missing + RESERVE > free:
        raise SSDError(f"{asked.name} needs {missing / 1e9:.1f} GB more on the disk of "
                       f"{asked.destination.parent}, {free / 1e9:.1f} GB are free: make room or "
                       "choose another models folder")


def unwritable(asked: Quote, error: OSError) -> SSDError:
    return SSDError(f"cannot write to {asked.destination}: {error.strerror or error}; what has "
                    "arrived is kept, make room or choose another models folder")


class Transfer:
    """One running download, and its progress."""

    def __init__(self, asked: Quote) -> None:
        self.asked, self.stop = asked, threading.Event()
        self.before, self.within = 0, 0
        self.file = asked.files[0].target

    @property
    def done(self) -> int:
        """Bytes on the disk and hashed."""
        return self.before + self.within

    def run(self) -> None:
        """Complete every file, then give all of them their final names."""
        try:
            for file in self.asked.files:
                self.file = file.target
                self.make_whole(file)
                self.before, self.within = self.before + file.bytes, 0
            self.publish()
        except OSError as error:
            raise unwritable(self.asked, error) from error

    def publish(self) -> None:
        self.require_watcher()
        for file in self.asked.files:
            target = self.asked.destination / file.target
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(self.asked.staging / file.staged, target)

    def require_watcher(self) -> None:
        if self.stop.is_set():
            raise DownloadCancelled(f"the download of {self.asked.name} was cancelled")

    def make_whole(self, file: HubFile) -> None:
        there = self.asked.destination / file.target
        staged = self.asked.staging / file.staged
        if there.exists():
            self.check_present(file, there)
        elif size_of(staged) != file.bytes:
            with open(part_of(staged), "a+b") as out:
                self.append(file, out)
            os.replace(part_of(staged), staged)

    def check_present(self, file: HubFile, path: Path) -> None:
        """Raise SSDError if a file of that name differs from the Hub's: it is the user's own."""
        self.restart(file)
        if size_of(path) == file.bytes:
            with open(path, "rb") as present:
                self.count_all(present)
        if self.digest.hexdigest() != file.digest:
            raise SSDError(f"{path}: differs from {file.repo}/{file.name} on the Hub (commit "
                           f"{file.commit[:10]}): move it away to download the Hub's file")

    def append(self, file: HubFile, out: BinaryIO) -> None:
        """Fetch what `out` lacks, then compare checksums; a file with a wrong one is emptied."""
        self.restart(file)
        out.seek(0)
        self.count_all(out)
        tries = 0
        while self.within < file.bytes:
            self.require_watcher()
            had = self.within
            broken = self.fetch_rest(file, out)
            tries = 0 if self.within > had else tries + 1
            if tries == RETRIES:
                raise SSDError(f"{file.repo}/{file.name}: the connection broke {RETRIES} times in "
                               f"a row ({broken}); what has arrived is kept, start the download "
                               "again to go on")
            if self.within < file.bytes:
                self.stop.wait(PAUSE)
        if self.digest.hexdigest() != file.digest:
            out.truncate(0)
            raise SSDError(f"{file.repo}/{file.name}: its checksum differs from the Hub's, so "
                           "it was deleted: start the download again")

    def fetch_rest(self, file: HubFile, out: BinaryIO) -> str:
        """Request the rest of a file once; return what ended the request."""
        try:
            with body(file, self.within) as (status, chunks):
                if status != PARTIAL:  # the server ignored the range and starts over
                    self.restart(file)
                    out.truncate(0)
                for chunk in chunks:
                    self.count(chunk)
                    self.write(out, chunk)
                    if self.within > file.bytes:
                        break
        except network_errors() as error:
            if (refusal := explained(error, file.repo)) is not None:
                raise refusal from error
            return first_line(error)
        return "it ended early"

    def write(self, out: BinaryIO, chunk: bytes) -> None:
        """Write a chunk; disk errors need an own message, as network errors share their class."""
        try:
            out.write(chunk)
        except OSError as error:
            raise unwritable(self.asked, error) from error

    def restart(self, file: HubFile) -> None:
        """Count from byte 0. Small files have git's checksum: SHA-1 of a header and the content."""
        large = len(file.digest) == 64
        self.digest = hashlib.sha256() if large else hashlib.sha1(b"blob %d\0" % file.bytes)
        self.within = 0

    def count_all(self, file: BinaryIO) -> None:
        while chunk := file.read(CHUNK):
            self.count(chunk)

    def count(self, chunk: bytes) -> None:
        self.require_watcher()
        self.digest.update(chunk)
        self.within += len(chunk)
