"""Downloads from the Hugging Face Hub: only on request, locked, with progress, cancellable.

`quote` lists the files, and how much of them is on the disk already; `Transfer` writes them,
resumable, checked, all or nothing: files get their final names only once all are complete, and
setting `stop` ends it. Unfinished downloads are in a hidden folder beside their destination, under
names that end in the file's checksum. huggingface_hub is imported only when needed, so that its
proxies, tokens and mirrors apply; every refusal becomes an SSDError.

We do not use huggingface_hub's `snapshot_download`: with a local_dir it keeps a file with a wrong
checksum, replaces the user's own files, and cannot be cancelled while a connection hangs (seen in
versions 0.33, 0.36 and 2.4; in 2.4 cancelling takes ten seconds). Before version 1, which the
transformers of older ComfyUIs cannot have, it tells no bytes and ends with a broken connection.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol, TypeVar, cast

from ..errors import SSDError, first_line
from ..files import flush, user_path, write_sums
from ..proxies import proxy_for, require_usable
from .catalogue import BACKBONES_FOLDER, Licence, Source, known

TIMEOUT = 10.0  # seconds without data until a connection counts as lost
PIECE = 1 << 16  # bytes read at once from the network
DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)  # HTTP status codes worth a retry
RETRIES, PAUSE = 5, 1.0  # failed connections in a row; seconds between them
CHUNK = 1 << 20  # bytes read at once from the disk
PARTIAL = 206  # HTTP status: the requested range
__all__ = ["DownloadCancelled", "DownloadPlan", "download", "fetch", "quote"]

POLL = 0.2  # seconds between calls of `cancelled`
RESERVE = 64 << 20  # bytes to leave free on the disk

Progress = Callable[[int, int, str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class HubFile:
    """One file of one commit; `digest` is its SHA-256, or git's SHA-1 for small files."""

    repo: str
    commit: str
    name: str
    target: str  # below the destination, with forward slashes
    bytes: int
    digest: str

    @property
    def staged(self) -> str:
        """Its name until all files are complete; unique to its content."""
        return f"{self.target.replace('/', '--')}.{self.digest[:16]}"


def check_online(repos: Iterable[str]) -> None:
    """Raise SSDError if the environment forbids the network or names an unusable address."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.HF_HUB_OFFLINE:
        named = " and ".join(dict.fromkeys(repos))
        raise SSDError(f"HF_HUB_OFFLINE is set, so nothing is downloaded: unset it, or copy the "
                       f"files of {named} by hand")
    if (url := endpoint()) and not url.startswith(("http://", "https://")):
        raise SSDError(f"HF_ENDPOINT {url!r}: write a whole address, like https://huggingface.co")
    require_usable("pysocks" if network_errors()[1].__module__.startswith("requests")
                   else "socksio")
    try:
        get_session()  # which reads the variables of proxies and certificates
    except OSError as error:
        raise SSDError(f"SSL_CERT_FILE or SSL_CERT_DIR: cannot be read ({first_line(error)}): "
                       "correct or unset it") from error
    except Exception as error:
        raise SSDError(f"NO_PROXY: cannot be read ({first_line(error)}): write names and "
                       "addresses with commas between, without brackets") from error


def endpoint() -> str | None:
    """The mirror named by HF_ENDPOINT, or None for the Hub itself."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def address() -> str:
    """The address of the Hub, or of its mirror."""
    return endpoint() or "https://huggingface.co"


def files_of(source: Source, revision: str | None) -> list[HubFile]:
    """The files of a repository that match a source's patterns, all of one commit."""
    from huggingface_hub import HfApi

    with hub_errors(source.repo, revision):
        info = HfApi(endpoint=endpoint()).model_info(
            source.repo, revision=revision, files_metadata=True, timeout=TIMEOUT)
        return wanted_files(source, info, revision)


