"""A run in progress (`LiveRun`): its events, its result so far and its preview. Knows no host."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from ..engine.events import Event
from ..engine.region import Region
from ..output.preview import Preview
from .request import Request, Result
from .scheduling import timed


@dataclass(eq=False)
class LiveRun:
    """A request in progress. Iterating over it runs the request, and yields its events.

    Result and preview take every event before it is yielded. An iteration may stop and go on later.
    send: receives the preview's messages, and may change between two events; None: there is no
    preview until `show` opens one. panel: the preview's place beside those of other runs.
    """

    request: Request
    send: Callable[[dict], None] | None = field(default=None, kw_only=True)
    panel: int = field(default=0, kw_only=True)
    result: Result = field(init=False)
    preview: Preview | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.result = Result(self.request)
        self._events = self.events()
        self._steps = timed(self._events)
        if self.send is not None:
            self.show(self.send, self.panel)

    def show(self, send: Callable[[dict], None], panel: int = 0, **options: Any) -> Preview:
        """Open the preview; options: those of `Request.preview`.

        The weights must be on the device, because a preview decodes its colours.
        """
        self.send, self.panel = send, panel
        self.preview = self.request.preview(self._send, panel=panel, **options)
        return self.preview

    def _send(self, message: dict) -> None:
        assert self.send is not None
        self.send(message)

    def events(self) -> Generator[Event, None, None]:
        """The events of the run. Raises SSDError, if at all, before the run starts."""
        return self.request.events()

    @cached_property
    def region(self) -> Region:
        """The cells that are drawn."""
        return self.request.region

    @property
    def drawn_cells(self) -> int:
        """The number of redrawn cells in the rows that are final."""
        return self.region.count(0, self.result.rows * self.request.grid.width)

    @property
    def seconds(self) -> float:
        """The run's own time so far."""
        return self.result.seconds

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        seconds, event = next(self._steps)
        self.take(event, seconds)
        return event

    def take(self, event: Event, seconds: float) -> None:
        """Process an event; seconds: the run's own time so far."""
        self.result.take(event, seconds)  # first: sending a message may raise an interrupt
        if self.preview is not None:
            self.preview(event, seconds)

    def refine(self, within: float = math.inf) -> None:
        """Show all final rows decoded, if that is expected to take at most `within` seconds."""
        if self.preview is not None:
            self.preview.refine(within)

    def finish(self, pictures: torch.Tensor | None) -> None:
        """Show the finished pictures [B, H, W, 3], or the final rows of a run that stopped early.

        pictures: None if memory was too small for them.
        """
        if self.preview is None:
            return
        if self.result.finished:
            self.preview.finish(self.result.measured, pictures, self.result.share,
                                self.result.pixels_took)
        else:
            self.preview.pause()

    def close(self) -> None:
        """Stop the run and free its memory."""
        self._events.close()

    def cancel(self, reason: str) -> None:
        """Stop the run and show why; reason: "interrupted" or "failed"."""
        self.close()
        if self.preview is not None:
            self.preview.cancel(reason)
