"""Logs of the latest preview messages of every node, for pages that missed them.

Every message goes to the page with its workflow and a serial number, and into a log. A reloaded
page reads the log. A page that gets a result from ComfyUI's cache finds the finished pictures in
the node's `ui` outputs, as files in ComfyUI's temporary folder.
"""

from __future__ import annotations

import base64
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import folder_paths
from comfy_api.v0_0_2 import io
from server import PromptServer

if TYPE_CHECKING:
    from ..ssd_core.output.preview import Preview

EVENT = "ssd.preview"
UI = "ssd_preview"  # a key that ComfyUI ignores: it must not show the picture a second time
MAX_LOGS = 32
# Starts at the clock, so that serials still grow after a restart of the server.
SERIAL = count(time.time_ns() // 1000)

HIDDEN = [io.Hidden.unique_id, io.Hidden.extra_pnginfo, io.Hidden.prompt]


@dataclass(frozen=True)
class NodeRef:
    """The node that shows a run, its workflow's id, and whether a page queued the run."""

    node: str | None
    graph: str = ""
    page: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, hidden) -> NodeRef:
        """From a node's hidden inputs; prompts that no page queued have no workflow."""
        workflow = (hidden.extra_pnginfo or {}).get("workflow")
        known = workflow.get("id") if isinstance(workflow, dict) else None
        return cls(hidden.unique_id, str(known or ""), workflow is not None)


class PreviewLog:
    """The preview messages of a node's latest run.

    messages: all of them, for a replay. latest: without those that later messages painted over.
    """

    def __init__(self, node_ref: NodeRef, send: Callable[[dict], None]) -> None:
        self.node_ref, self.send = node_ref, send
        self.latest: list[dict] = []
        self.messages: list[dict] = []

    def __call__(self, message: dict) -> None:
        """Store a message and send it."""
        message = {**message, "graph": self.node_ref.graph, "serial": next(SERIAL)}
        if message["kind"] in ("rows", "cells"):
            # A new list, because the server's thread may be reading the old one.
            self.latest = [old for old in self.latest if not painted_over(old, message)]
        self.latest.append(message)
        self.messages.append(message)
        self.send(message)

    def settle(self, screens: list[Preview]) -> list[dict]:
        """Reduce the finished run to a few messages with its pictures as files; return them.

        The caller takes `messages` first: the log outlives the run and drops them.
        """
        self.latest = [message for panel, screen in enumerate(screens)
                         for message in self._settled(panel, screen)]
        self.messages = []
        return self.latest

    def _settled(self, panel: int, screen: Preview) -> list[dict]:
        messages = [message for message in self.latest if message["panel"] == panel]
        last_pass = [message for message in messages if message["kind"] == "pass"][-1:]
        return [*(m for m in messages if m["kind"] == "started"),
                *({**m, **screen.marks.whole()} for m in last_pass),
                *(filed(m) for m in messages if m["kind"] == "rows"),
                *(m for m in messages if m["kind"] not in ("started", "pass", "rows", "cells"))]


def painted_over(old: dict, new: dict) -> bool:
    """Whether `new` replaces all pixels of `old`; a "cells" message has all current drafts, except
    kept cells, which stand from the start.
    """
    if old.get("known") and old["kind"] == "cells":
        return False
    if (old["kind"], old["panel"]) != (new["kind"], new["panel"]):
        return False
    return new["kind"] == "cells" or (new["first"] <= old["first"] and old["last"] <= new["last"])


def filed(rows: dict) -> dict:
    """Store the strips of a rows message as files; unchanged if no file can be written."""
    folder = Path(folder_paths.get_temp_directory())
    names = [f"ssd_preview_{rows['run']}_{rows['first']}_{n}.png"
             for n in range(len(rows["strips"]))]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, strip in zip(names, rows["strips"], strict=True):
            Path(folder, name).write_bytes(base64.b64decode(strip))
    except OSError as error:
        logging.warning("SSD preview: no picture could be kept in %s: %s", folder, error)
        return rows
    files = [{"filename": name, "subfolder": "", "type": "temp"} for name in names]
    return {**rows, "strips": [], "files": files}


_logs: OrderedDict[NodeRef, PreviewLog] = OrderedDict()


def open_log(node_ref: NodeRef, send: Callable[[dict], None]) -> PreviewLog:
    """Start a new log for a node; it replaces the last one."""
    _logs.pop(node_ref, None)
    _logs[node_ref] = PreviewLog(node_ref, send)
    while len(_logs) > MAX_LOGS:
        _logs.popitem(last=False)
    return _logs[node_ref]


def messages_for(graph: str, node: str | None = None) -> list[dict]:
    """The latest messages of a workflow's nodes, or of one of them."""
    return [message for node_ref, log in list(_logs.items())
            if node_ref.graph == graph and node in (None, node_ref.node)
            for message in list(log.latest)]


def sender() -> Callable[[dict], None]:
    """A function that sends preview messages to the tab that queued the run."""
    server = PromptServer.instance
    client = server.client_id
    return lambda message: server.send_sync(EVENT, message, client)
