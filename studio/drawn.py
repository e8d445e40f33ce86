"""Follow a run to its end and save its pictures; or keep what it had when it was stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from .history import Entry, History
from .jobs import Cancelled, Job
from .running import Run, advance, guarded


@dataclass
class Drawn:
    """The outcome of a run, without its backbone, so that a job may keep it.

    seeds: one per picture. entries: its saved pictures. tokens: [B, R, C] on the CPU.
    stopped_rows: None if it finished, else the number of final rows, which Redo can keep; then
    `recipes` are those of its pictures, and `partial` the entries that `save_partial` saved.
    """

    label: str
    tokens: torch.Tensor
    stats: Mapping
    seeds: list[int] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    stopped_rows: int | None = None
    recipes: list[dict] = field(default_factory=list)
    partial: list[Entry] = field(default_factory=list)
    how: str | None = None  # origin of the kept rows
    unchanged: bool = False  # whether a redo drew the very picture that it began with


def follow(job: Job, run: Run, history: History, metadata: bool) -> Drawn:
    """Run to the end and save the pictures, then show them."""
    with guarded(run):
        try:
            advance(job, run)
        except Cancelled:
            job.result = drawn_by(run)
            raise
        job.result = drawn = drawn_by(run)
        pictures = []
        for picture, recipe in zip(run.result.pictures(), run.result.recipes(), strict=True):
            pictures.append(picture)
            drawn.entries.append(history.save(picture, recipe, metadata=metadata))
        run.finish(pictures)
    return drawn


def drawn_by(run: Run) -> Drawn:
    """The run's outcome so far; finished pictures still have to be saved."""
    result = run.result
    return Drawn(run.request.label, result.tokens, result.stats or {}, run.request.seeds,
                 stopped_rows=result.stopped_rows,
                 recipes=[] if result.finished else result.recipes())
