"""The Hub's protocol: list a repository's files, and read the bytes of one file.

Uses huggingface_hub, imported only when needed, so that its proxies, tokens and mirrors apply.
Converts every refusal to an SSDError. Knows nothing about local folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, Protocol, cast

from ..errors import SSDError, first_line
from ..proxies import proxy_for, require_usable
from .catalogue import Source

TIMEOUT = 10.0  # seconds without data until a connection counts as lost
PIECE = 1 << 16  # bytes read at once from the network
DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)  # HTTP status codes worth a retry


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

