"""The proxies that the environment names: whether they can be used, and how lines name them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import urlsplit

from .errors import SSDError

SOCKS = ("socks5", "socks5h")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")


class Proxy(NamedTuple):
    """A proxy, and the variable that names it."""

    variable: str
    address: str

    def __str__(self) -> str:
        scheme, mark, place = self.address.rpartition("://")
        return f"{self.variable}={scheme}{mark}{place.rpartition('@')[2]}"  # without a password

    @property
    def scheme(self) -> str:
        """Lower case; empty if this is no address."""
        address = self.address if "://" in self.address else f"http://{self.address}"
        try:
            parts = urlsplit(address)
            return parts.scheme if parts.hostname and parts.port != 0 else ""
        except ValueError:  # brackets that do not close, or a port that is no number
            return ""


def proxies() -> dict[str, Proxy]:
    """Those in use, by what they are for: http, https or all."""
    named = {use: Proxy(*setting(f"{use}_proxy")) for use in ("http", "https", "all")}
    return {} if "*" in exceptions() else {use: proxy for use, proxy in named.items()
                                           if proxy.address}


def setting(name: str) -> tuple[str, str]:
    """A variable as it is spelt in the environment, and its value; small letters count first."""
    spelt = name if name in os.environ else name.upper()
    return spelt, os.environ.get(spelt, "").strip()


def exceptions() -> list[str]:
    """The hosts of NO_PROXY, which are asked without a proxy; "*" are all of them."""
    return [host.strip().lower() for host in setting("no_proxy")[1].split(",")]


def proxy_for(url: str) -> Proxy | None:
    """The proxy through which an address is asked for; None if it is asked directly."""
    try:
        parts = urlsplit(url)
    except ValueError:  # the request tells what is wrong with it
        return None
    domains = [host.lstrip("*.") for host in exceptions()]
    if any(domain and f".{parts.hostname}".endswith(f".{domain}") for domain in domains):
        return None
    named = proxies()
    return named.get(parts.scheme) or named.get("all")


def require_usable(package: str = "socksio") -> None:
    """SSDError if the environment names what no request can use.

    package: what the library of the requests needs for a SOCKS proxy, socksio or pysocks.
    """
    module = {"pysocks": "socks"}.get(package, package)
    for proxy in proxies().values():
        if proxy.scheme in SOCKS and find_spec(module) is None:
            raise SSDError(f"{proxy}: a SOCKS proxy needs one more package: pip install "
                           f"{package}, or unset {proxy.variable}")
        if proxy.scheme not in ("http", "https", *SOCKS):
            raise SSDError(f"{proxy}: not the address of a proxy: write http://HOST:PORT, or "
                           f"unset {proxy.variable}")
    if (file := os.environ.get("SSL_CERT_FILE")) and not os.path.isfile(file):
        raise SSDError(f"SSL_CERT_FILE {file}: no such file: correct or unset it")


@contextmanager
def without_proxies(for_hosts: str = "*") -> Iterator[None]:
    """Within the block this process asks these hosts (separated by commas) without a proxy.

    With "*" it also leaves aside certificates that the environment names.
    """
    changed = {"no_proxy": for_hosts, **(dict.fromkeys(CERTIFICATES) if for_hosts == "*" else {})}
    before = {name: os.environ.get(name) for name in changed}
    set_variables(changed)
    try:
        yield
    finally:
        set_variables(before)


def set_variables(values: Mapping[str, str | None]) -> None:
    """Set variables of the environment; None unsets."""
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
