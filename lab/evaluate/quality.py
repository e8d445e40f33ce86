"""Measures the quality of methods' pictures, with one row per method and batches in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.presets import resolve_sampling
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, Method
from ssd_core.model.sampling import Sampling
from ssd_core.runs.batch.workers import WorkerPool

from .metrics import Trial, require_postcards
from .shards import Entry, Shards


def evaluate(backbone: Backbone, heads: DraftHeads | None, methods: Sequence[tuple[str, Method]],
             prompts: int = 64, batch: int = 16, sampling: Sampling = Sampling(),  # noqa: B008
             folder: Path | None = None, crew: WorkerPool | None = None) -> list[dict]:
    """Return one row per method, with the keys of docs/contract.md and standard errors.

    folder: stores the batches, so that a stopped run can continue; None: a temporary folder. crew:
    the workers that draw and measure; None: this process.
    """
    require_postcards(backbone)
    trial = Trial(backbone, prompts, batch, sampling)
    warmth = resolve_sampling(sampling, backbone.preset).resolved_temperature
    baseline = Entry(AR(), False, warmth)
    entries = {label: baseline if isinstance(method, AR) else Entry(method, True, warmth)
               for label, method in methods}
    with existing_or_temporary(folder) as runs:
        shards = Shards.of(trial, heads, runs, crew.place if crew else None)
        shards.draw(list(dict.fromkeys([baseline, *entries.values()])), crew, "evaluate")
        return [{"method": label, **shards.row(entry, baseline)}
                for label, entry in entries.items()]


@contextmanager
def existing_or_temporary(folder: Path | None) -> Iterator[Path]:
    """Yield the folder; None: a temporary folder, removed after the block."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory() as temporary:
        yield Path(temporary)
