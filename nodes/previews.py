"""The latest preview messages of every node, kept for pages that missed them.

Every message is sent to the page with its workflow and a serial number, and stored in a journal
here. A reloaded page reads the journal. A page that gets a result from ComfyUI's cache finds the
finished pictures in the node's `ui` outputs, as files in ComfyUI's temporary folder.
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

import folder_paths
from comfy_api.v0_0_2 import io
from server import PromptServer

from ..ssd_core.front.preview import Preview

EVENT = "ssd.preview"
ROUTE = "/ssd/preview"
UI = "ssd_preview"  # a key that ComfyUI ignores: it must not show the picture a second time
KEPT = 32  # nodes whose latest run is kept
# Starts at the clock, so that after a restart of the server serials are still larger.
SERIAL = count(time.time_ns() // 1000)

HIDDEN = [io.Hidden.unique_id, io.Hidden.extra_pnginfo]


@dataclass(frozen=True)
class Place:
    """Where a run is shown: the ids of a node and of its workflow; whether a page queued it."""

    node: str | None
    graph: str = ""
    page: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, hidden) -> Place:
        """From a node's hidden inputs; prompts that no page queued have no workflow."""
        workflow = (hidden.extra_pnginfo or {}).get("workflow")
        known = workflow.get("id") if isinstance(workflow, dict) else None
        return cls(hidden.unique_id, str(known or ""), workflow is not None)


class Journal:
    """The messages of a node's latest run, except those that later messages painted over.

    story: all of them, for a replay.
    """

    def __init__(self, place: Place, send: Callable[[dict], None]) -> None:
        self.place, self.send = place, send
        self.messages: list[dict] = []
        self.story: list[dict] = []

    def __call__(self, message: dict) -> None:
        """Store a message and send it."""
        message = {**message, "graph": self.place.graph, "serial": next(SERIAL)}
        if message["kind"] in ("rows", "cells"):
            # A new list, as the server's thread may be reading the old one.
            self.messages = [old for old in self.messages if not painted_over(old, message)]
        self.messages.append(message)
        self.story.append(message)
        self.send(message)

    def settle(self, screens: list[Preview]) -> list[dict]:
        """Reduce the finished run to few messages, with its pictures as files.

        The caller takes the story: the journal outlives the run.
        """
        self.messages = [message for panel, screen in enumerate(screens)
                         for message in self._settled(panel, screen)]
        self.story = []
        return self.messages

    def _settled(self, panel: int, screen: Preview) -> list[dict]:
        told = [message for message in self.messages if message["panel"] == panel]
        last_pass = [message for message in told if message["kind"] == "pass"][-1:]
        return [*(m for m in told if m["kind"] == "started"),
                *({**m, **screen.marks.whole()} for m in last_pass),
                *(filed(m) for m in told if m["kind"] == "rows"),
                *(m for m in told if m["kind"] not in ("started", "pass", "rows", "cells"))]


def painted_over(old: dict, new: dict) -> bool:
    """Whether old pixels are gone. The newest message of cells has all that are in flight."""
    if (old["kind"], old["panel"]) != (new["kind"], new["panel"]):
        return False
    return new["kind"] == "cells" or new["first"] <= old["first"] and old["last"] <= new["last"]


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


_journals: OrderedDict[Place, Journal] = OrderedDict()


def opened(place: Place, send: Callable[[dict], None]) -> Journal:
    """Start a new journal for a node; it replaces the last one."""
    _journals.pop(place, None)
    _journals[place] = Journal(place, send)
    while len(_journals) > KEPT:
        _journals.popitem(last=False)
    return _journals[place]


def told(graph: str, node: str | None = None) -> list[dict]:
    """The latest messages of a workflow's nodes, or of one of them."""
    return [message for place, journal in list(_journals.items())
            if place.graph == graph and node in (None, place.node)
            for message in list(journal.messages)]


def register_route() -> None:
    """Add the route by which pages ask for messages they missed."""
    @PromptServer.instance.routes.get(ROUTE)
    async def answer(request):
        from aiohttp import web  # installed with ComfyUI, but not for the tests

        return web.json_response(told(request.query.get("graph", ""), request.query.get("node")))
