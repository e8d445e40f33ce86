"""A run taken to its end: its pictures saved, then shown; or what it left where it was stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch

from ssd_core.engine.usual import note
from ssd_core.front.compare import verdict
from ssd_core.front.labels import claim

from .history import Entry, History
from .jobs import Cancelled, Job
from .running import Run, advance, guarded


@dataclass
class Drawn:
    """What a run left. entries: its pictures, saved. stopped_rows: None where it was finished, else
    how many rows were, to be kept in a redo; `partial` are those saved by `save_partial`.

    tokens [B, R, C] on the CPU. verdict: a word of docs/contract.md; claim: a sentence.
    """

    entries: list[Entry]
    tokens: torch.Tensor
    stats: Mapping
    label: str
    verdict: str
    claim: str
    unknown_words: list[str]
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
            job.result = stopped(run)
            raise
        job.result = drawn = result_of(run)
        pictures = []
        for index in range(run.settings.pictures):
            pictures.append(run.picture(index))
            drawn.entries.append(history.save(pictures[-1], run.recipe(index), metadata=metadata))
        if metadata:
            note(run.backbone, run.method, run.heads is not None, run.settings.sampling(),
                 run.finished.stats, run.keep_rows)
        run.screen.finish(run.finished.stats, torch.stack(pictures))
    return drawn


def result_of(run: Run) -> Drawn:
    """The result without its pictures, which have to be saved yet."""
    method = run.method
    dtype = run.backbone.dtype
    return Drawn([], run.tokens, run.finished.stats if run.finished else {}, run.label,
                 verdict(method, dtype, None), claim(method, dtype), run.unknown_words)


def stopped(run: Run) -> Drawn:
    rows = run.rows if run.rows > run.keep_rows else 0
    recipes = [run.recipe(index) for index in range(run.settings.pictures)]
    return replace(result_of(run), stopped_rows=rows, recipes=recipes)
