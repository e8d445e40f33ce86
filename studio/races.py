"""Work for the Worker: a race, side by side or as a grid with a row for each value of a setting.

The runs of a row go on together, each on its own clock; rows follow one another. What is finished
is saved, also of a race that is stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ssd_core import SSDError
from ssd_core.engine.methods import AR
from ssd_core.files import atomic_write
from ssd_core.output.drawing import Drawing
from ssd_core.output.guarantees import identical_share
from ssd_core.output.recipe import to_bytes
from ssd_core.output.sheet import Tile, contact_sheet
from ssd_core.runs.comparison import Comparison, compare_with_ar, conditions
from ssd_core.runs.live import LiveRun
from ssd_core.runs.request import Picture, Result

from .alternatives import with_alternative
from .history import Entry, History
from .jobs import Cancelled, Job
from .library import Library
from .results import Facts, Saved, not_saved
from .running import advance_together, guarded, show_places
from .runs import Work
from .settings import asked, request_of

MOST_RACERS, MOST_PICTURES = 6, 48
SETTINGS = ("seed", "cfg", "temperature", "prompt")  # that rows may differ in


@dataclass
class Raced:
    """Finished pictures in order, and their labelled sheet if it could be saved.

    equal: share of tokens equal between the first two.
    """

    saved: Saved = field(default_factory=Saved)
    sheet: Entry | None = None
    equal: float = 0.0

    @property
    def facts(self) -> list[Facts]:
        """What is known of each picture."""
        return [picture.facts for picture in self.saved.pictures]

    @property
    def entries(self) -> list[Entry]:
        return self.saved.entries


@dataclass
class RaceGrid:
    """A race as it goes on: its rows of runs, and what is said of each row.

    captions: of each row; none without a setting that rows differ in.
    """

    rows: list[list[LiveRun]]
    captions: list[str]
    history: History
    metadata: bool
    raced: Raced = field(default_factory=Raced)
    tiles: dict[int, Tile] = field(default_factory=dict)  # by place

    def take(self, row: int) -> None:
        """Save, measure and show those pictures of a row that are finished."""
        done = [run for run in self.rows[row] if run.result.finished]
        compare_with_ar([run.result for run in done])
        pictures = [next(run.result.pictures()) for run in done]
        ar = next((run for run in done if isinstance(run.request.method, AR)), None)
        for run, picture in zip(done, pictures, strict=True):
            self.raced.saved.take(self.history, picture.pixels, picture.recipe, self.metadata,
                                  Facts.of(run, 0, judged=run is not ar))
        if row == 0 and len(done) > 1:
            self.raced.equal = identical_share(done[0].result.tokens, done[1].result.tokens)
        self._note_tiles(row, [run.result for run in done], pictures)
        for run, picture in zip(done, pictures, strict=True):
            run.finish(picture.pixels[None])

    def end(self) -> None:
        """Save all pictures with their words as one PNG; if that fails, its problem is kept."""
        if len(self.tiles) < 2:
            return
        first = self.rows[0][0].request
        names = dict.fromkeys(run.request.method.name for run in self.rows[0])
        image = self._sheet(first.prompt, conditions(first))
        try:
            self.raced.sheet = self.history.write(lambda path: write_image(path, image), {
                "seed": first.sampling.seed, "method": "-".join(names)}, "race")
        except SSDError as error:
            self.raced.saved.problem = self.raced.saved.problem or str(not_saved(error))

    def _note_tiles(self, row: int, results: Sequence[Result],
                    pictures: Sequence[Picture]) -> None:
        comparison = Comparison.of(results)
        places = [run.panel for run in self.rows[row] if run.result.finished]
        for n, (place, picture) in enumerate(zip(places, pictures, strict=True)):
            tile = comparison.tile(str(n), to_bytes(picture.pixels))
            self.tiles[place] = replace(tile, lines=(*self.captions[row:row + 1], *tile.lines))

    def _sheet(self, title: str, below: str) -> Image.Image:
        """All finished pictures; in rows, with gaps, if there is a setting for them."""
        if not self.captions:
            return contact_sheet(list(self.tiles.values()), title, below)
        columns = len(self.rows[0])
        gap = Tile(np.full_like(next(iter(self.tiles.values())).picture, 230), "", "")
        places = range((max(self.tiles) // columns + 1) * columns)
        return contact_sheet([self.tiles.get(place, gap) for place in places], title, below,
                             columns=columns)


def race(library: Library, history: History, racers: Sequence[Drawing], metadata: bool = True,
         setting: str = "", values: Sequence[Any] = ()) -> Work:
    """Methods draw one picture with the same prompt and seed, each on its own clock.

    racers: at most MOST_RACERS, which differ in their methods. setting, values: one of SETTINGS,
    and its value in each row. The work returns Raced. Raises SSDError at once for too few or too
    many.
    """
    require_number(len(racers), setting, values)
    rows = list(zip(*(row_drawings(replace(racer, pictures=1), setting, values)
                      for racer in racers), strict=True))
    loaded = library.as_now()

    def work(job: Job) -> Raced:
        now = loaded()
        requests = [[request_of(racer, now.backbone, now.heads, named=True) for racer in row]
                    for row in rows]
        history.require_room(2 * len(rows) * len(racers), requests[0][0].sizes[0])  # and the sheet
        for row in requests:
            library.require_room_together(row)
        places = count()
        runs = [[LiveRun(request, send=job.tell, panel=next(places)) for request in row]
                for row in requests]
        captions = [f"{setting} {value}" for value in values] if setting else []
        return run_rows(job, RaceGrid(runs, captions, history, metadata))

    return work


def row_drawings(drawing: Drawing, setting: str, values: Sequence[Any]) -> list[Drawing]:
    """The drawing of each row; as it is if rows differ in nothing."""
    rows = [asked({setting: value}, drawing) for value in values] if setting else [drawing]
    return [with_alternative(row) for row in rows]


def require_number(racers: int, setting: str, values: Sequence[Any]) -> None:
    """Raise SSDError for too few or too many pictures, and for a setting that makes no rows."""
    if setting and setting not in SETTINGS:
        raise SSDError(f"setting {setting[:40]!r}: choose one of {', '.join(SETTINGS)}")
    if bool(setting) != bool(values):
        raise SSDError("setting: rows need a setting and its values; leave both out for a race "
                       "without rows")
    if not (1 if len(values) > 1 else 2) <= racers <= MOST_RACERS:
        raise SSDError(f"a race of {racers}: choose 2 to {MOST_RACERS} methods")
    if racers * len(values) > MOST_PICTURES:
        raise SSDError(f"{racers * len(values)} pictures: at most {MOST_PICTURES} race at once, "
                       "choose fewer methods or values")


def run_rows(job: Job, grid: RaceGrid) -> Raced:
    """Run one row after the other; a stopped job keeps what was finished."""
    everything = [run for row in grid.rows for run in row]
    job.result = grid.raced
    with guarded(*everything):
        if len(grid.rows) > 1:
            show_places(everything)
        for row, runs in enumerate(grid.rows):
            try:
                advance_together(job, runs, everything)
            except Cancelled:
                grid.take(row)
                grid.end()
                raise
            grid.take(row)
        grid.end()
    return grid.raced


def write_image(path: Path, image: Image.Image) -> None:
    with atomic_write(path) as temporary:
        image.save(temporary, format="PNG")
