"""The models to choose from, and the job that loads another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssd_core.backbones.base import Preset

from .jobs import Job
from .library import Library
from .services import Services

LOAD = "load"  # the title of its jobs


@dataclass(frozen=True)
class InUse:
    """What the page shows of a newly loaded backbone; sizes (width, height) in px."""

    name: str
    heads: bool
    problem: str | None
    preset: Preset
    sizes: tuple[tuple[int, int], ...]


def names(services: Services) -> list[str]:
    return [model.name for model in services.library.models() if model.readable]


def load(services: Services, owner: str, name: str, dtype: str, lora: Sequence[str] = ()) -> Job:
    """Queue a job that replaces the loaded backbone; its result is an InUse."""
    library = services.library
    return services.worker.submit(LOAD, lambda job: switch(library, name, dtype, lora), owner)


def switch(library: Library, name: str, dtype: str, lora: Sequence[str] = ()) -> InUse:
    """Load another backbone; the returned description holds no weights."""
    library.use(name, dtype, lora)
    loaded = library.current
    return InUse(name, loaded.heads is not None, loaded.problem, loaded.backbone.preset,
                 tuple(loaded.backbone.sizes))
