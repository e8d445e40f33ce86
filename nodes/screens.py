"""The live previews of a node's runs: messages for our preview, and frames for other viewers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import comfy.model_management as mm
import torch
from server import PromptServer

from ..ssd_core.engine.events import Event
from ..ssd_core.output.pieces import Piece
from ..ssd_core.output.preview import Preview
from ..ssd_core.runs.request import Request, Result
from . import previews
from .frames import Frame, Frames
from .language import localized


class Shown(Protocol):
    """The part of a run that previews show."""

    request: Request
    result: Result
    title: str
    images: torch.Tensor | None
    messages: Sequence[dict]

    @property
    def notes(self) -> list[str]: ...

    @property
    def words(self) -> list[list[Piece]]: ...


@dataclass
class Screens:
    """The previews of a node's runs; empty if no preview is wanted."""

    panels: list[Preview] = field(default_factory=list)
    log: previews.PreviewLog | None = None

    @classmethod
    def of(cls, runs: Sequence[Shown], preview: str, node_ref: previews.NodeRef,
           to_programs: Callable[[Frame], None]) -> Screens:
        """preview: the value of the preview widget. to_programs: see `Frames`."""
        if (send := sender(preview)) is None:
            return cls()
        frames = Frames(node_ref, to_programs)

        def to_page_and_programs(message: dict) -> None:
            send(message)
            frames(message)

        log = previews.open_log(node_ref, to_page_and_programs)
        screens = cls([], log)
        for panel, run in enumerate(runs):
            screen = run.request.preview(log, node=node_ref.node, panel=panel,
                                         notes=[localized(note) for note in run.notes])
            screen.label = run.title or screen.label
            screen.words = run.words
            screens.panels.append(screen)
        return screens

    def take(self, panel: int, event: Event, seconds: float) -> None:
        if self.panels:
            self.panels[panel](event, seconds)

    def finish(self, runs: Sequence[Shown]) -> dict | None:
        """Show the outcome of the runs on the previews.

        Returns the node's `ui` with the previews' content, for pages that get a cached result.
        """
        for screen, run in zip(self.panels, runs, strict=False):
            if run.result.finished:
                screen.finish(run.result.measured, run.images, run.result.share)
            else:
                screen.pause()
        if self.log is None or not self.panels:
            return None
        for panel, run in enumerate(runs):
            run.messages = [message for message in self.log.messages if message["panel"] == panel]
        return {previews.UI: [{"messages": self.log.settle(self.panels)}]}

    @contextmanager
    def cancelled_early(self) -> Iterator[None]:
        """If the block raises, cancel the previews with the reason."""
        try:
            yield
        except BaseException as error:
            interrupted = isinstance(error, mm.InterruptProcessingException)
            for screen in self.panels:
                screen.cancel("interrupted" if interrupted else "failed")
            raise


def sender(preview: str) -> Callable[[dict], None] | None:
    """A function that sends preview messages to the tab that queued the run, or None."""
    server = PromptServer.instance
    client = server.client_id
    if preview == "off" or (preview == "auto" and client is None):
        return None
    return lambda message: server.send_sync(previews.EVENT, message, client)
