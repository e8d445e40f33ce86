"""A Hugging Face Hub on loopback: repositories of small files, and faults to order."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34


@dataclass
class FakeHub:
    """Files of 1000 bytes and more are large ones: they have a SHA-256 and come from the CDN."""

    repos: dict[str, dict[str, bytes]] = field(default_factory=dict)
    served: dict[str, bytes] = field(default_factory=dict)  # other bytes than promised, by file
    cut: dict[str, list[int]] = field(default_factory=dict)  # bytes a connection brings, by file
    refuse: dict[str, tuple[int, str]] = field(default_factory=dict)  # by start of the path
    said: dict[str, object] = field(default_factory=dict)  # of every file, instead of the truth
    ranges: bool = True
    hold: threading.Event = field(default_factory=threading.Event)  # a negative cut waits for it
    requests: list[tuple[str, str | None, str | None]] = field(default_factory=list)

    def __enter__(self) -> FakeHub:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()

    def fetched(self) -> list[tuple[str, str | None]]:
        """(file, Range) of all requests for bytes."""
        return [(path.split("/", 5)[-1], ranged) for path, ranged, _ in self.requests
                if "/resolve/" in path]

    def listing(self, repo: str) -> dict:
        siblings = [{"rfilename": name, "size": len(content), "blobId": git_sha1(content),
                     "lfs": lfs_of(content), **self.said} for name, content in
                    self.repos[repo].items()]
        return {"id": repo, "modelId": repo, "sha": COMMIT, "private": False, "tags": [],
                "downloads": 0, "likes": 0, "siblings": siblings}


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def lfs_of(content: bytes) -> dict | None:
    if len(content) < 1000:
        return None
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 1}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, hub: FakeHub, *arguments: object) -> None:
        self.hub = hub
        super().__init__(*arguments)

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append((path, self.headers["Range"], self.headers["Authorization"]))
        refused = next((r for start, r in self.hub.refuse.items() if path.startswith(start)), None)
        if refused:
            return self.answer(refused[0], b"", {"X-Error-Code": refused[1]})
        if path.startswith("/api/models/"):
            return self.answer_listing("/".join(path.split("/")[3:5]), path)
        _root, owner, repo, _, _, name = path.removeprefix("/cdn").split("/", 5)
        content = self.hub.repos[f"{owner}/{repo}"][name]
        if len(content) >= 1000 and not path.startswith("/cdn"):
            elsewhere = self.hub.url.replace("127.0.0.1", "localhost")
            return self.answer(302, b"", {"Location": f"{elsewhere}/cdn{self.path}"})
        self.answer_file(name, self.hub.served.get(name, content))

    def answer_listing(self, repo: str, path: str) -> None:
        if repo not in self.hub.repos:
            return self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})
        if path.endswith("/revision/nowhere"):
            return self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        self.answer(200, json.dumps(self.hub.listing(repo)).encode())

    def answer_file(self, name: str, content: bytes) -> None:
        start = 0
        if self.hub.ranges and self.headers["Range"]:
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
        rest = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        cuts = self.hub.cut.get(name)
        count = cuts.pop(0) if cuts else len(rest)
        self.wfile.write(rest[:abs(count)])
        self.wfile.flush()
        if count < 0:
            self.hub.hold.wait(30)
        if abs(count) < len(rest):
            self.close_connection = True

    def answer(self, status: int, content: bytes, headers: dict | None = None) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
