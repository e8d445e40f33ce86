"""What visitors ask for becomes jobs: the endpoints submit their work here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from ssd_core import SSDError
from ssd_core.model.grid import size_of
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import read_recipe

from . import edits, panels, races, runs
from .alternatives import with_alternative, with_each_alternative
from .history import Entry
from .jobs import Job
from .panels import Panel
from .runs import Work
from .services import Services
from .settings import checked_words

PARTS = {"third": 1 / 3, "half": 1 / 2, "most": 5 / 6}  # how much of each seed is drawn first
TOPS, FINISHED = "seeds", "finish"  # titles of jobs: drawing the tops of seeds, finishing some


@dataclass(frozen=True)
class Order:
    """A run that somebody asked for; it can be asked for again. title: of its jobs.

    drafts: as of `runs.draw`; a race ignores them.
    """

    drawing: Drawing
    metadata: bool = True
    drafts: str = field(default="", kw_only=True)
    title: ClassVar[str]

    def work(self, services: Services) -> Work:
        """The work of a job; SSDError for an order that no job could carry out."""
        raise NotImplementedError

    @property
    def drawn(self) -> Drawing:
        """The drawing with the prompt that its seed chooses."""
        return with_alternative(self.drawing)

    def all_drawn(self) -> list[Drawing]:
        """Drawings with all prompts that will be drawn."""
        return [self.drawn]

    def with_seed(self, seed: int) -> Order:
        """The same run with another seed."""
        return replace(self, drawing=self.drawing.with_seed(seed))

    @property
    def named(self) -> dict[str, str]:
        """The ids of pictures, and what else the page's settings hold beside the drawing."""
        return {"parent": "", "panel": "", "control": "", "subject": "",
                "draft_hash": self.drafts}


@dataclass(frozen=True)
class DrawOrder(Order):
    title = "draw"

    def work(self, services: Services) -> Work:
        return runs.draw(services.library, services.history, self.drawn,
                         metadata=self.metadata, drafts=self.drafts)


@dataclass(frozen=True)
class RaceOrder(Order):
    """racers: each with the name of a method or of a speed, or `settings.AS_CHOSEN`.

    setting, values: a row for each value of that setting, as in `races.race`.
    """

    title = "race"
    racers: tuple[tuple[str, Drawing], ...] = ()
    setting: str = ""
    values: tuple[Any, ...] = ()

    def work(self, services: Services) -> Work:
        drawings = [drawing for _, drawing in self.racers]
        return races.race(services.library, services.history, drawings, self.metadata,
                          self.setting, self.values)

    def with_seed(self, seed: int) -> RaceOrder:
        racers = tuple((name, racer.with_seed(seed)) for name, racer in self.racers)
        return replace(self, drawing=self.drawing.with_seed(seed), racers=racers)

    def all_drawn(self) -> list[Drawing]:
        return races.row_drawings(self.drawing, self.setting, self.values)


@dataclass(frozen=True)
class RedoOrder(Order):
    """source: the picture to redraw below its first `rows` rows. size: as in `runs.redo`."""

    title = "redo"
    source: Path = Path()
    rows: int = 0
    size: str | None = None

    def work(self, services: Services) -> Work:
        return runs.redo(services.library, services.history, self.drawn, self.source,
                         self.rows, self.size, metadata=self.metadata, drafts=self.drafts)


@dataclass(frozen=True)
class EditOrder(Order):
    """parent: the id of the picture; the drawing names its cells that stay."""

    title = "edit"
    parent: str = ""

    def work(self, services: Services) -> Work:
        return edits.edit(services.library, services.history, self.drawn, self.parent,
                          self.metadata, self.drafts)

    @property
    def named(self) -> dict[str, str]:
        return {**super().named, "parent": self.parent}


@dataclass(frozen=True)
class BelowOrder(Order):
    """panel: the picture to draw below."""

    title = "control"
    panel: Panel = Panel()

    def work(self, services: Services) -> Work:
        return panels.draw_below(services.library, services.history, self.drawn, self.panel,
                                 self.metadata, self.drafts)

    @property
    def named(self) -> dict[str, str]:
        return {**super().named, "panel": self.panel.id, "control": self.panel.control,
                "subject": self.panel.subject}


def submit(services: Services, owner: str, order: Order) -> Job:
    """Queue an order. Raises SSDError for prompts that no method would take."""
    work = order.work(services)
    for drawing in order.all_drawn():
        checked_words(drawing, services.library.current.backbone)
    return services.worker.submit(order.title, work, owner, order=order)


def draw_each(services: Services, owner: str, order: DrawOrder) -> list[Job]:
    """Queue a picture of each alternative in the prompt, or none if one of them is refused."""
    every = with_each_alternative(order.drawing)
    services.worker.require_room(len(every))
    for drawing in every:
        checked_words(drawing, services.library.current.backbone)
    return [submit(services, owner, replace(order, drawing=drawing)) for drawing in every]


def start_seeds(services: Services, owner: str, drawing: Drawing, count: int,
                part: str) -> list[Job]:
    """Queue the tops of `count` seeds, in place of those that this visitor started before.

    part: of PARTS. The rows that the drawing keeps all of them keep.
    """
    checked_words(with_alternative(drawing), services.library.current.backbone)
    services.worker.require_room(count)
    works = services.parked_seeds.start(drawing, count, PARTS[part], owner)
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


def with_rows_of(services: Services, drawing: Drawing, picture: str) -> Drawing:
    """The drawing with the rows that a redone picture took from another one, if it did."""
    history, backbone = services.history, services.library.current.backbone
    try:
        path = history.entry(picture).path
        recipe = read_recipe(path)
        if not recipe["keep_rows"]:
            return drawing
        sized = backbone.resized(size_of(recipe["size"]))
        return replace(drawing, keep=runs.rows_of(history, path, sized)[0],
                       keep_rows=recipe["keep_rows"])
    except SSDError:
        return drawing


def keep_top(services: Services, job: Job, metadata: bool = True) -> Entry:
    """Save the finished rows of a stopped job, which is then forgotten."""
    if not isinstance(job.result, runs.DrawResult):
        raise SSDError("nothing to save: no row was finished when the run was stopped")
    drawn = job.result
    entry = (drawn.partial[0] if drawn.partial else
             runs.save_partial(services.history, services.library, drawn, metadata))
    services.worker.forget(job)
    return entry
