"""Follow runs to their end and save their pictures; or keep what there was when they were stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from ssd_core import SSDError
from ssd_core.engine.run_statistics import together
from ssd_core.runs.live import LiveRun
from ssd_core.runs.request import Request
from ssd_core.runs.suggestions import likeliest_first

from .history import Entry, History
from .jobs import Cancelled, Job
from .measurements import NOT_MEASURED, Measured
from .running import advance, guarded, show_places


@dataclass(frozen=True)
class Facts:
    """What is known of a finished picture.

    place: on the stage. words: the prompt it was drawn from; "" where that was typed. judged:
    whether a race's guarantee is about it, as about all but a row's own AR.
    """

    label: str
    seed: int
    place: int = 0
    words: str = ""
    measured: Measured = NOT_MEASURED
    judged: bool = True

    @classmethod
    def of(cls, run: LiveRun, index: int, judged: bool = True) -> Facts:
        """Of picture `index` of a finished run."""
        request = run.request
        return cls(request.label, request.seeds[index], run.panel + index,
                   words_of(request)[index], Measured.of(run.result), judged)


@dataclass(frozen=True)
class FinishedPicture:
    """id: of its entry, which is on the disk; without one it names the PNG in memory."""

    id: str
    entry: Entry | None
    facts: Facts


@dataclass
class Saved:
    """Finished pictures in order. problem: why one could not be saved, in one line."""

    pictures: list[FinishedPicture] = field(default_factory=list)
    problem: str | None = None

    @property
    def entries(self) -> list[Entry]:
        """Of the pictures on the disk."""
        return [picture.entry for picture in self.pictures if picture.entry is not None]

    def take(self, history: History, pixels: torch.Tensor, recipe: Mapping, metadata: bool,
             facts: Facts) -> None:
        """Save a picture, or else keep it in memory: it took a whole run."""
        entry = None
        try:
            entry = history.save(pixels, recipe, metadata=metadata)
            id_ = entry.id
        except SSDError as error:
            id_ = history.keep_unsaved(pixels, recipe, metadata)
            self.problem = str(not_saved(error))
        self.pictures.append(FinishedPicture(id_, entry, facts))


def not_saved(error: SSDError) -> SSDError:
    return SSDError(f"the picture is only in memory, download it from here: {error}")


@dataclass
class DrawResult:
    """The outcome of a run, or of runs one after the other, without its backbone, so that a job may
    keep it.

    saved: the pictures that are finished. tokens: [B, R, C] on the CPU; of a run
    that was stopped those of the pictures that it left unfinished. stopped_rows: None if it
    finished, else the number of their final rows, which Redo can keep; then `recipes` are theirs,
    and `partial` the entries that `save_partial` saved.
    """

    label: str
    tokens: torch.Tensor
    stats: Mapping
    saved: Saved = field(default_factory=Saved)
    stopped_rows: int | None = None
    recipes: list[dict] = field(default_factory=list)
    partial: list[Entry] = field(default_factory=list)
    order: list[int] = field(default_factory=list)  # of suggestions, those that fit best first
    notes: list[str] = field(default_factory=list)  # what an edit by words kept and redrew
    how: str | None = None  # origin of the kept rows
    unchanged: bool = False  # whether a redo drew the very picture that it began with

    @property
    def entries(self) -> list[Entry]:
        return self.saved.entries


def follow(job: Job, runs: Sequence[LiveRun], history: History, metadata: bool,
           source: str = "", cut: int = 0) -> DrawResult:
    """Run one after the other to the end; each one's pictures are saved, and then shown, at once.

    source: id of the picture that is redone; their recipes name it. cut: pixels at the top that are
    not saved.
    """
    saved = Saved()
    with guarded(*runs):
        if len(runs) > 1:
            show_places(runs)
        for count, run in enumerate(runs, 1):
            try:
                advance(job, run, beside=runs)
            except Cancelled:
                job.result = drawn_by(runs[:count], saved, source)
                raise
            job.result = drawn_by(runs[:count], saved, source)
            save(run, saved, history, metadata, source, cut)
        job.result.order = suggested(runs)
    return job.result


def suggested(runs: Sequence[LiveRun]) -> list[int]:
    """The order of several pictures of a region; none of other runs."""
    several = sum(run.request.pictures for run in runs) > 1
    region = all(run.request.drawing.keep_mask is not None and run.request.drawing.edit is None
                 for run in runs)
    return likeliest_first([run.result for run in runs]) if several and region else []


def save(run: LiveRun, saved: Saved, history: History, metadata: bool, source: str,
         cut: int) -> None:
    """Save a finished run's pictures, each with its recipe, and show them."""
    pictures = []
    for index, picture in enumerate(run.result.pictures()):
        pictures.append(picture.pixels)
        saved.take(history, picture.pixels[cut:], from_source(picture.recipe, source), metadata,
                   Facts.of(run, index))
    run.finish(torch.stack(pictures))


def from_source(recipe: dict, source: str) -> dict:
    """The recipe of a redone picture, which names the picture that it began with."""
    return {**recipe, "source": source} if source else recipe


def drawn_by(runs: Sequence[LiveRun], saved: Saved, source: str) -> DrawResult:
    """The outcome so far of runs of which only the last one may be unfinished.

    saved: may still grow.
    """
    results, last = [run.result for run in runs], runs[-1].result
    done = [result.measured for result in results if result.finished]
    tokens = [result.tokens for result in results] if last.finished else [last.tokens]
    return DrawResult(last.request.label, torch.cat(tokens), together(done) if done else {},
                      saved, last.stopped_rows,
                      recipes=[] if last.finished else [
                          from_source(recipe, source) for recipe in last.recipes()],
                      notes=[note for result in results if result.edit
                             for note in result.edit.notes])


def words_of(request: Request) -> list[str]:
    """The prompt that each picture is drawn from; "" where it is the one that was typed."""
    return ["" if words.prompt == request.prompt else words.prompt for words in request.words]
