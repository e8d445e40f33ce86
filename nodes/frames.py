"""Frames of the picture so far, as ComfyUI's own samplers send them.

Programs that use ComfyUI without its page know only these. The page has our preview on the node
itself; it shows frames where that is out of sight: on the subgraph node around it, in app mode and
in the queue.
"""

from __future__ import annotations

import base64
import io
import math
import time
from collections.abc import Callable, Sequence

from comfy.cli_args import args
from comfy_execution.utils import get_executing_context
from PIL import Image
from protocol import BinaryEventTypes
from server import PromptServer

from ..ssd_core.front.request import Request
from .previews import Place

PAPER, GAP = "#f0f0f0", 8  # what is not drawn yet; px between pictures
LEAST_SECONDS = 0.25  # between two frames
Frame = tuple[str, Image.Image, int | None]  # as ComfyUI takes it: format, picture, largest side
NOWHERE = "ssd-preview"  # the id of no node: the page then shows the frame for the whole run


class Frames:
    """Paints the messages of a node's previews, and sends the picture now and then.

    to_programs: sends a frame the way ComfyUI's samplers do, for runs that no page queued.
    """

    def __init__(self, requests: Sequence[Request], place: Place,
                 to_programs: Callable[[Frame], None]) -> None:
        self.place, self.to_programs, self.sent = place, to_programs, -math.inf
        self.each = [request.pictures for request in requests]
        self.width, self.height = requests[0].size or (0, 0)
        count = sum(self.each)
        self.across = math.ceil(math.sqrt(count))
        self.whole = Image.new("RGB", (self._at(self.across)[0] - GAP,
                                       self._at(count - 1)[1] + self.height), PAPER)

    def __call__(self, message: dict) -> None:
        if message["kind"] in ("rows", "cells"):
            self._paint(message)
            if time.monotonic() - self.sent >= LEAST_SECONDS:
                self._send()
        elif message["kind"] == "finished":
            self._send()

    def _at(self, n: int) -> tuple[int, int]:
        """Where picture n begins; one beyond the first row is at its right end."""
        row, column = (0, n) if n == self.across else divmod(n, self.across)
        return column * (self.width + GAP), row * (self.height + GAP)

    def _paint(self, message: dict) -> None:
        first = sum(self.each[: message["panel"]])
        for n, strip in enumerate(message["strips"], first):
            x, y = self._at(n)
            with Image.open(io.BytesIO(base64.b64decode(strip))) as pixels:
                seen = pixels if pixels.mode == "RGBA" else None
                self.whole.paste(pixels.convert("RGB"), (x, y + message["top"]), seen)

    def _send(self) -> None:
        self.sent = time.monotonic()
        picture = self.whole.copy()  # it is encoded later, by another thread
        picture.thumbnail((args.preview_size, args.preview_size))
        frame = ("JPEG", picture, None)
        if self.place.graph:
            send_to_page(frame, self.place)
        else:
            self.to_programs(frame)


def send_to_page(frame: Frame, place: Place) -> None:
    """To the subgraph node around the node, or to no node, as the node has its own preview."""
    around, _, _ = (place.node or "").rpartition(":")
    server, context = PromptServer.instance, get_executing_context()
    about = {"node_id": place.node, "display_node_id": around or NOWHERE, "parent_node_id": None,
             "real_node_id": place.node, "prompt_id": context and context.prompt_id}
    server.send_sync(BinaryEventTypes.PREVIEW_IMAGE_WITH_METADATA, (frame, about),
                     server.client_id)
