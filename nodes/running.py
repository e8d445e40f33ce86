"""Runs inside ComfyUI: progress bar, live previews, interrupt, memory, pixels."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace

import comfy.model_management as mm
import numpy as np
import torch
from comfy.utils import ProgressBar
from comfy_execution.graph_utils import ExecutionBlocker

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.engine.events import Event
from ..ssd_core.model.grid import Grid
from ..ssd_core.output.heatmap import AcceptanceCount
from ..ssd_core.output.labels import speed_of
from ..ssd_core.output.pieces import Piece, shown, word_lines
from ..ssd_core.output.pixels import pixels, tops
from ..ssd_core.output.words import Words
from ..ssd_core.runs.comparison import compare_with_ar
from ..ssd_core.runs.live import LiveRun
from ..ssd_core.runs.request import finished_pictures
from ..ssd_core.runs.scheduling import in_turn, race
from ..ssd_core.runs.suggestions import likeliest_first
from ..ssd_core.weights.memory import MemoryEstimate
from ..ssd_core.weights.model_size import ModelSize, stored_dtype
from . import errors, previews, selftesting, unfinished
from .finished import Finished
from .frames import Frame, open_log
from .language import clear_text, is_chinese, localized, page_language, show_text
from .types import LoadedModel
from .weights import LoadedHeads, LoadedWeights, is_oom, resident

REMEDY = ("lower batch_size or k_v, set cfg to 1, or choose a smaller dtype or offload in Load "
          "Model")


@dataclass(eq=False)
class NodeRun(LiveRun):
    """A run of a node, the weights that ComfyUI moves for it, and its images.

    node_notes: the node's notes, besides the request's own.
    title: the preview's heading, if not the method. images: [B, H, W, 3], None if memory was too
    small for the pixels; `problem` then says so. messages: those of its preview. earlier: the
    outcome of the same picture, if it was drawn before.
    """

    model: LoadedModel
    node_notes: Sequence[str] = ()
    title: str = ""
    earlier: Finished | None = None
    count: AcceptanceCount = field(init=False)
    images: torch.Tensor | None = None
    problem: str | None = None
    messages: Sequence[dict] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.count = AcceptanceCount(self.request.pictures, self.request.grid)

    @property
    def heads(self) -> LoadedHeads | None:
        """The draft heads; None if the method uses none."""
        return self.model.heads if self.request.heads is not None else None

    @property
    def weights(self) -> list[LoadedWeights]:
        return [loaded for loaded in (self.model.backbone, self.heads) if loaded is not None]

    @property
    def notes(self) -> list[str]:
        """Notes to show on the node and in the report."""
        return [*self.node_notes, *self.model.backbone.notes, *self.request.notes]

    @property
    def typed(self) -> Words:
        return Words(self.request.prompt, self.request.drawing.negative)

    @property
    def word_notes(self) -> list[str]:
        """Lines about the words that are drawn, if they differ from the typed ones."""
        return word_lines(self.typed, self.request.words, self.request.seeds)

    @property
    def words(self) -> list[list[Piece]]:
        """Each picture's prompt with the added words marked, for the preview."""
        return shown(self.typed, self.request.words)

    @property
    def outcome(self) -> Finished | None:
        """The outcome of a finished run of one picture, for `earlier`; None without its pixels."""
        if self.images is None or not self.result.finished:
            return None
        return Finished(self.result.tokens, self.result.measured, self.result.passes,
                        self.result.seconds, self.share, self.images, self.messages)

    @property
    def share(self) -> np.ndarray:
        """[B, R, C]: the share of verifications that accepted each cell."""
        return self.count.share() if self.earlier is None else self.earlier.share

    @property
    def output(self) -> torch.Tensor | ExecutionBlocker:
        """The IMAGE output; without images, a blocker of the nodes that are connected to it."""
        if self.images is None:
            return ExecutionBlocker(localized(self.problem or ""))
        return self.images

    def events(self) -> Generator[Event, None, None]:
        if self.earlier is None:
            yield from self.request.events()
            return
        yield from self.earlier.events(self.request.plan)
        self.earlier.restore(self.result)
        self.images = self.earlier.images

    def take(self, event: Event, seconds: float) -> None:
        self.count(event)
        super().take(event, seconds)

    @property
    def speed(self) -> str:
        """The name of the speed that draws, as the page's language has it; empty if none does."""
        if (speed := speed_of(self.request.label)) is None:
            return ""
        return speed.chinese if is_chinese(page_language()) else speed.title

    def show_on(self, log: previews.PreviewLog, panel: int) -> None:
        """Open the preview on a panel of the log's node."""
        preview = self.show(log, panel, node=log.node_ref.node,
                            notes=[localized(note) for note in self.notes])
        preview.label = self.title or self.speed or preview.label
        preview.words = self.words

    def draw(self) -> None:
        """Decode tokens to pixels; if memory runs out, set `problem` instead."""
        if self.images is not None:
            return
        try:
            images = images_of(self.request.sized, self.result.tokens, self.result.rows)
            self.images = torch.stack(list(finished_pictures(
                self.request, self.result.edit, images)))
        except Exception as error:
            if not is_oom(error):
                raise
            mm.soft_empty_cache()
            self.problem = ("out of memory while turning tokens into pixels; the tokens are kept: "
                            "connect Finish to the run, or lower batch_size")
            errors.note(self.problem)


