"""The workers that a user requests: how many, and where."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass

from ...errors import SSDError
from ...model.flags import flag
from .models import ModelSpec
from .ray_workers import RayWorkers, models_of
from .task import LoadedModels
from .workers import LocalWorker, WorkerPool


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Workers."""

    workers: int = flag(1, "Processes that draw, each with the models loaded. More than one needs "
                           "the package ray.")
    address: str = flag("", "Address of a Ray cluster, for example 10.0.0.5:6379. Default: this "
                            "machine.")

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise SSDError(f"workers {self.workers}: must be at least 1")

    @property
    def apart(self) -> bool:
        """Whether other processes draw.

        This process then loads the models without their weights (device meta).
        """
        return self.workers > 1 or bool(self.address)


@contextmanager
def crew_of(options: WorkerOptions, loaded: LoadedModels, models: ModelSpec | None = None,
            say: Callable[[str], None] = lambda line: None) -> Iterator[WorkerPool]:
    """The crew for a `with` block. models: what workers in other processes load."""
    if not options.apart:
        yield LocalWorker(loaded)
        return
    assert models is not None
    with redirect_stdout(sys.stderr):  # Ray reports lost processes on stdout, which is for results
        crew = RayWorkers(models, models_of(loaded), options.workers, options.address,
                          say)
        try:
            yield crew
        finally:
            crew.close()
