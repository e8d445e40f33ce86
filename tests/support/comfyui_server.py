"""A real ComfyUI with this pack, started in a folder of its own, and a client that talks to it."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACK = "ssd-decoding"
NO_FIRST_VISIT = '{"Comfy.TutorialCompleted": true}'  # else a dialog covers the page, sometime
START_SECONDS, RUN_SECONDS = 300, 180
TEXT = 3  # the kind of a binary message, as ComfyUI counts them


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def server_python() -> str:
    """The Python that runs ComfyUI."""
    return os.environ.get("COMFYUI_PYTHON", sys.executable)


def newest_page(folder: Path) -> str:
    """The newest page of PyPI, installed into a folder of its own; RuntimeError without it."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder,
               "comfyui-frontend-package"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    page = folder / "comfyui_frontend_package" / "static"
    if done.returncode or not (page / "index.html").is_file():
        raise RuntimeError((done.stderr.strip().splitlines() or ["it holds no page"])[-1])
    return str(page)


@contextmanager
def comfyui(home: Path, base: Path, *flags: str):
    """Start ComfyUI from `home` with its files under `base`; yields a Client, ends it after."""
    for name in ("custom_nodes", "user", "input", "output", "temp", "models"):
        (base / name).mkdir(parents=True, exist_ok=True)
    for example in (home / "input").glob("example.*"):  # a template names ComfyUI's own picture
        shutil.copy(example, base / "input")
    pack = base / "custom_nodes" / PACK
    if not pack.exists():
        pack.symlink_to(ROOT, target_is_directory=True)
    settings = base / "user" / "default" / "comfy.settings.json"
    settings.parent.mkdir(exist_ok=True)
    if not settings.exists():
        settings.write_text(NO_FIRST_VISIT, encoding="utf-8")
    port = free_port()
    command = [server_python(), "main.py", "--cpu", "--port", str(port),
               "--base-directory", str(base), "--user-directory", str(base / "user"), *flags,
               *shlex.split(os.environ.get("COMFYUI_FLAGS", ""))]
    # Small models gain nothing from threads, which wait for each other on a busy machine.
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    log = base / "server.log"
    with log.open("w") as out, subprocess.Popen(command, cwd=home, stdout=out, stderr=out,
                                                env=environment) as process:
        try:
            client = Client(port, log)
            client.wait_until_up(process)
            yield client
        finally:
            process.terminate()
            process.wait(30)


class Client:
    """Talks HTTP; `run` also listens on the websocket."""

    def __init__(self, port: int, log: Path) -> None:
        self.address, self.log, self.id = f"127.0.0.1:{port}", log, str(uuid.uuid4())
        self.url, self.start_seconds = f"http://{self.address}", 0.0

    def wait_until_up(self, process: subprocess.Popen) -> None:
        begin = time.monotonic()
        while process.poll() is None and self.start_seconds < START_SECONDS:
            self.start_seconds = time.monotonic() - begin
            with suppress(OSError):
                self.get("/system_stats")
                return
            time.sleep(0.3)
        raise RuntimeError(f"ComfyUI did not start:\n{self.log.read_text()[-4000:]}")

    @cached_property
    def version(self) -> str:
        return self.get("/system_stats")["system"]["comfyui_version"]

    def get(self, path: str):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.loads(answer.read() or "null")

    def read(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read()

    def post(self, path: str, body: dict):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or "null")

    @cached_property
    def nodes(self) -> dict[str, dict]:
        """The nodes' descriptions by class."""
        return self.get("/object_info")

    def node(self, kind: str, **inputs) -> dict:
        """A node in API form: these inputs, and the defaults of its other widgets."""
        known = self.nodes[kind]["input"]
        widgets = {**known.get("required", {}), **known.get("optional", {})}
        defaults = {name: options["default"] for name, (_, *rest) in widgets.items()
                    for options in rest if "default" in options}
        return {"class_type": kind, "inputs": {**defaults, **inputs}}

    def refused(self, prompt: dict) -> str:
        """The answer to a prompt that does not validate, as text."""
        try:
            self.post("/prompt", {"prompt": prompt, "client_id": self.id})
        except urllib.error.HTTPError as error:
            return error.read().decode()
        raise AssertionError("the prompt was accepted")

    def run(self, prompt: dict, at: dict | None = None) -> Run:
        """Queue a prompt in API form and wait for its end; at[kind](message) is called on the way.

        kind: a websocket type, or "ssd.preview/KIND".
        """
        return Run(self, prompt, at or {})

    def free(self) -> None:
        """Give all memory back, and see to it that the next prompt finds nothing loaded.

        The server's worker looks at the request after a prompt; one that comes sooner overtakes it.
        """
        self.post("/free", {"unload_models": True, "free_memory": True})
        self.run({"1": {"class_type": "PreviewAny", "inputs": {"source": str(uuid.uuid4())}}})

    def history(self, prompt_id: str) -> dict:
        """What a prompt left behind; it is written a moment after the end was told."""
        for _ in range(100):
            if prompt_id in (found := self.get(f"/history/{prompt_id}")):
                return found[prompt_id]
            time.sleep(0.05)
        raise RuntimeError(f"prompt {prompt_id} left no history")

    def image(self, entry: dict) -> bytes:
        return self.read(f"/view?filename={entry['filename']}&subfolder={entry['subfolder']}"
                         f"&type={entry['type']}")


class Run:
    """Everything that one prompt told, in order."""

    def __init__(self, client: Client, prompt: dict, at: dict) -> None:
        import websocket

        self.messages: list[dict] = []
        self.said: dict[str, str] = {}  # by a node, in a line below its widgets
        listening = websocket.create_connection(f"ws://{client.address}/ws?clientId={client.id}",
                                                timeout=RUN_SECONDS)
        with closing(listening):
            self.id = client.post("/prompt", {"prompt": prompt, "client_id": client.id}
                                  )["prompt_id"]
            self._listen(listening, at)
        self.history = client.history(self.id)

    def _listen(self, listening, at: dict) -> None:
        while True:
            message = listening.recv()
            if isinstance(message, bytes):
                self._hear(message)
                continue
            message = json.loads(message)
            self.messages.append(message)
            kind, data = message["type"], message["data"]
            kind = f"{kind}/{data['kind']}" if kind == "ssd.preview" else kind
            if kind in at:
                at[kind](data)
            if data.get("prompt_id") == self.id and (
                    kind in ("execution_success", "execution_error", "execution_interrupted")):
                self.end = kind
                return

    def _hear(self, message: bytes) -> None:
        """Take in a text for a node; other binary messages are pictures."""
        kind, size = int.from_bytes(message[:4], "big"), int.from_bytes(message[4:8], "big")
        if kind == TEXT:
            self.said[message[8 : 8 + size].decode()] = message[8 + size :].decode()

    @property
    def preview(self) -> list[dict]:
        return [m["data"] for m in self.messages if m["type"] == "ssd.preview"]

    @property
    def executed(self) -> list[str]:
        """Nodes that really ran."""
        return [m["data"]["node"] for m in self.messages
                if m["type"] == "executing" and m["data"].get("node")]

    @property
    def error(self) -> str:
        return next(m["data"]["exception_message"] for m in self.messages
                    if m["type"] == "execution_error")

    def output(self, node: str) -> dict:
        return self.history["outputs"][node]

    def text(self, node: str) -> str:
        return self.output(node)["text"][0]


def strip_pixels(strip: str):
    """A preview strip as a PIL image."""
    import io

    from PIL import Image

    return Image.open(io.BytesIO(base64.b64decode(strip))).convert("RGB")
