"""The outcome of a run, as every host reads it. Knows no host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from ..engine.events import Event, Finished, Pass, Rows
from ..engine.pace import note_pace
from ..engine.usual import note
from ..output.guarantees import guarantee, guarantee_text
from ..output.pixels import pixels
from .scheduling import timed

if TYPE_CHECKING:
    from .request import Request


@dataclass
class Result:
    """The outcome of a run so far, to be read at any time.

    Call `run`, or `take` with every event. An interrupted `run` leaves the rows that were final.
    Passes and pace of a finished run are recorded for later plans.

    rows: number of final rows. seconds: the run's own time. stats: None until it has finished.
    share: of tokens equal to AR's, None if AR did not run too (see `compare_with_ar`).
    """

    request: Request
    rows: int = field(init=False)
    passes: int = 0
    seconds: float = 0.0
    stats: Mapping | None = None
    share: float | None = None
    _final: list[Rows] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.rows = self.request.region.kept_rows  # the first Rows event includes them

    def run(self, on_event: Callable[[Event], None] = lambda event: None) -> Result:
        """Run the request to the end. on_event is called with every event that was processed."""
        for seconds, event in timed(self.request.events()):
            self.take(event, seconds)
            on_event(event)
        return self

    def take(self, event: Event, seconds: float | None = None) -> None:
        """Process an event. seconds: the run's own time so far, if known."""
        if seconds is not None:
            self.seconds = seconds
        if isinstance(event, Pass):
            self.passes = event.index
        elif isinstance(event, Rows):
            self.rows = event.last
            self._final.append(event)
        elif isinstance(event, Finished):
            self.stats = event.stats
            self._final = [Rows(0, self.rows, event.tokens)]
            note(self.request.sized, self.request.method, self.request.heads is not None,
                 self.request.sampling, event.stats,
                 partly=not bool(self.request.region.free.all()))
            note_pace(self.request.sized, self.request.method, self.request.heads is not None,
                      self.request.sampling, self.request.pictures, event.stats)

    @property
    def tokens(self) -> torch.Tensor:
        """[B, R, C] int64 on the CPU; zeros in rows that are not final."""
        grid = self.request.grid
        tokens = torch.zeros(self.request.pictures, grid.rows, grid.columns, dtype=torch.long)
        for rows in self._final:
            tokens[:, rows.first : rows.last] = rows.tokens.cpu()
        return tokens

    @property
    def finished(self) -> bool:
        return self.stats is not None

    @property
    def measured(self) -> Mapping:
        """The statistics of a finished run."""
        assert self.stats is not None
        return self.stats

    @property
    def stopped_rows(self) -> int | None:
        """The final rows of a stopped run, 0 if it finished none; None if the run finished."""
        if self.finished:
            return None
        return self.rows if self.rows > self.request.region.kept_rows else 0

    def pictures(self) -> Iterator[torch.Tensor]:
        """The pictures, [H, W, 3] float 0..1 on the CPU, decoded one after the other."""
        return pixels(self.request.sized, self.tokens)

    def recipes(self) -> list[dict]:
        """One recipe per picture; those of a stopped run state how many rows were final."""
        stats = self.stats or {"passes": self.passes, "seconds": {"total": self.seconds}}
        stopped = {} if self.finished else {"stopped_rows": self.rows}
        return [{**self.request.recipe(index, tokens, stats), **stopped}
                for index, tokens in enumerate(self.tokens)]

    @property
    def verdict(self) -> str:
        """The guarantee of the pictures, as a word of docs/contract.md."""
        return guarantee(self.request.method, self.request.sized, self.share)

    @property
    def guarantee_text(self) -> str:
        """The same as a sentence."""
        return guarantee_text(self.request.method, self.request.sized, self.share)
