"""Runs inside ComfyUI: progress bar, live previews, interrupt, memory, pixels."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import comfy.model_management as mm
import torch
from comfy.utils import ProgressBar
from comfy_execution.graph_utils import ExecutionBlocker
from server import PromptServer

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.engine.events import Event, Pass, Started
from ..ssd_core.front.heatmap import AcceptanceCount
from ..ssd_core.front.pixels import pixels
from ..ssd_core.front.preview import Preview
from ..ssd_core.front.race import in_turn, race
from ..ssd_core.front.request import Request, Result, compare_with_ar
from ..ssd_core.model.grid import Grid
from ..ssd_core.weights.figures import figures_of
from ..ssd_core.weights.memory import pixel_bytes
from . import errors, previews
from .telling import tell
from .weights import LoadedBackbone, LoadedHeads, LoadedWeights, is_oom, resident

Order = Callable[[Sequence[Generator[Event, None, None]]],
                 Generator[tuple[int, float, Event], None, None]]
REMEDY = ("lower batch_size or k_v, set cfg to 1, or choose a smaller dtype or offload in Load "
          "Backbone")


@dataclass
class Run:
    """A request, the weights that ComfyUI moves for it, and its outcome.

    heads: None if the method uses none. node_notes: the node's notes, besides the request's own.
    images: [B, H, W, 3], None if memory was too small for the pixels; `problem` then says so.
    """

    request: Request
    model: LoadedBackbone
    heads: LoadedHeads | None = None
    node_notes: Sequence[str] = ()
    result: Result = field(init=False)
    count: AcceptanceCount = field(init=False)
    images: torch.Tensor | None = None
    problem: str | None = None

    def __post_init__(self) -> None:
        self.heads = self.heads if self.request.heads is not None else None
        self.result = Result(self.request)
        self.count = AcceptanceCount(self.request.pictures, self.request.grid)

    @property
    def weights(self) -> list[LoadedWeights]:
        return [one for one in (self.model, self.heads) if one is not None]

    @property
    def notes(self) -> list[str]:
        """Notes to show on the node and in the report."""
        return [*self.node_notes, *self.request.notes]

    @property
    def output(self) -> torch.Tensor | ExecutionBlocker:
        """The IMAGE output; if there are no images, it blocks only the nodes connected to it."""
        return ExecutionBlocker(self.problem) if self.images is None else self.images

    def take(self, event: Event, seconds: float) -> None:
        self.result.take(event, seconds)
        self.count(event)

    def draw(self) -> None:
        """Decode tokens to pixels; if memory runs out, the tokens are kept."""
        try:
            self.images = images_of(self.request.sized, self.result.tokens)
        except Exception as error:
            if not is_oom(error):
                raise
            mm.soft_empty_cache()
            self.problem = ("out of memory while turning tokens into pixels; the tokens are kept: "
                            "connect Decode Tokens to them, or lower batch_size")
            errors.note(self.problem)


@dataclass
class Screens:
    """The previews of a node's runs; empty if no preview is wanted."""

    panels: list[Preview] = field(default_factory=list)
    journal: previews.Journal | None = None

    @classmethod
    def of(cls, runs: Sequence[Run], wish: str, place: previews.Place) -> Screens:
        """wish: the value of the preview widget."""
        if (send := sender(wish)) is None:
            return cls()
        journal = previews.opened(place, send)
        return cls([run.request.preview(journal, node=place.node, panel=panel, notes=run.notes)
                    for panel, run in enumerate(runs)], journal)

    def take(self, panel: int, event: Event, seconds: float) -> None:
        if self.panels:
            self.panels[panel](event, seconds)

    def finish(self, runs: Sequence[Run]) -> dict | None:
        """Show the outcome of the runs on the previews.

        Returns the node's `ui`: the previews' content, for pages that get the result from a cache.
        """
        for screen, run in zip(self.panels, runs, strict=False):
            screen.finish(run.result.measured, run.images, run.result.share)
        if self.journal is None or not self.panels:
            return None
        return {previews.UI: [{"messages": self.journal.settle(self.panels)}]}

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


class Bar:
    """ComfyUI's progress bar, one step per pass; it also checks for interrupts."""

    def __init__(self, node: str | None) -> None:
        self.bar, self.value, self.total = ProgressBar(1, node_id=node), 0, 0

    def __call__(self, event: Event) -> None:
        # ComfyUI's bar checks too, but skips the check when it is throttled.
        mm.throw_exception_if_processing_interrupted()
        if isinstance(event, Started):
            self.total += event.plan.passes or event.plan.passes_max
        elif isinstance(event, Pass):
            self.value += 1
            self.bar.update_absolute(self.value, self.total)

    def done(self) -> None:
        self.bar.update_absolute(self.total, self.total)


def run_all(runs: Sequence[Run], place: previews.Place, wish: str,
            together: bool = True) -> dict | None:
    """Run requests, show them on the node, and decode their tokens to pixels.

    wish: the value of the preview widget. together: side by side, else one after the other, which
    needs the memory of one. Returns the node's `ui`, None without a preview.
    """
    needed = [run.request.bytes_needed for run in runs]
    weights = list(dict.fromkeys(one for run in runs for one in run.weights))
    for run in runs:
        run.request.check()  # report wrong input before anything is loaded
    with ExitStack() as stack:
        stack.enter_context(resident(weights, sum(needed) if together else max(needed), REMEDY))
        screens = Screens.of(runs, wish, place)
        if not screens.panels and (notes := [note for run in runs for note in run.notes]):
            tell(place.node, "\n".join(dict.fromkeys(notes)))
        stack.enter_context(screens.cancelled_early())
        for run in runs:  # a preview may have moved the codec to the device
            run.model.module.awake(run.model.module.decoder)
        follow(runs, race if together else in_turn, screens, Bar(place.node))
        for run in runs:
            run.draw()
        compare_with_ar([run.result for run in runs])
        return screens.finish(runs)


def follow(runs: Sequence[Run], order: Order, screens: Screens, bar: Bar) -> None:
    """Send every event to bar, screens and runs; at the end close the runs to free memory.

    order: `race` or `in_turn`.
    """
    steps = order([run.request.events() for run in runs])
    try:
        for panel, seconds, event in steps:
            bar(event)
            screens.take(panel, event, seconds)
            runs[panel].take(event, seconds)
    finally:
        steps.close()
    bar.done()


def sender(wish: str) -> Callable[[dict], None] | None:
    """A function that sends preview messages to the tab that queued the run, or None."""
    server = PromptServer.instance
    client = server.client_id
    if wish == "off" or (wish == "auto" and client is None):
        return None
    return lambda message: server.send_sync(previews.EVENT, message, client)


def images_of(module: Backbone, tokens: torch.Tensor) -> torch.Tensor:
    """Tokens [B, R, C] -> IMAGE [B, H, W, 3] on the CPU; can be interrupted between pictures."""
    images = []
    for picture in pixels(module, tokens):
        mm.throw_exception_if_processing_interrupted()
        images.append(picture)
    return torch.stack(images)


def pixel_room(module: Backbone, tokens: torch.Tensor) -> int:
    """Peak bytes of `images_of` for tokens [B, R, C], besides the codec's weights."""
    return pixel_bytes(replace(figures_of(module), grid=Grid(*tokens.shape[1:])))
