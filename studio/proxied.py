"""The app behind a reverse proxy: the path below which it lies, and the names it is asked by.

Requests are refused by policy.py; here is only what a proxy has changed in them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ssd_core import SSDError

from .sharing import PEER, address

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PORTS = {"http": 80, "https": 443}
PATH = re.compile(r"(/(?!\.{1,2}(/|$))[^\s/?#\\\";,]+)*")
NAME = re.compile(r"[a-z0-9]([\w.-]*[a-z0-9])?(:\d{1,5})?", re.IGNORECASE)


def as_root(path: str) -> str:
    """A path below which the app lies, as "/ssd" or ""; SSDError if it is none."""
    try:
        root = "/" + unquote(urlsplit(path).path).strip("/") if path.strip("/") else ""
    except ValueError:  # an address with brackets that do not close
        root = "?"
    if not PATH.fullmatch(root):
        raise SSDError(f"--root-path {path!r}: write a path, such as /ssd")
    return root


def as_name(name: str) -> str:
    """A name of the app in lower case, with its port if there is one; SSDError if it is none."""
    if not NAME.fullmatch(name):
        raise SSDError(f"--allow-host {name!r}: write a name alone, such as studio.example.org, or "
                       "with its port, such as studio.example.org:8443")
    return name.lower()


def as_proxy(text: str) -> str:
    """The address of a proxy, or of a network of them; SSDError if it is none."""
    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        raise SSDError(f"--proxy {text!r}: write the address of the proxy, such as 127.0.0.1, or "
                       "of its network, such as 10.0.0.0/8") from None


def is_among(address: str, proxies: Sequence[str]) -> bool:
    try:
        return any(ip_address(address) in ip_network(each) for each in proxies)
    except ValueError:
        return False


class Below:
    """Gives requests the path of the app below `root`, or below what X-Forwarded-Prefix says.

    A proxy may have taken that path away or not; the page's own links are relative. From a proxy on
    this machine the scheme counts, too. From one of `proxies` the visitor's address counts: anybody
    can send X-Forwarded-For, and a tunnel passes it on.
    """

    def __init__(self, app: ASGIApp, root: str = "", proxies: Sequence[str] = ()) -> None:
        self.app, self.root, self.proxies = app, root, proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        root, path = self.root or prefix(headers), scope["path"]
        if root and path == root:
            await RedirectResponse(f"{root}/")(scope, receive, send)
            return
        path = path.removeprefix(root) if path.startswith(f"{root}/") else path
        peer = address(scope)
        scope = {**scope, "root_path": root, "path": root + path, PEER: peer,
                 "client": (self.visitor(headers, peer), 0)}
        known = peer in LOOPBACK or is_among(peer, self.proxies)
        if known and (schemes := forwarded(headers, "proto")):
            scope["scheme"] = "https" if schemes[0] == "https" else "http"
        await self.app(scope, receive, send)


    def visitor(self, headers: Headers, peer: str) -> str:
        """The last address that no proxy of ours has, from the peer back through
        X-Forwarded-For."""
        hops = [each.strip() for each in ",".join(headers.getlist("x-forwarded-for")).split(",")]
        while hops and is_among(peer, self.proxies):
            peer = hops.pop() or peer
        return peer


def prefix(headers: Headers) -> str:
    """What X-Forwarded-Prefix says; empty if it is no path."""
    path = headers.get("x-forwarded-prefix", "").split(",")[0].strip()
    try:
        return as_root(path) if path.startswith("/") else ""
    except SSDError:
        return ""


def forwarded(headers: Headers, what: str) -> list[str]:
    """The hosts ("host") or schemes ("proto") of X-Forwarded-Host or -Proto, and of Forwarded."""
    listed = ",".join(headers.getlist(f"x-forwarded-{what}")).split(",")
    listed += re.findall(rf'\b{what}="?([^";,]*)', ",".join(headers.getlist("forwarded")),
                         re.IGNORECASE)
    return [each.strip().lower() for each in listed if each.strip()]


def name_of(host: str) -> str:
    """The name in a Host header: lower case, without the port; empty if there is none."""
    return (place_of(host, "http") or ("", 0))[0]


def place_of(host: str, scheme: str) -> tuple[str, int] | None:
    """Name and port of a Host header or an origin, whose port may be that of the scheme."""
    try:
        parts = urlsplit(f"//{host}")
        if not parts.hostname or "@" in host:
            return None
        return parts.hostname, parts.port or PORTS.get(scheme, 0)
    except ValueError:  # brackets, or a port that is no number
        return None
