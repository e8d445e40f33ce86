"""Draws a suite into its folder, by one process or many workers; a stopped run can continue."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ssd_core.errors import SSDError
from ssd_core.files import atomic_write, write_text
from ssd_core.output.picture_files import opened
from ssd_core.runs.batch.prompts import require_drawable
from ssd_core.runs.batch.queue import TaskLocks, work
from ssd_core.runs.batch.render import RenderItem, RenderSettings, draw_tasks, require_same
from ssd_core.runs.batch.workers import LoadedModels, WorkerPool

from .base import Item, ScorerLayout, side_by_side
from .record import FILE, Record, conditions, read_record


@dataclass(frozen=True)
class SuiteRun:
    """A suite by one method; `folder` has the layout that the suite's scorer requires."""

    record: Record
    folder: Path
    how: RenderSettings
    loaded: LoadedModels

    @classmethod
    def of(cls, layout: ScorerLayout, prompts: Path, folder: Path, how: RenderSettings,
           loaded: LoadedModels,
           samples: int | None = None) -> SuiteRun:
        """Check everything before drawing. Raises SSDError.

        prompts: the suite's file or folder. samples: None is the suite's default.
        """
        samples = layout.samples if samples is None else samples
        if not 1 <= samples <= layout.most:
            raise SSDError(f"samples {samples}: the suite {layout.name} takes 1 .. {layout.most}")
        require_square(layout, *loaded.backbone.size)
        items = layout.read(prompts)
        for item in items:
            require_drawable(loaded.backbone, item.prompt, f"{prompts}, prompt {item.name}")
        return cls(Record(layout, samples, items, {}), folder, how, loaded)

    @property
    def pictures(self) -> list[RenderItem]:
        """All pictures, prompt by prompt; picture n has the run's seed + n."""
        return [RenderItem(number, prompt, name)
                for number, (name, prompt) in enumerate(self.record.pictures())]

    def draw(self, crew: WorkerPool, batch: int) -> int:
        """Write the suite's texts, missing pictures and grids; return how many were drawn.

        Raises SSDError if the folder holds pictures of another run.
        """
        how = self.how.on(self.loaded.backbone.grid, crew.place.device)
        drawn_by = conditions(how, self.loaded, crew.place.dtype)
        record = replace(self.record, drawn_by=drawn_by)
        with TaskLocks(self.folder).held("suite"):  # one of several processes decides
            self.require_same(record, how)
            record.write(self.folder)
        for name, text in record.layout.texts(record.items).items():
            write_text(self.folder / name, text)
        tasks = draw_tasks(self.pictures, how, batch)
        count = work(tasks, self.folder, crew, record.layout.name)
        for item in record.items:
            self.write_grid(item)
        return count

    def require_same(self, record: Record, how: RenderSettings) -> None:
        if not (self.folder / FILE).exists():
            return require_same(self.pictures, how, self.loaded, self.folder)
        if difference := read_record(self.folder).difference(record):
            raise SSDError(f"{self.folder}: its pictures were drawn with {difference}: choose "
                           "another --out, or draw with the same settings")

    def write_grid(self, item: Item) -> None:
        """Write the grid of a prompt, if the suite has grids and it does not exist yet."""
        name, layout = self.record.layout.grid(item), self.record.layout
        if name is None or (self.folder / name).exists():
            return
        with ExitStack() as files:
            grid = side_by_side([
                files.enter_context(opened(self.folder / layout.picture(item, sample)))
                for sample in range(self.record.samples)])
        with atomic_write(self.folder / name) as temporary:
            grid.save(temporary, format="PNG")


def require_square(layout: ScorerLayout, width: int, height: int) -> None:
    if layout.square and width != height:
        raise SSDError(f"size {width}x{height}: the scorer of {layout.name} cuts pictures into "
                       "squares; choose a square size")