def wanted_files(source: Source, info: Any, revision: str | None) -> list[HubFile]:
    """The same of what the Hub said about the repository; TypeError if it makes no sense."""
    available = {sibling.rfilename: sibling for sibling in info.siblings or ()}
    absent = next((p for p in source.files if not any(fits(name, p) for name in available)), None)
    if absent:
        raise SSDError(f"{source.repo} holds no file {absent}: its layout is not the one known "
                       "here, look for a newer version of this software")
    wanted = [name for name in available
              if any(fits(name, pattern) for pattern in (*source.files, *source.extras))]
    commit = info.sha or revision or "main"
    return [hub_file(source, commit, available[name]) for name in sorted(wanted)]


def fits(name: str, pattern: str) -> bool:
    """Whether a path matches a pattern folder by folder; paths with ".." never match."""
    return (fnmatchcase(name, pattern) and name.count("/") == pattern.count("/")
            and not {"..", ".", ""} & set(name.split("/")) and "\\" not in name)


def hub_file(source: Source, commit: str, sibling: Any) -> HubFile:
    lfs = sibling.lfs
    size, digest = (lfs.size, lfs.sha256) if lfs else (sibling.size, sibling.blob_id)
    if not str(size).isdecimal() or not DIGEST.fullmatch(str(digest)):
        raise SSDError(f"{source.repo}/{sibling.rfilename}: the Hub names no size and checksum, "
                       "so it cannot be fetched safely; try another HF_ENDPOINT")
    target = PurePosixPath(source.folder, sibling.rfilename).as_posix()
    return HubFile(source.repo, commit, sibling.rfilename, target, int(size), digest)


class Session(Protocol):
    """The HTTP client of huggingface_hub: httpx, or requests before version 1.

    In requests `stream` is a flag, in httpx it is a method.
    """

    stream: bool | Callable[..., AbstractContextManager[Any]]
    get: Callable[..., AbstractContextManager[Any]]


@contextmanager
def body(file: HubFile, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
    """(HTTP status, chunks of bytes) of a file from byte `start` on."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    url = hf_hub_url(file.repo, file.name, revision=file.commit, endpoint=endpoint())
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    session, options = cast(Session, get_session()), {"headers": headers, "timeout": TIMEOUT}
    stream = session.stream
    with (stream("GET", url, **options) if callable(stream)
          else session.get(url, stream=True, **options)) as response:
        hf_raise_for_status(response)
        yield response.status_code, (response.iter_bytes() if callable(stream)
                                     else response.iter_content(PIECE))


def network_errors() -> tuple[type[Exception], ...]:
    """Return all errors of a request: OSError (requests) and the base class of httpx's errors."""
    from huggingface_hub.utils import HfHubHTTPError

    return OSError, HfHubHTTPError.__bases__[0]


@contextmanager
def hub_errors(repo: str, revision: str | None) -> Iterator[None]:
    """Convert network and Hub errors to SSDError."""
    url = address()
    try:
        yield
    except network_errors() as error:
        raise explain_refusal(error, repo, revision) or unreachable(url, error) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SSDError(f"{url} does not answer as the Hub does ({first_line(error)}): check "
                       "HF_ENDPOINT and the proxy") from error


def unreachable(url: str, error: Exception) -> SSDError:
    """The line about an address that does not answer, or whose proxy does not."""
    if proxy := proxy_for(url):
        return SSDError(f"{url} cannot be reached through {proxy} ({first_line(error)}): check "
                        f"that this proxy runs and lets you in, or unset {proxy.variable}")
    return SSDError(f"{url} cannot be reached ({first_line(error)}): check the network, or set "
                    "HF_ENDPOINT to a mirror")


def explain_refusal(error: Exception, repo: str, revision: str | None = None) -> SSDError | None:
    """Return an SSDError that says what to do about a refusal; None for temporary errors."""
    from huggingface_hub import utils

    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, utils.GatedRepoError):
        return SSDError(f"{repo} is gated: accept its licence at https://huggingface.co/{repo}, "
                        "then set HF_TOKEN to a token of that account")
    if isinstance(error, utils.RepositoryNotFoundError):
        return SSDError(f"{repo}: no such repository, or no access to it; if it is private or "
                        "gated, set HF_TOKEN to a token of an account that may read it")
    if isinstance(error, utils.RevisionNotFoundError):
        return SSDError(f"{repo} has no revision {revision!r}: name a branch, tag or commit of it")
    if status in (401, 403):
        return SSDError(f"{repo}: the Hub refuses it ({status}): accept its licence at "
                        f"https://huggingface.co/{repo} and set HF_TOKEN to a valid token")
    if status == 407:  # of a proxy
        return unreachable(address(), error)
    if status is None or status in TEMPORARY:
        return None
    return SSDError(f"{repo}: the Hub answers {status} ({first_line(error)}): try again later")


