"""Quality of methods' pictures, one row a method, from batches that are kept in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads
from ..engine.methods import AR, Method
from ..model.sampling import Sampling
from ..workers.crew import Crew
from .metrics import Trial, require_postcards
from .shards import Entry, Shards


def evaluate(backbone: Backbone, heads: DraftHeads | None, methods: Sequence[tuple[str, Method]],
             prompts: int = 64, batch: int = 16, sampling: Sampling = Sampling(),  # noqa: B008
             folder: Path | None = None, crew: Crew | None = None) -> list[dict]:
    """One row per method: keys as in docs/contract.md, with standard errors of measured ones.

    folder: keeps the batches, and a run that was stopped goes on there; None keeps them only until
    the rows are made. crew: who draws and measures; None is this process.
    """
    require_postcards(backbone)
    trial, warmth = Trial(backbone, prompts, batch, sampling), sampling.temperature
    baseline = Entry(AR(), False, warmth)
    entries = {label: baseline if isinstance(method, AR) else Entry(method, True, warmth)
               for label, method in methods}
    with kept_in(folder) as runs:
        shards = Shards.of(trial, heads, runs, crew.place if crew else None)
        shards.draw(list(dict.fromkeys([baseline, *entries.values()])), crew, "evaluate")
        return [{"method": label, **shards.row(entry, baseline)}
                for label, entry in entries.items()]


@contextmanager
def kept_in(folder: Path | None) -> Iterator[Path]:
    """The folder itself, or one that is gone after the block."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory() as temporary:
        yield Path(temporary)
