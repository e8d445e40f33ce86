"""Rules of a shared app: who may enter, how much a visitor may upload, what errors may tell.

All are ASGI middleware around the whole server, or plain text; none knows Gradio.
"""

from __future__ import annotations

import base64
import re
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ssd_core import SSDError
from ssd_core.files import require_file, user_path

from .rate_limit import RateLimit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
UPLOADS = ("/api/history/add", "/api/restore", "/gradio_api/")  # where pictures may be sent to
OPEN = "/gradio_api/startup-events"  # Gradio asks for it itself, and it tells nothing
PEER = "ssd.peer"  # in a request's scope: who has connected, a visitor or a proxy
BY_PEER = 10  # times as much as a visitor may all those together who come by one peer
COOKIE = "ssd-studio-entered"
QUOTA, PERIOD = 200 << 20, 3600.0  # bytes that a visitor may upload in so many seconds
MOST_VISITORS = 4096
# A path with at least two folders, as an error line may quote it; its last part is kept.
ABSOLUTE = re.compile(r"(?<![\w.:/])(?:[A-Za-z]:[\\/]|/)(?:[^\s:;,'\"<>|/\\]+[\\/])+")


def read_users(file: Path) -> dict[str, str]:
    """Names and passwords of a file with lines NAME:PASSWORD; SSDError if it has none."""
    file = user_path(file)
    require_file(file)
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()  # editors may begin with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise SSDError(f"{file}: cannot be read: write a line NAME:PASSWORD for each visitor"
                       ) from error
    pairs = [line.strip().partition(":") for line in lines if line.strip()]
    if not pairs or not all(name and password for name, _, password in pairs):
        raise SSDError(f"{file}: write a line NAME:PASSWORD for each visitor")
    return {name: password for name, _, password in pairs}


class Password:
    """Answer nobody without a name and a password (HTTP Basic), whatever they ask for.

    Who guesses is slowed down, by network address; all those behind one proxy together are, too. A
    browser that has entered shows it by a cookie and is counted by itself: through a share link all
    visitors come from one address.
    """

    def __init__(self, app: App, users: Mapping[str, str],
                 rate_limit: RateLimit | None = None) -> None:
        self.app, self.users, self.rate_limit = app, users, rate_limit or RateLimit()
        self.peers = RateLimit(self.rate_limit.free * BY_PEER, self.rate_limit.pause / BY_PEER)
        self._entered: OrderedDict[str, None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or path_in_app(scope) == OPEN:
            await self.app(scope, receive, send)
            return
        known, tried = self.cookie(scope), header(scope, "authorization") != ""
        visitor, peer = known or address(scope), known or scope.get(PEER, "")
        if tried and (seconds := max(self.rate_limit.wait(visitor), self.peers.wait(peer))):
            await refuse(send, 429, f"too many wrong passwords: wait {seconds} s",
                         ("retry-after", str(seconds)))
        elif not self.knows(scope):
            if tried:
                self.rate_limit.wrong(visitor)
                self.peers.wrong(peer)
            await refuse(send, 401, "a name and a password are needed",
                         ("www-authenticate", 'Basic realm="SSD studio"'))
        else:
            await self.app(scope, receive, send if known else self.with_cookie(scope, send))

    def cookie(self, scope: Scope) -> str | None:
        """What this browser was given when it entered."""
        pairs = (pair.strip().partition("=") for pair in header(scope, "cookie").split(";"))
        return next((value for name, _, value in pairs
                     if name == COOKIE and value in self._entered), None)

    def with_cookie(self, scope: Scope, send: Send) -> Send:
        """`send`, which also gives the browser a cookie."""
        token = secrets.token_hex(16)

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self._entered[token] = None
                if len(self._entered) > MOST_VISITORS:
                    self._entered.popitem(last=False)
                path = quote(scope.get("root_path", ""))
                cookie = f"{COOKIE}={token}; HttpOnly; SameSite=Lax; Path={path}/"
                if scope.get("scheme") == "https":
                    cookie += "; Secure"
                message = {**message, "headers": [*message["headers"],
                                                  (b"set-cookie", cookie.encode())]}
            await send(message)
        return sending

    def knows(self, scope: Scope) -> bool:
        kind, _, code = header(scope, "authorization").partition(" ")
        try:
            name, _, password = base64.b64decode(code, validate=True).decode().partition(":")
        except ValueError:  # of base64 or UTF-8, or letters that no header may have
            return False
        known = self.users.get(name, "")
        same = secrets.compare_digest(password.encode(), known.encode())
        return kind.lower() == "basic" and same and known != ""


class UploadQuota:
    """Refuse pictures of a visitor (by network address) beyond QUOTA bytes in PERIOD seconds, and
    of all behind one proxy beyond BY_PEER times as many.
    """

    def __init__(self, app: App, quota: int = QUOTA) -> None:
        self.app, self.quota = app, quota
        self._taken: dict[str, deque[tuple[float, int]]] = {}
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (scope["type"] == "http" and scope["method"] == "POST"
                and path_in_app(scope).startswith(UPLOADS) and (why := self.refused(scope))):
            await refuse(send, 413, why)
            return
        await self.app(scope, receive, send)

    def refused(self, scope: Scope) -> str | None:
        """Why an upload is refused; else its bytes count from now on."""
        length = header(scope, "content-length")
        if not length.isdecimal():
            return "an upload must say how long it is"
        limits = {address(scope): self.quota, f"by {scope.get(PEER, '')}": BY_PEER * self.quota}
        with self._lock:
            now = time.monotonic()
            if any(self.taken(key, now) + int(length) > most for key, most in limits.items()):
                return f"at most {self.quota >> 20} MiB can be uploaded in an hour: wait a while"
            for key in limits:
                self._taken[key].append((now, int(length)))
            while len(self._taken) > MOST_VISITORS:
                self._taken.pop(next(iter(self._taken)))
        return None

    def taken(self, key: str, now: float) -> int:
        """The bytes that still count."""
        taken = self._taken.setdefault(key, deque())
        while taken and now - taken[0][0] > PERIOD:
            taken.popleft()
        return sum(size for _, size in taken)


def path_in_app(scope: Scope) -> str:
    """The path of a request, without the one below which a proxy has the app."""
    return scope["path"].removeprefix(scope.get("root_path", ""))


def address(scope: Scope) -> str:
    """The network address that a request comes from."""
    return (scope.get("client") or ("",))[0]


def header(scope: Scope, name: str) -> str:
    """A header of a request; empty if it is missing."""
    return next((value.decode("latin-1") for key, value in scope["headers"]
                 if key.decode("latin-1").lower() == name), "")


async def refuse(send: Send, status: int, why: str, *headers: tuple[str, str]) -> None:
    """Answer a request with one line of text."""
    fields = [("content-type", "text/plain; charset=utf-8"), *headers]
    await send({"type": "http.response.start", "status": status,
                "headers": [(name.encode(), value.encode()) for name, value in fields]})
    await send({"type": "http.response.body", "body": why.encode()})


def without_folders(text: str) -> str:
    """A text for strangers: of every absolute path in it, only the last part."""
    return ABSOLUTE.sub("", text)