@dataclass(frozen=True)
class DownloadPlan:
    """The files of a download: `bytes` in total, of which `missing` are not on the disk."""

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


def quote(name: str, models_dir: str | Path = "models",
          revision: str | None = None) -> DownloadPlan:
    """Ask the Hub for the files and sizes of a known backbone, without downloading them.

    `revision` is a branch, tag or commit of its first repository. Raises SSDError.
    """
    row = known(name)
    check_online(source.repo for source in row.sources)
    files: dict[str, HubFile] = {}  # by target; the first source with a target wins
    for index, source in enumerate(row.sources):
        for file in files_of(source, revision if index == 0 else None):
            files.setdefault(file.target, file)
    destination = user_path(models_dir) / BACKBONES_FOLDER / row.name
    missing = sum(missing_bytes(file, destination) for file in files.values())
    return DownloadPlan(row.name, tuple(files.values()), sum(file.bytes for file in files.values()),
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
            flush(part_of(staged))  # a file of this name is whole
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


def download(name: str, models_dir: str | Path = "models", progress: Progress | None = None,
             cancelled: Callable[[], bool] | None = None, revision: str | None = None) -> Path:
    """Download a backbone into models_dir/ssd_backbones/NAME and return that folder.

    progress(done_bytes, total_bytes, file) and cancelled() are called in the caller's thread, five
    times a second. Raises SSDError (DownloadCancelled if `cancelled` returned true). Downloaded
    bytes are kept, and the next call resumes.
    """
    stop = threading.Event()
    plan = run_cancellable(lambda: quote(name, models_dir, revision), stop,
                           lambda: require_wanted(name, cancelled))
    return fetch(plan, progress, cancelled)


def fetch(plan: DownloadPlan, progress: Progress | None = None,
          cancelled: Callable[[], bool] | None = None) -> Path:
    """Download the files of a quote; hosts show it to the user before."""
    check_online(file.repo for file in plan.files)
    transfer = Transfer(plan)

    def tell() -> None:
        if progress is not None:
            progress(transfer.done, plan.bytes, transfer.file)

    def poll() -> None:
        tell()
        require_wanted(plan.name, cancelled)

    check_space(plan)
    with locked(plan):
        run_cancellable(transfer.run, transfer.stop, poll)
    tell()
    shutil.rmtree(plan.staging, ignore_errors=True)
    return plan.destination


def require_wanted(name: str, cancelled: Callable[[], bool] | None) -> None:
    if cancelled is not None and cancelled():
        raise DownloadCancelled(f"the download of {name} was cancelled; what has arrived is kept, "
                                "start it again to go on")


def run_cancellable(work: Callable[[], T], stop: threading.Event, poll: Callable[[], None]) -> T:
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


def locked(plan: DownloadPlan) -> AbstractContextManager:
    """Lock the staging folder, so that only one run downloads into it."""
    from filelock import FileLock, Timeout

    try:
        plan.staging.mkdir(parents=True, exist_ok=True)
        return FileLock(plan.staging / "lock").acquire(timeout=0)
    except Timeout as error:
        raise SSDError(f"{plan.name} is being downloaded to {plan.destination} already: wait "
                       "for that, or cancel it") from error
    except OSError as error:
        raise unwritable(plan, error) from error


def check_space(plan: DownloadPlan) -> None:
    missing = sum(missing_bytes(file, plan.destination) for file in plan.files)
    folder = next(path for path in plan.destination.absolute().parents if path.is_dir())
    free = shutil.disk_usage(folder).free
    if missing and missing + RESERVE > free:
        raise SSDError(f"{plan.name} needs {missing / 1e9:.1f} GB more on the disk of "
                       f"{plan.destination.parent}, {free / 1e9:.1f} GB are free: make room or "
                       "choose another models folder")
