"""A run taken to its end: its pictures saved, then shown; or what it left where it was stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from ssd_core.engine.usual import note

from .history import Entry, History
from .jobs import Cancelled, Job
from .running import Run, advance, guarded


@dataclass
class Drawn:
    """What a run left, without the backbone that drew it, so that a job may keep it.

    entries: its pictures, saved. tokens: [B, R, C] on the CPU. stopped_rows: None where it was
    finished, else how many rows were, to be kept in a redo; `recipes` are then those of its
    pictures, and `partial` those that `save_partial` saved.
    """

    label: str
    tokens: torch.Tensor
    stats: Mapping
    entries: list[Entry] = field(default_factory=list)
    stopped_rows: int | None = None
    recipes: list[dict] = field(default_factory=list)
    partial: list[Entry] = field(default_factory=list)
    how: str | None = None  # where the kept rows came from


def follow(job: Job, run: Run, history: History, metadata: bool) -> Drawn:
    """Take a run to its end and save its pictures; they are shown after that."""
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
        if metadata:
            remember(run)
        run.finish(pictures)
    return drawn


def drawn_by(run: Run) -> Drawn:
    """What a run has come to; finished pictures have to be saved yet."""
    result = run.result
    return Drawn(run.request.label, result.tokens, result.stats or {},
                 stopped_rows=result.stopped_rows,
                 recipes=[] if result.finished else result.recipes())


def remember(run: Run) -> None:
    """How many passes it took, for the plans of runs to come."""
    request = run.request
    note(request.sized, request.method, request.heads is not None, request.sampling,
         run.result.stats, request.keep_rows)
