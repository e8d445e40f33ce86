"""Reverse proxies on loopback as people set them up: below a path, with or without the Host."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

OWN = ("connection", "transfer-encoding", "date", "server")  # of each connection


@dataclass(frozen=True)
class Recipe:
    """What a proxy does with a request before it passes it on.

    strips: it takes the path `prefix` away. host: it passes the Host on. says: headers that it
    adds, with {host}, {scheme} and {prefix} filled in.
    """

    prefix: str = ""
    strips: bool = True
    host: bool = False
    says: Mapping[str, str] = field(default_factory=dict)
    scheme: str = "http"

    def headers(self, asked: Mapping[str, str], host: str, target: str) -> dict[str, str]:
        passed = {name.lower(): value for name, value in asked.items()
                  if name.lower() not in ("connection", "proxy-connection")}
        filled = {name: value.format(host=host, scheme=self.scheme, prefix=self.prefix)
                  for name, value in self.says.items()}
        return {**passed, "host": host if self.host else target, **filled}


@contextmanager
def reverse_proxy(target: str, recipe: Recipe):
    """The address of a proxy before the server at `target`, as http://127.0.0.1:PORT.

    Browsers may also use it as a forward proxy, which it then is for whatever name.
    """
    passing = partial(Passing, urlsplit(target).netloc, recipe)
    server = ThreadingHTTPServer(("127.0.0.1", 0), passing)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Passing(BaseHTTPRequestHandler):
    def __init__(self, target: str, recipe: Recipe, *arguments: object) -> None:
        self.target, self.recipe = target, recipe
        super().__init__(*arguments)

    def log_message(self, *_: object) -> None:
        pass

    def passed_on(self) -> None:
        parts, prefix = urlsplit(self.path), self.recipe.prefix
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if not path.startswith(f"{prefix}/"):
            self.send_error(404, f"nothing but {prefix}/ is here")
            return
        headers = self.recipe.headers(self.headers, self.headers["Host"], self.target)
        body = self.rfile.read(int(self.headers.get("content-length", 0))) or None
        upstream = http.client.HTTPConnection(self.target, timeout=60)
        upstream.request(self.command, path[len(prefix) * self.recipe.strips:], body, headers)
        answer = upstream.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in OWN:
                self.send_header(name, value)
        self.end_headers()
        while piece := answer.read1(1 << 16):  # as it comes: events must not wait
            self.wfile.write(piece)
            self.wfile.flush()
        upstream.close()

    do_GET = do_HEAD = do_POST = do_DELETE = do_OPTIONS = passed_on
