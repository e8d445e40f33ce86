"""A run inside ComfyUI: progress bar, live preview, interrupt, memory, pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import comfy.model_management as mm
import torch
from comfy.utils import ProgressBar
from comfy_execution.graph_utils import ExecutionBlocker
from server import PromptServer

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.engine.events import Event, Finished, Pass, Started
from ..ssd_core.front.heatmap import AcceptanceCount
from ..ssd_core.front.preview import Preview
from ..ssd_core.front.race import race
from ..ssd_core.model.grid import Grid
from ..ssd_core.weights.fit import figures_of, pixel_bytes
from . import errors, previews
from .jobs import Job
from .telling import tell
from .weights import is_oom, resident

REMEDY = ("lower batch_size or k_v, set cfg to 1, or choose a smaller dtype or offload in Load "
          "Backbone")


@dataclass
class Outcome:
    """What came of a job; images [B, H, W, 3] is None where there was no memory for the pixels."""

    job: Job
    count: AcceptanceCount
    finished: Finished | None = None
    images: torch.Tensor | None = None
    problem: str | None = None
    shown: list[dict] = field(default_factory=list)  # by the node's previews, in messages

    @property
    def output(self) -> torch.Tensor | ExecutionBlocker:
        """For an IMAGE output: where there is none, only what hangs on it stops."""
        return ExecutionBlocker(self.problem) if self.images is None else self.images


@dataclass
class Screens:
    """The previews of a run's panels; empty where nobody is to see any."""

    panels: list[Preview] = field(default_factory=list)
    journal: previews.Journal | None = None

    def open(self, jobs: Sequence[Job], wish: str, place: previews.Place) -> None:
        if (send := sender(wish)) is None:
            return
        self.journal = previews.opened(place, send)
        with self.spared():
            self.panels = panels(jobs, self.journal, place.node)

    def __call__(self, panel: int, event: Event, seconds: float) -> None:
        with self.spared():
            if self.panels:
                self.panels[panel](event, seconds)

    def finish(self, outcomes: Sequence[Outcome], identical: Sequence[float | None]) -> None:
        for screen, outcome, share in zip(self.panels, outcomes, identical, strict=False):
            screen.finish(outcome.finished.stats, outcome.images, share)
        if self.panels:
            outcomes[0].shown = self.journal.settle(self.panels)

    @contextmanager
    def spared(self) -> Iterator[None]:
        """A preview that finds no memory goes dark, and the run goes on without it."""
        try:
            yield
        except Exception as error:
            if not is_oom(error):
                raise
            mm.soft_empty_cache()
            for screen in self.panels:
                screen.cancel("failed")
            self.panels = []

    @contextmanager
    def told(self) -> Iterator[None]:
        """Whatever ends the block early is told to the panels."""
        try:
            yield
        except BaseException as error:
            interrupted = isinstance(error, mm.InterruptProcessingException)
            for screen in self.panels:
                screen.cancel("interrupted" if interrupted else "failed")
            raise


class Bar:
    """ComfyUI's progress bar, one step a pass; also where a run notices that it shall stop."""

    def __init__(self, node: str | None) -> None:
        self.bar, self.value, self.total = ProgressBar(1, node_id=node), 0, 0

    def __call__(self, event: Event) -> None:
        # The bar is throttled and then skips ComfyUI's own check, so this one is ours.
        mm.throw_exception_if_processing_interrupted()
        if isinstance(event, Started):
            self.total += event.plan.passes or event.plan.passes_max
        elif isinstance(event, Pass):
            self.value += 1
            self.bar.update_absolute(self.value, self.total)

    def done(self) -> None:
        self.bar.update_absolute(self.total, self.total)


def run(jobs: Sequence[Job], place: previews.Place, wish: str,
        compare: Callable[[Sequence[Outcome]], Sequence[float | None]] = lambda _: [None],
        ) -> list[Outcome]:
    """Run jobs side by side to the end, show them on the node, and turn tokens into pixels.

    wish: the preview widget. compare: each job's share of tokens equal to AR's, where known.
    """
    outcomes = [Outcome(job, AcceptanceCount(job.pictures, job.backbone.grid)) for job in jobs]
    weights = list(dict.fromkeys(one for job in jobs for one in job.weights))
    for job in jobs:
        job.events()  # what is wrong with it is told before anything is loaded
    with ExitStack() as stack:
        stack.enter_context(resident(weights, sum(job.bytes_needed for job in jobs), REMEDY))
        screens = Screens()
        screens.open(jobs, wish, place)
        if not screens.panels and (notes := [note for job in jobs for note in job.notes]):
            tell(place.node, "\n".join(dict.fromkeys(notes)))
        stack.enter_context(screens.told())
        for job in jobs:  # opening previews may have taken the codec's turn
            job.backbone.awake(job.backbone.decoder)
        runs = [job.events() for job in jobs]  # tables of their own size lie where the weights are
        follow(race(runs), outcomes, screens, Bar(place.node))
        for outcome in outcomes:
            draw(outcome)
        screens.finish(outcomes, compare(outcomes))
    return outcomes


def follow(steps, outcomes: Sequence[Outcome], screens: Screens, bar: Bar) -> None:
    """Feed every event to whoever watches; the end closes the runs and drops their caches."""
    try:
        for panel, seconds, event in steps:
            bar(event)
            screens(panel, event, seconds)
            outcomes[panel].count(event)
            if isinstance(event, Finished):
                outcomes[panel].finished = event
    finally:
        steps.close()
    bar.done()


def sender(wish: str) -> Callable[[dict], None] | None:
    """Sends preview messages to the tab that queued the run; None where nobody shall see any."""
    server = PromptServer.instance
    client = server.client_id
    if wish == "off" or (wish == "auto" and client is None):
        return None
    return lambda message: server.send_sync(previews.EVENT, message, client)


def ui_of(outcomes: Sequence[Outcome]) -> dict | None:
    """A node's `ui`: what its previews show, for pages that get the result from a cache."""
    shown = outcomes[0].shown
    return {previews.UI: [{"messages": shown}]} if shown else None


def panels(jobs: Sequence[Job], send: Callable[[dict], None], node: str | None) -> list[Preview]:
    return [Preview(job.backbone, job.method, send, label=job.label, pictures=job.pictures,
                    node=node, panel=panel, keep=job.keep, keep_rows=job.keep_rows,
                    notes=job.notes)
            for panel, job in enumerate(jobs)]


def pixels(module: Backbone, tokens: torch.Tensor) -> torch.Tensor:
    """Tokens [B, R, C] -> IMAGE [B, H, W, 3] on the CPU, one at a time to spare memory."""
    pictures = []
    for one in tokens:
        mm.throw_exception_if_processing_interrupted()
        pictures.append(module.decode(one[None]).cpu())
    return torch.cat(pictures)


def pixel_room(module: Backbone, tokens: torch.Tensor) -> int:
    """Bytes that `pixels` of tokens [B, R, C] takes at most besides the codec's weights."""
    return pixel_bytes(replace(figures_of(module), grid=Grid(*tokens.shape[1:])))


def draw(outcome: Outcome) -> None:
    """Tokens into pixels; where the memory is short the tokens are not lost."""
    try:
        outcome.images = pixels(outcome.job.backbone, outcome.finished.tokens)
    except Exception as error:
        if not is_oom(error):
            raise
        mm.soft_empty_cache()
        outcome.problem = ("out of memory while turning tokens into pixels; the tokens are kept: "
                           "connect Decode Tokens to them, or lower batch_size")
        errors.note(outcome.problem)
