"""Writes the files of a quote to the disk: resumable, checked, all or nothing.

Files get their final names only once all are complete. Setting `stop` ends a transfer. Knows
nothing about the files' content.
"""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import BinaryIO

from ..backbones.reading.checksums import write_sums
from ..errors import SSDError, first_line
from ..proxies import proxy_for
from .hub_client import HubFile, address, body, explain_refusal, network_errors
from .quotes import DownloadPlan, part_of, size_of

RETRIES, PAUSE = 5, 1.0  # failed connections in a row; seconds between them
CHUNK = 1 << 20  # bytes read at once from the disk
PARTIAL = 206  # HTTP status: the requested range


class DownloadCancelled(SSDError):
    """`cancelled` returned true. Downloaded bytes are kept for the next attempt."""


def unwritable(plan: DownloadPlan, error: OSError) -> SSDError:
    return SSDError(f"cannot write to {plan.destination}: {error.strerror or error}; what has "
                    "arrived is kept, make room or choose another models folder")


class Transfer:
    """One running download, and its progress."""

    def __init__(self, plan: DownloadPlan) -> None:
        self.plan, self.stop = plan, threading.Event()
        self.before, self.within = 0, 0
        self.file = plan.files[0].target

    @property
    def done(self) -> int:
        """Bytes on the disk and hashed."""
        return self.before + self.within

    def run(self) -> None:
        """Complete every file, then give all of them their final names."""
        try:
            for file in self.plan.files:
                self.file = file.target
                self.make_whole(file)
                self.before, self.within = self.before + file.bytes, 0
            self.publish()
        except OSError as error:
            raise unwritable(self.plan, error) from error

    def publish(self) -> None:
        self.require_watcher()
        for file in self.plan.files:
            target = self.plan.destination / file.target
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(self.plan.staging / file.staged, target)
        write_sums(self.plan.destination, {file.target: file.digest for file in self.plan.files
                                            if is_sha256(file)})

    def require_watcher(self) -> None:
        if self.stop.is_set():
            raise DownloadCancelled(f"the download of {self.plan.name} was cancelled")

    def make_whole(self, file: HubFile) -> None:
        target = self.plan.destination / file.target
        staged = self.plan.staging / file.staged
        if target.exists():
            self.check_present(file, target)
        elif size_of(staged) != file.bytes:
            with open(part_of(staged), "a+b") as out:
                self.append(file, out)
            os.replace(part_of(staged), staged)

    def check_present(self, file: HubFile, path: Path) -> None:
        """Raise SSDError if an existing file differs from the Hub's: it belongs to the user."""
        self.restart(file)
        if size_of(path) == file.bytes:
            with open(path, "rb") as present:
                self.count_all(present)
        if self.digest.hexdigest() != file.digest:
            raise SSDError(f"{path}: differs from {file.repo}/{file.name} on the Hub (commit "
                           f"{file.commit[:10]}): move it away to download the Hub's file")

    def append(self, file: HubFile, out: BinaryIO) -> None:
        """Fetch the rest of `out` and compare checksums; empties the file if they differ."""
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
            if (refusal := explain_refusal(error, file.repo)) is not None:
                raise refusal from error
            proxy = proxy_for(address())
            return f"{first_line(error)}, through {proxy}" if proxy else first_line(error)
        return "it ended early"

    def write(self, out: BinaryIO, chunk: bytes) -> None:
        """Write a chunk; network errors are OSErrors too, so disk errors are converted here."""
        try:
            out.write(chunk)
        except OSError as error:
            raise unwritable(self.plan, error) from error

    def restart(self, file: HubFile) -> None:
        """Count from byte 0. Small files have git's checksum: SHA-1 of a header and the content."""
        header = b"blob %d\0" % file.bytes
        self.digest = (hashlib.sha256() if is_sha256(file)
                       else hashlib.sha1(header, usedforsecurity=False))
        self.within = 0

    def count_all(self, file: BinaryIO) -> None:
        while chunk := file.read(CHUNK):
            self.count(chunk)

    def count(self, chunk: bytes) -> None:
        self.require_watcher()
        self.digest.update(chunk)
        self.within += len(chunk)


def is_sha256(file: HubFile) -> bool:
    """Whether the Hub gives the SHA-256 of a file, as for large files."""
    return len(file.digest) == 64
