"""Frames of the partial picture in the form that ComfyUI's own samplers send.

Programs that use ComfyUI without its page know only these. The page shows our preview on the node
itself, and frames where the node is hidden: on the subgraph node around it, in app mode and in the
queue.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from comfy.cli_args import args
from comfy_execution.utils import get_executing_context
from PIL import Image
from protocol import BinaryEventTypes
from server import PromptServer

from ..ssd_core.output.replay import ReplayCanvas, seen, take
from . import previews
from .previews import NodeRef, PreviewLog

LEAST_SECONDS = 0.5  # between two frames
NOWHERE = "ssd-preview"  # the id of no node: the page then shows the frame for the whole run
Frame = tuple[str, Image.Image, int | None]  # ComfyUI's: format, picture, largest side


class Frames:
    """Paints the messages of a node's previews and sends the picture every LEAST_SECONDS at most.

    to_programs: sends a frame as ComfyUI's samplers do, for runs that no page queued.
    """

    def __init__(self, node_ref: NodeRef, to_programs: Callable[[Frame], None]) -> None:
        self.node_ref, self.to_programs, self.sent = node_ref, to_programs, -math.inf
        self.screens: dict[int, ReplayCanvas] = {}
        self.waiting: list[dict] = []  # painted only once a frame is due

    def __call__(self, message: dict) -> None:
        kind = message["kind"]
        if kind in ("started", "rows", "cells"):
            self.waiting.append(message)
        if kind == "finished" or (kind in ("rows", "cells")
                                  and time.monotonic() - self.sent >= LEAST_SECONDS):
            self._send()

    def _send(self) -> None:
        self.sent = time.monotonic()
        for message in self.waiting:
            take(self.screens, message)
        self.waiting = []
        picture = Image.fromarray(seen(self.screens, overlay=False))
        picture.thumbnail((args.preview_size, args.preview_size))
        frame = ("JPEG", picture, None)
        if self.node_ref.page:
            send_to_page(frame, self.node_ref)
        else:
            self.to_programs(frame)


def send_to_page(frame: Frame, node_ref: NodeRef) -> None:
    """Send a frame to a node inside a subgraph, which the subgraph node shows; else to no node."""
    inside = node_ref.node if ":" in (node_ref.node or "") else NOWHERE
    server, context = PromptServer.instance, get_executing_context()
    about = {"node_id": node_ref.node, "display_node_id": inside, "parent_node_id": None,
             "real_node_id": node_ref.node, "prompt_id": context and context.prompt_id}
    server.send_sync(BinaryEventTypes.PREVIEW_IMAGE_WITH_METADATA, (frame, about),
                     server.client_id)


def open_log(node_ref: NodeRef, preview: bool,
             to_programs: Callable[[Frame], None]) -> PreviewLog | None:
    """A new log whose messages go to the page, and as frames to all other viewers.

    preview: the value of the preview widget. to_programs: see `Frames`. None if no preview is
    wanted.
    """
    if not preview:
        return None
    send = previews.sender()
    frames = Frames(node_ref, to_programs)

    def to_page_and_programs(message: dict) -> None:
        send(message)
        frames(message)

    return previews.open_log(node_ref, to_page_and_programs)
