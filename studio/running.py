"""One run on its way: its events, its preview, what it has come to; and how runs are followed.

Knows engine events and jobs, not where pictures are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from traceback import clear_frames

import torch

from ssd_core import SSDError, generate
from ssd_core.backbones.base import Backbone
from ssd_core.engine.events import Event, Finished, Pass, Rows
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import Method
from ssd_core.front.labels import label
from ssd_core.front.preview import Preview
from ssd_core.front.race import race, timed
from ssd_core.front.recipe import make_recipe

from .jobs import Cancelled, Job
from .library import Loaded, free_memory
from .settings import Settings

REMEDY = ("lower the number of pictures or k_v, set cfg to 1, or load the backbone with a smaller "
          "dtype")


@dataclass
class Run:
    """A generator of events, and what came of it so far.

    rows: final rows. tokens [B, R, C]: of those rows, zeros below. tell: where messages go, which
    may change while the run is parked.
    """

    settings: Settings
    backbone: Backbone
    heads: DraftHeads | None
    method: Method
    tell: Callable[[dict], None]
    panel: int
    keep: torch.Tensor | None
    keep_rows: int
    rows: int = 0
    passes: int = 0
    seconds: float = 0.0
    finished: Finished | None = None
    events: Generator[Event, None, None] = field(init=False)
    steps: Iterator[tuple[float, Event]] = field(init=False)
    screen: Preview = field(init=False)
    tokens: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        wish, grid = self.settings, self.backbone.grid
        self.events = generate(self.backbone, [wish.prompt] * wish.pictures, self.method,
                               self.heads, wish.sampling(), wish.negative or None,
                               keep=self.keep, keep_rows=self.keep_rows)
        self.steps = timed(self.events)
        self.screen = Preview(
            self.backbone, self.method, lambda message: self.tell(message), label=self.label,
            pictures=wish.pictures, panel=self.panel, keep=self.keep, keep_rows=self.keep_rows)
        self.tokens = torch.zeros(wish.pictures, grid.rows, grid.columns, dtype=torch.long)
        self.rows = self.keep_rows  # the first event of rows tells these as well

    @property
    def label(self) -> str:
        return label(self.method)

    @property
    def unknown_words(self) -> list[str]:
        return self.backbone.unknown_words(f"{self.settings.prompt} {self.settings.negative}")

    def take(self, event: Event, seconds: float) -> None:
        """Take in an event; seconds: what the run itself has taken so far."""
        self.seconds = seconds
        self._show(event, seconds)
        if isinstance(event, Pass):
            self.passes = event.index
        elif isinstance(event, Rows):
            self.tokens[:, event.first : event.last] = event.tokens.cpu()
            self.rows = event.last
        elif isinstance(event, Finished):
            self.finished = event

    def _show(self, event: Event, seconds: float) -> None:
        """Where the preview finds no memory, the run goes on and is seen in plain colours."""
        try:
            self.screen(event, seconds)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            free_memory()
            self.screen.decode_seconds = math.inf  # the decoder is not tried again

    def recipe(self, index: int) -> dict:
        """Of picture `index`; of a run that was stopped with `stopped_rows`."""
        stats = self.finished.stats if self.finished else {
            "passes": self.passes, "seconds": {"total": self.seconds}}
        told = make_recipe(self.backbone, self.heads, self.method, self.settings.sampling(),
                           self.tokens[index], stats, index=index, prompt=self.settings.prompt,
                           negative=self.settings.negative or None, keep_rows=self.keep_rows)
        return told if self.finished else {**told, "stopped_rows": self.rows}

    def picture(self, index: int) -> torch.Tensor:
        """[H, W, 3] float 0..1 on the CPU."""
        return decoded(self.backbone, self.tokens[index])

    def close(self, reason: str) -> None:
        """End the run where it is and free its memory; reason: "interrupted" or "failed"."""
        self.events.close()
        self.screen.cancel(reason)


def open_run(loaded: Loaded, settings: Settings, tell: Callable[[dict], None], *, panel: int = 0,
             keep: torch.Tensor | None = None, keep_rows: int = 0) -> Run:
    """A run that has not begun; SSDError for whatever is wrong with the settings."""
    backbone = loaded.backbone.resized(settings.pixels())
    method = settings.method_for(backbone, loaded.heads)
    heads = loaded.heads if method.uses_heads else None
    return Run(settings, backbone, heads, method, tell, panel, keep, keep_rows)


def decoded(backbone: Backbone, tokens: torch.Tensor) -> torch.Tensor:
    """Tokens [R, C] -> picture [H, W, 3] float 0..1 on the CPU."""
    with torch.inference_mode():
        return backbone.decode(tokens[None].to(backbone.device))[0].cpu()


# Following


def advance(job: Job, run: Run, rows: int | None = None) -> None:
    """Go on until so many rows are final, or to the end; Cancelled if the job is."""
    job.check()
    for seconds, event in run.steps:
        run.take(event, seconds)
        estimate(job, [run])
        job.check()
        if rows is not None and run.rows >= rows and isinstance(event, Rows):
            return


def advance_together(job: Job, runs: Sequence[Run]) -> None:
    """All runs to their ends, the one whose own clock is behind first; Cancelled if the job is."""
    steps = race([run.events for run in runs])
    try:
        for panel, seconds, event in steps:
            runs[panel].take(event, seconds)
            estimate(job, runs)
            job.check()
    finally:
        steps.close()


def estimate(job: Job, runs: Sequence[Run]) -> None:
    """Progress and time left, from the seconds that a row took so far."""
    done = sum(run.rows - run.keep_rows for run in runs)
    left = sum(run.backbone.grid.rows - run.rows for run in runs)
    job.progress = done / (done + left)
    job.seconds_left = sum(run.seconds for run in runs) / done * left if done else None


@contextmanager
def guarded(*runs: Run) -> Iterator[None]:
    """Whatever ends the block early closes the runs and is told to their panels."""
    try:
        with memory_told():
            yield
    except BaseException as error:
        for run in runs:
            run.close("interrupted" if isinstance(error, Cancelled) else "failed")
        raise


@contextmanager
def memory_told() -> Iterator[None]:
    """Out of memory becomes the one SSDError line that says what to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        clear_frames(error.__traceback__)  # they hold the run, and with it its cache
        free_memory()
        raise SSDError(f"out of memory: {REMEDY}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Also where the device has no exception of its own for it."""
    texts = ("out of memory", "not enough memory", "can't allocate memory")
    return (isinstance(error, MemoryError | torch.OutOfMemoryError)
            or any(text in str(error) for text in texts))