@contextmanager
def saved_if_stopped(runs: Sequence[NodeRun], node: str | None) -> Iterator[None]:
    """If the block raises, save the rows that are final, say so on the node, and end the previews.
    """
    try:
        yield
    except BaseException as error:
        if message := unfinished.keep([run.result for run in runs]):
            show_text(node, message)
        interrupted = isinstance(error, mm.InterruptProcessingException)
        for run in runs:
            run.cancel("interrupted" if interrupted else "failed")
        raise


class Bar:
    """ComfyUI's progress bar with one step per row; it also checks for interrupts.

    until: the row at which a run stops, if not the last.
    """

    def __init__(self, node: str | None, runs: Sequence[NodeRun], until: int | None = None) -> None:
        self.runs, self.value = runs, 0
        self.first = [run.request.region.kept_rows for run in runs]
        ends = [min(until or run.request.grid.rows, run.request.grid.rows) for run in runs]
        self.total = max(1, sum(ends) - sum(self.first))
        self.bar = ProgressBar(self.total, node_id=node)

    def __call__(self) -> None:
        # ComfyUI's bar checks too, but not when it is throttled.
        mm.throw_exception_if_processing_interrupted()
        rows = min(sum(run.result.rows for run in self.runs) - sum(self.first), self.total)
        if rows != self.value:
            self.value = rows
            self.bar.update_absolute(rows, self.total)

    def show(self, frame: Frame) -> None:
        self.bar.update_absolute(self.value, self.total, frame)

    def done(self) -> None:
        self.bar.update_absolute(self.total, self.total)


def run_all(runs: Sequence[NodeRun], node_ref: previews.NodeRef, preview: bool,
            together: bool = True, until: int | None = None) -> dict | None:
    """Run requests, show them on the node, and decode their tokens to pixels.

    preview: the value of the preview widget. together: interleave the runs; else run them one after
    the other, in the memory of the largest. until: stop when that many rows of a run are final.
    Returns the node's `ui`, None without a preview.
    """
    fresh = [run for run in runs if run.earlier is None]
    needed = [run.request.bytes_needed for run in fresh] or [0]
    weights = list(dict.fromkeys(loaded for run in runs for loaded in run.weights))
    for run in fresh:
        run.request.check()  # report wrong input before anything is loaded
    clear_text(node_ref.node)
    with ExitStack() as stack:
        stack.enter_context(resident(weights, sum(needed) if together else max(needed), REMEDY))
        bar = Bar(node_ref.node, fresh, until)
        log = open_log(node_ref, preview, bar.show)
        stack.enter_context(saved_if_stopped(runs, node_ref.node))
        show_all(runs, log, node_ref.node)
        for run in runs:  # an earlier preview may have moved the codec to the device
            run.model.module.ensure_on_device(run.model.module.decoder)
        for run in fresh:
            run.request.learn()  # it times passes, so the weights must be on the device
        follow(runs, together, bar, until)
        for run in runs:
            run.draw()
        compare_with_ar([run.result for run in runs])
        note_order(runs)
        for run in runs:
            run.finish(run.images)
        selftesting.after_a_run(stored_dtype(runs[0].request.backbone))
        return None if log is None else settled(runs, log)


def note_order(runs: Sequence[NodeRun]) -> None:
    """Note in which order suggestions for a region fit what follows it; it takes a pass."""
    results = [run.result for run in runs]
    if any(run.request.drawing.keep_mask is None for run in runs) or sum(
            run.request.pictures for run in runs) < 2:
        return
    order = ", ".join(str(n + 1) for n in likeliest_first(results))
    runs[-1].node_notes = [*runs[-1].node_notes,
                           f"the pictures by how well they fit what follows the region: {order}"]


def show_all(runs: Sequence[NodeRun], log: previews.PreviewLog | None, node: str | None) -> None:
    """Open the previews of all runs; without them, show their notes on the node."""
    if log is not None:
        for panel, run in enumerate(runs):
            run.show_on(log, panel)
    elif lines := [line for run in runs for line in (*run.word_notes, *run.notes)]:
        show_text(node, "\n".join(dict.fromkeys(lines)))


def follow(runs: Sequence[NodeRun], together: bool, bar: Bar, until: int | None = None) -> None:
    """Run all to the end, or until one has that many final rows; then free their memory."""
    steps = race(runs) if together else in_turn(runs)
    with closing(steps):
        for run, _ in steps:
            bar()
            if until is not None and run.result.rows >= until:
                break
    bar.done()


def settled(runs: Sequence[NodeRun], log: previews.PreviewLog) -> dict:
    """Give the runs their messages; returns the `ui` with the previews' content.

    Pages that get a cached result read it.
    """
    for panel, run in enumerate(runs):
        run.messages = [message for message in log.messages if message["panel"] == panel]
    shown = [run.preview for run in runs if run.preview is not None]
    return {previews.UI: [{"messages": log.settle(shown)}]}


def images_of(module: Backbone, tokens: torch.Tensor, rows: int | None = None) -> torch.Tensor:
    """Decode tokens [B, R, C] to an IMAGE [B, H, W, 3] on the CPU; interruptible between pictures.

    rows: the number of rows that are drawn, if not all.
    """
    images = []
    partial = rows if rows != tokens.shape[1] else None
    for picture in pixels(module, tokens) if partial is None else tops(module, tokens, partial):
        mm.throw_exception_if_processing_interrupted()
        images.append(picture)
    return torch.stack(images)


def pixel_room(module: Backbone, tokens: torch.Tensor) -> int:
    """Peak bytes of `images_of` for tokens [B, R, C], besides the codec's weights."""
    model = replace(ModelSize.of(module), grid=Grid(*tokens.shape[1:]))
    return MemoryEstimate(model).pixels
