"""What visitors ask for becomes jobs: the endpoints submit their work here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ssd_core import SSDError
from ssd_core.output.recipe import read_recipe

from . import edits, panels, races, runs
from .alternatives import with_alternative, with_each_alternative
from .history import Entry
from .jobs import Job
from .runs import Work
from .seeds import NOTHING, KeptRows
from .services import Services
from .settings import Settings, racing

PARTS = {"third": 1 / 3, "half": 1 / 2, "most": 5 / 6}  # how much of each seed is drawn first
TOPS, FINISHED = "seeds", "finish"  # titles of jobs: drawing the tops of seeds, finishing some


@dataclass(frozen=True)
class Order:
    """A run that somebody asked for; it can be asked for again. title: of its jobs."""

    settings: Settings
    metadata: bool = True
    title: ClassVar[str]

    def work(self, services: Services) -> Work:
        """The work of a job; SSDError for an order that no job could carry out."""
        raise NotImplementedError

    @property
    def drawn(self) -> Settings:
        """The settings with the prompt that their seed chooses."""
        return with_alternative(self.settings)

    def all_drawn(self) -> list[Settings]:
        """Settings with all prompts that will be drawn."""
        return [self.drawn]


@dataclass(frozen=True)
class Draw(Order):
    title = "draw"

    def work(self, services: Services) -> Work:
        return runs.draw(services.library, services.history, self.drawn,
                         metadata=self.metadata)


@dataclass(frozen=True)
class Race(Order):
    """racers: names of methods or of speeds, or `settings.AS_CHOSEN`.

    setting, values: a row for each value of that setting, as in `races.race`.
    """

    title = "race"
    racers: tuple[str, ...] = ()
    setting: str = ""
    values: tuple[Any, ...] = ()

    def work(self, services: Services) -> Work:
        chosen = [racing(self.settings, name) for name in self.racers]
        for racer in chosen:
            racer.chosen_method()  # an unknown one is refused before the queue
        return races.race(services.library, services.history, self.settings, chosen,
                          self.metadata, self.setting, self.values)

    def all_drawn(self) -> list[Settings]:
        return races.row_settings(self.settings, self.setting, self.values)


@dataclass(frozen=True)
class Redo(Order):
    """source: the picture to redraw below its first `rows` rows. size: as in `runs.redo`."""

    title = "redo"
    source: Path = Path()
    rows: int = 0
    size: str | None = None

    def work(self, services: Services) -> Work:
        return runs.redo(services.library, services.history, self.drawn, self.source,
                         self.rows, self.size, metadata=self.metadata)


@dataclass(frozen=True)
class Edit(Order):
    """The settings name the picture and its cells that stay."""

    title = "edit"

    def work(self, services: Services) -> Work:
        return edits.edit(services.library, services.history, self.drawn, self.metadata)


@dataclass(frozen=True)
class Below(Order):
    """The settings name the picture to draw below, and say what it is."""

    title = "control"

    def work(self, services: Services) -> Work:
        return panels.draw_below(services.library, services.history, self.drawn, self.metadata)


def submit(services: Services, owner: str, order: Order) -> Job:
    """Queue an order. Raises SSDError for prompts that no method would take."""
    work = order.work(services)
    for settings in order.all_drawn():
        settings.checked_words(services.library.current.backbone)
    return services.worker.submit(order.title, work, owner, order=order)


def draw_each(services: Services, owner: str, order: Draw) -> list[Job]:
    """Queue a picture of each alternative in the prompt, or none if one of them is refused."""
    every = with_each_alternative(order.settings)
    services.worker.require_room(len(every))
    for settings in every:
        settings.checked_words(services.library.current.backbone)
    return [submit(services, owner, replace(order, settings=settings)) for settings in every]


def start_seeds(services: Services, owner: str, settings: Settings, count: int, part: str,
                top: KeptRows = NOTHING) -> list[Job]:
    """Queue the tops of `count` seeds, in place of those that this visitor started before.

    part: of PARTS. top: rows that all of them keep.
    """
    with_alternative(settings).checked_words(services.library.current.backbone)
    services.worker.require_room(count)
    works = services.parked_seeds.start(settings, count, PARTS[part], owner, top)
    for job in services.worker.of(owner, TOPS):
        job.cancel()  # those that still wait, or run
    services.worker.forget(*services.worker.of(owner, TOPS, FINISHED))
    return [services.worker.submit(TOPS, work, owner, str(seed)) for seed, work in works]


def finish_seeds(services: Services, owner: str, ids: Sequence[str],
                 metadata: bool = True) -> list[Job]:
    """Queue the rest of these paused jobs, before the tops that still wait.

    Their rows stay in sight meanwhile.

    Raises SSDError if one of them is no longer paused.
    """
    worker = services.worker
    worker.require_room(len(ids))
    works = services.parked_seeds.finish(ids, owner, metadata)
    paused = [(job, work) for job, work in zip(map(worker.job, ids), works, strict=True) if job]
    return [worker.submit(FINISHED, work, owner, job.tag, list(job.messages), ahead_of=TOPS)
            for job, work in paused]


def rows_kept_from(services: Services, picture: str) -> KeptRows:
    """The rows that a redone picture took from another one; none of other pictures."""
    history, backbone = services.history, services.library.current.backbone
    try:
        path = history.entry(picture).path
        recipe = read_recipe(path)
        if not recipe["keep_rows"]:
            return NOTHING
        sized = backbone.resized(tuple(recipe["size"]))
        return KeptRows(runs.rows_of(history, path, sized)[0], recipe["keep_rows"])
    except SSDError:
        return NOTHING


def keep_top(services: Services, job: Job, metadata: bool = True) -> Entry:
    """Save the finished rows of a stopped job, which is then forgotten."""
    if not isinstance(job.result, runs.DrawResult):
        raise SSDError("nothing to save: no row was finished when the run was stopped")
    drawn = job.result
    entry = (drawn.partial[0] if drawn.partial else
             runs.save_partial(services.history, services.library, drawn, metadata))
    services.worker.forget(job)
    return entry
